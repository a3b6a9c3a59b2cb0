"""`chat` with our own WebGPU engine: where it runs, what is profiled of it, and what becomes of that."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from inferometer.commands.base import Output
from inferometer.commands.options.chat import WARM_UP_TEXT, Session, hold, print_report

if TYPE_CHECKING:
    from inferometer.engines.chat.answer import ChatAnswer, WarmUp
    from inferometer.engines.webgpu.browser.session import BrowserSession
    from inferometer.engines.webgpu.chat.answer import DeviceSetup
    from inferometer.engines.webgpu.chat.conversation import DeviceAnswer, DeviceConversation, DeviceSampling
    from inferometer.engines.webgpu.engine import WebGpuEngine
    from inferometer.engines.webgpu.model_spec import Checkpoint
    from inferometer.engines.webgpu.profile.profiled_run import ProfiledRun
    from inferometer.engines.webgpu.tune.choices import Tuner


class WebGpuAsked(NamedTuple):
    """What to run, and how."""

    model: str
    on: str | None
    browser: bool
    browser_url: bool
    browser_cache: str | None
    no_browser_cache: bool
    new_tokens: int
    batch: int
    context: int | None
    temperature: float
    top_k: int
    top_p: float
    repetition_penalty: float
    seed: int
    stop_at_eos: bool
    chat_template: bool
    cold: bool
    kernel_path: str | None
    weights: str | None
    kv: str
    tune: bool | None
    profile: bool
    log: str | None
    overhead: bool
    recording: str | None
    force: bool

    def check(self, out: Output) -> None:
        """Refuse options that contradict each other."""
        places = [("--on", self.on), ("--browser", self.browser), ("--browser-url", self.browser_url)]
        given = [name for name, value in places if value]
        if len(given) > 1:
            raise click.UsageError(f"{given[0]} and {given[1]} are mutually exclusive: it runs in one place.")
        if self.on is not None and (self.on == "cpu" or self.on.split(":")[0] == "cuda"):
            raise click.UsageError(
                f"--on {self.on} is a device of --engine hf: expected numpy, or a part of an adapter's name."
            )
        for name, value in (("--browser-cache", self.browser_cache), ("--no-browser-cache", self.no_browser_cache)):
            if value and not self.browser:
                raise click.UsageError(f"{name} is of --browser: a browser of yours keeps weights by itself.")
        if self.browser_cache and self.no_browser_cache:
            raise click.UsageError("--browser-cache and --no-browser-cache are mutually exclusive.")
        if self.tune and (self.browser or self.browser_url):
            raise click.UsageError("--tune measures on an adapter of wgpu, or NumPy: it can't go with a browser.")
        if self.tune:
            for name, value, what in (("--weights", self.weights, "weights"), ("--kv", self.kv, "keys and values")):
                if value not in (None, "f16"):
                    raise click.UsageError(f"--tune measures float16 {what}: it can't go with {name} {value}.")
        if self.log and out.form:
            raise click.UsageError("--log and --json are mutually exclusive: stdout gets one of them.")

    def check_alone(self) -> None:
        """Refuse what needs a prompt where lines are asked for."""
        for name, value in (("--log", self.log), ("--record", self.recording), ("--overhead", self.overhead)):
            if value:
                raise click.UsageError(f"{name} needs a --prompt, or one on standard input: it tells of one answer.")

    def place(self) -> str:
        """Where to run, as `load_webgpu` takes it."""
        if self.browser or self.browser_url:
            return "browser" if self.browser else "browser-url"
        if self.on is None or self.on in ("numpy", "wgpu"):
            return self.on or "wgpu"
        return f"wgpu:{self.on}"

    def kept(self) -> Path | None:
        """Where a browser of ours keeps weights; None: nowhere."""
        from inferometer.caches import cache_folder

        if self.no_browser_cache:
            return None
        return cache_folder() / "webgpu-browser" if self.browser_cache is None else Path(self.browser_cache)

    def sampling(self) -> "DeviceSampling":
        """How tokens are chosen."""
        from inferometer.engines.webgpu.chat.conversation import DeviceSampling

        return DeviceSampling(self.temperature, self.top_k, self.top_p, self.seed, self.repetition_penalty)

    @property
    def is_profiled(self) -> bool:
        """Whether anything wants the times of dispatches."""
        return self.profile or self.log is not None or self.recording is not None


def chat_with_webgpu(asked: WebGpuAsked, text: str | None, out: Output) -> int:
    """Answer the text, or line after line; the exit code."""
    if text is None:
        asked.check_alone()
    sampling = asked.sampling()
    if asked.recording is not None:
        from inferometer.trace.store_writer import StoreFolder

        StoreFolder(Path(asked.recording), force=asked.force)
    engine = _load(asked, text, greedy=sampling.is_greedy)
    try:
        return hold(_get_ready(asked, engine, sampling, text), text, out)
    finally:
        engine.close()


def _load(asked: WebGpuAsked, text: str | None, *, greedy: bool) -> "WebGpuEngine":
    from inferometer.backends.wgsl.cache_formats import CACHE_FORMATS
    from inferometer.backends.wgsl.weight_formats import FORMATS
    from inferometer.commands.options.progress import working
    from inferometer.engines.webgpu.capacity import context_for, whole_context
    from inferometer.engines.webgpu.load import LoadOptions, load_webgpu
    from inferometer.engines.webgpu.tune.choices import known_choices, measured_choices

    def capacity(checkpoint: "Checkpoint") -> int:
        if text is None:
            return whole_context(checkpoint.spec, asked.context)
        return context_for(checkpoint, text, asked.new_tokens, asked.context, uses_template=asked.chat_template)

    with working() as say:
        options = LoadOptions(
            seed=asked.seed,
            on=asked.place(),
            capacity_tokens=capacity,
            kernel_path=None if asked.kernel_path is None else Path(asked.kernel_path),
            tuner=_tuner(asked, known_choices, measured_choices),
            weights=None if asked.weights is None else FORMATS[asked.weights],
            cache=CACHE_FORMATS[asked.kv],
            greedy=greedy,
            browser_cache=asked.kept(),
            measures_rates=asked.profile or asked.recording is not None,
        )
        return load_webgpu(
            asked.model, options, on_text=lambda what: _relay(what) if what.startswith("[browser") else say(what)
        )


def _tuner(asked: WebGpuAsked, known: "Tuner", measured: "Tuner") -> "Tuner | None":
    """What chooses among kernels: only float16 weights, keys and values are measured."""
    if asked.tune is False or asked.weights not in (None, "f16") or asked.kv != "f16":
        return None
    return measured if asked.tune else known


def _relay(line: str) -> None:
    """A line of a browser's log, or the URL to open."""
    from inferometer.errors import clean

    click.echo(clean(line), err=True)


def _get_ready(asked: WebGpuAsked, engine: "WebGpuEngine", sampling: "DeviceSampling", text: str | None) -> Session:
    from inferometer.commands.options.progress import working
    from inferometer.engines.webgpu.chat.answer import DeviceChatAnswer
    from inferometer.engines.webgpu.chat.conversation import DeviceConversation
    from inferometer.engines.webgpu.plan.difference import diff_plan

    can_time = "timestamp-query" in engine.adapter.features
    conversation = DeviceConversation(
        engine,
        sampling,
        asked.new_tokens,
        asked.batch,
        "timestamps" if asked.is_profiled and can_time else "single_pass",
        stop_at_eos=asked.stop_at_eos,
        uses_template=asked.chat_template,
    )
    with working() as say:
        say("a warm-up")
        warm_up = None if asked.cold else conversation.warm_up(WARM_UP_TEXT if text is None else text)
    untimed = f"{engine.adapter.name} has no timestamps: dispatches are counted, not timed."
    more = [untimed] if asked.is_profiled and not can_time else []

    def report(answer: "DeviceAnswer", *, brief: bool = False) -> "ChatAnswer":
        setup = _setup(asked, engine, conversation, warm_up, [*engine.notes, *more])
        passes = [each for submission in answer.submissions for each in submission.passes]
        return DeviceChatAnswer(setup, answer, brief, plan=diff_plan(engine.loaded, passes))

    def also(answer: "DeviceAnswer", out: Output) -> dict[str, Any]:
        return _more(asked, engine, answer, out)

    talk = conversation if engine.browser is None else _PageTalk(conversation, engine.browser)
    return Session(talk, report, also, shows_text=asked.log is None)


class _PageTalk:
    """A conversation whose questions and answers a browser's page shows too."""

    def __init__(self, conversation: "DeviceConversation", page: "BrowserSession") -> None:
        self._conversation, self._page = conversation, page

    def ask(self, text: str, on_text: Callable[[str], object]) -> "DeviceAnswer":
        """As the conversation does."""

        def show(piece: str) -> None:
            self._page.show_text(piece)
            on_text(piece)

        self._page.show_prompt(text)
        return self._conversation.ask(text, show)

    def reset(self) -> None:
        """Forget everything."""
        self._conversation.reset()


def _setup(
    asked: WebGpuAsked,
    engine: "WebGpuEngine",
    conversation: "DeviceConversation",
    warm_up: "WarmUp | None",
    notes: Sequence[str],
) -> "DeviceSetup":
    from inferometer.engines.webgpu.chat.answer import DeviceSetup

    fetched = None if engine.browser is None else engine.browser.loaded
    return DeviceSetup(
        model=asked.model,
        source=engine.source,
        device=engine.device,
        dtype=engine.dtype,
        parameters=engine.parameters,
        weight_bytes=engine.weight_bytes,
        matrix_bytes=engine.loaded.matrix_bytes,
        arm=engine.program.kernel_path,
        sampling=conversation.sampling,
        load_ns=engine.load_ns,
        warm_up=warm_up,
        recording=asked.recording,
        notes=notes,
        adapter=engine.adapter,
        context=engine.program.capacity,
        cache_dtype=engine.cache_dtype,
        batch=conversation.batch,
        timing=conversation.timing,
        load_phases=engine.load_phases,
        reads=engine.reads,
        memory=engine.memory,
        selections=engine.loaded.selections,
        fetched_bytes=None if fetched is None else fetched.fetched_bytes,
        cached_bytes=None if fetched is None else fetched.cached_bytes,
    )


def _more(asked: WebGpuAsked, engine: "WebGpuEngine", answer: "DeviceAnswer", out: Output) -> dict[str, Any]:
    """The profile, the log, the store and the overhead, of those that were asked for."""
    found: dict[str, Any] = {}
    if asked.is_profiled and answer.submissions:
        run = _profiled(engine, answer)
        if asked.log is not None:
            _write_log(run, out)
        if asked.profile:
            found["profile"] = _tell_profile(run, out)
        if asked.recording is not None:
            _save(run, asked.recording, force=asked.force)
    if asked.overhead and answer.failure is None and answer.request is not None:
        from inferometer.engines.webgpu.profile.overhead import measure_overhead

        overhead = measure_overhead(engine.runner, answer.request)
        found["overhead"] = overhead.as_json()
        if not out.form:
            print_report(overhead)
    return found


def _profiled(engine: "WebGpuEngine", answer: "DeviceAnswer") -> "ProfiledRun":
    from inferometer.engines.webgpu.profile.profiled_run import ProfiledRun

    assert answer.request is not None  # the conversation always says what it asked for
    return ProfiledRun(
        loaded=engine.loaded,
        adapter=engine.adapter,
        request=answer.request,
        submissions=answer.submissions,
        load=engine.load_phases,
        started_ns=answer.began_ns,
        spec=engine.spec,
        prompt=answer.prompt,
        tokenizer=(engine.tokenizer.name, engine.tokenizer.vocabulary),
        harness=engine.place,
        failure=None if answer.failure is None else answer.failure.message,
        rates=engine.rates,
    )


def _tell_profile(run: "ProfiledRun", out: Output) -> dict[str, Any]:
    from inferometer.engines.webgpu.profile.profile import make_profile
    from inferometer.reports.views.view import content_of

    profile = make_profile(
        run.program, run.submissions, adapter=run.adapter, load=run.load, rates=run.rates, brief=True
    )
    if not out.form:
        print_report(profile)
    return content_of(profile)


def _write_log(run: "ProfiledRun", out: Output) -> None:
    from inferometer.engines.webgpu.profile.engine_log import render_engine_log

    for line in render_engine_log(run):
        out.write(f"{line}\n")


def _save(run: "ProfiledRun", path: str, *, force: bool) -> None:
    from inferometer.engines.webgpu.profile.store import save_profile

    clock_base_ns = time.time_ns() - time.perf_counter_ns()
    save_profile(Path(path), run, clock_base_ns=clock_base_ns, force=force)
    click.echo(f"written: {path}\n  inferometer kernels {path}", err=True)
