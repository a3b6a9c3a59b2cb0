"""A model made ready on WebGPU: its checkpoint opened, a program planned for the adapter, its weights on the device.

What getting ready took is reported by phase. Reading and decoding weights happens inside of the phases that put them on
the device, when an executor asks for them, and is timed there by part of the model.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inferometer.backends.wgsl.cache_formats import CACHE_F16, CacheFormat
from inferometer.backends.wgsl.weight_formats import ALL_FORMATS, WeightFormat
from inferometer.engines.bundled import is_folder
from inferometer.engines.chat.dialogue import Dialogue
from inferometer.engines.chat.tokens import Tokenizer
from inferometer.engines.gguf.model import find_gguf
from inferometer.engines.webgpu.model_spec import Checkpoint, ModelSpec
from inferometer.engines.webgpu.plan.kernel_path import KernelPath, find_path, read_path
from inferometer.engines.webgpu.plan.planner import plan_model
from inferometer.engines.webgpu.plan.selection import Tuned
from inferometer.engines.webgpu.program import Program
from inferometer.engines.webgpu.program_memory import PurposeMemory, memory_of
from inferometer.engines.webgpu.run.adapter_rates import AdapterRates, measure_rates
from inferometer.engines.webgpu.run.executor import (
    Adapter,
    Content,
    DeviceLost,
    Executor,
    LoadedModel,
    LoadPhase,
    Runner,
)
from inferometer.engines.webgpu.run.local_runner import LocalRunner
from inferometer.engines.webgpu.weights.checkpoint import open_checkpoint
from inferometer.errors import InferometerError, InputError, Unavailable

if TYPE_CHECKING:
    from inferometer.engines.webgpu.browser.session import BrowserSession

LARGEST_DEFAULT_CONTEXT = 4096
"""Positions of the cache where neither a prompt nor a user says how many, and the model has as many."""
NUMPY, WGPU, BROWSER, BROWSER_URL = "numpy", "wgpu", "browser", "browser-url"

_clock = time.perf_counter_ns
OnText = Callable[[str], object]
Capacity = int | Callable[[Checkpoint], int]
Tuner = Callable[[KernelPath, Checkpoint, Runner, OnText], Tuned | None]
"""Knows which of a path's candidates are the fastest on a runner's device: `known_choices`, `measured_choices`."""


@dataclass(frozen=True)
class ReadPart:
    """Making the contents of one part of the model: `source_bytes` read from files, `bytes` handed to the device."""

    part: str
    source_bytes: int
    bytes: int
    dur_ns: int


@dataclass
class WebGpuEngine:
    """A model that runs. `context_limit` is what its KV cache holds, which may be less than the model was made for.

    Attributes:
        device: What runs the kernels, in words.
        place: `numpy`, `wgpu` or `browser`.
        dtype: Of matrices; of several formats their names, the most bytes first. All else is float32.
        cache_dtype: Of keys and values in the KV cache.
        weight_bytes: What weights take on the device.
        load_phases: In order, none inside of another.
        reads: Of the phases that load weights, what reading and decoding them took.
        load_ns: From nothing to a model that runs.
        load_notes: Remarks on the weights as they were read, the tokenizer and the path.
        browser: The runner, where it is a browser.
        rates: What the adapter reaches, where that was measured.
    """

    name: str
    spec: ModelSpec
    source: str
    device: str
    place: str
    dtype: str
    cache_dtype: str
    vocabulary: int
    context_limit: int | None
    tokenizer: Tokenizer
    parameters: int
    runner: Runner
    loaded: LoadedModel
    load_phases: Sequence[LoadPhase]
    reads: Sequence[ReadPart]
    load_ns: int
    load_notes: Sequence[str]
    browser: "BrowserSession | None" = None
    rates: AdapterRates | None = None

    @property
    def notes(self) -> Sequence[str]:
        """Remarks on weights, tokenizer, path and, after the last answer, a browser's clocks."""
        return (*self.load_notes, *(() if self.browser is None else self.browser.notes))

    @property
    def adapter(self) -> Adapter:
        """What runs the kernels."""
        return self.runner.adapter

    @property
    def program(self) -> Program:
        """What runs."""
        return self.loaded.program

    @property
    def weight_bytes(self) -> int:
        """Of the buffers that hold weights, what is used."""
        return sum(each.needed_bytes for each in self.memory if each.purpose == "weights")

    @property
    def memory(self) -> Sequence[PurposeMemory]:
        """Buffers of the device by purpose."""
        return memory_of(self.program)

    def close(self) -> None:
        """Give the device back."""
        self.runner.close()


def load_webgpu(
    model: str,
    *,
    seed: int = 0,
    on: str = WGPU,
    capacity_tokens: Capacity | None = None,
    kernel_path: Path | None = None,
    tuner: Tuner | None = None,
    greedy: bool = False,
    weights: WeightFormat | None = None,
    cache: CacheFormat = CACHE_F16,
    browser_cache: Path | None = None,
    measures_rates: bool = False,
    on_text: OnText = lambda what: None,
) -> WebGpuEngine:
    """Open a model, plan its program for an adapter and load it there.

    Args:
        model: A folder with `config.json` and safetensors, a GGUF file or a folder with one, or a bundled or published
            name (random weights).
        seed: Of random weights.
        on: `wgpu` for the machine's best adapter, `wgpu:TEXT` for one whose name has this in it, `numpy`, `browser`
            for a headless Chromium, `browser-url` for a browser that the user opens.
        capacity_tokens: Positions of the KV cache, or what gives them for the opened model; None: `whole_context`.
        kernel_path: A file with a plan; None: the one of the model's family.
        tuner: Asked once the device is open for what chooses among kernels; None: the first that can run.
        greedy: No answer ever draws a token, so kernels that can't draw will do.
        weights: How matrices lie on the device; None: each in its own format, which is float16, or of a GGUF file the
            one that holds its blocks exactly.
        cache: How keys and values lie there.
        browser_cache: Where a headless browser keeps weights for its next load; None: it keeps none.
        measures_rates: Measure first what the adapter reaches, for a profile; notes say why that couldn't be done.
        on_text: Called with what is being made, and each line of a browser's log, which begins with `[browser`.

    Raises:
        InputError: The model or the kernel path can't be run.
        Unavailable: No such adapter or browser, a limit or feature that is missing, too little memory.
    """
    phases = _Phases()
    path = None if kernel_path is None else read_path(kernel_path)
    on_text(f"the model {model}")
    with phases.timed("open"):
        checkpoint = open_checkpoint(model, seed=seed)
        capacity = _capacity(checkpoint, capacity_tokens)
        tokenizer: Tokenizer = checkpoint.tokenizer
    with phases.timed("adapter"):
        mark = f"{_mark_of(model, seed)} {'own' if weights is None else weights.name}"
        browser = _open_browser(on, mark, browser_cache, on_text)
        runner = _open_local(on, on_text) if browser is None else browser
    try:
        rates, rate_notes = None, list[str]()
        if measures_rates and isinstance(runner, LocalRunner):
            on_text("what the adapter reaches")
            with phases.timed("rates"):
                rates, rate_notes = _rates_of(runner)
        elif measures_rates:
            rate_notes = ["the memory rate of a browser's device isn't measured: its page runs whole answers only"]
        on_text("a program")
        tuned = None
        if tuner is not None:
            on_text("a choice of kernels")
            with phases.timed("tune"):
                tuned = tuner(path or find_path(checkpoint.spec.family), checkpoint, runner, on_text)
        with phases.timed("plan"):
            loaded = plan_model(
                checkpoint,
                runner.adapter,
                capacity=capacity,
                path=path,
                tuned=tuned,
                greedy=greedy,
                weights=weights,
                cache=cache,
            )
        reading = _Reading()
        phases.found += runner.load(loaded.program, reading.watched(loaded.contents), on_text)
    except BaseException:
        runner.close()
        raise
    return WebGpuEngine(
        name=checkpoint.spec.name,
        spec=checkpoint.spec,
        source=checkpoint.source,
        device=words_for(runner.adapter),
        place="browser" if browser is not None else on.partition(":")[0],
        dtype=_words_for_formats(loaded.matrix_bytes),
        cache_dtype=cache.dtype.name,
        vocabulary=checkpoint.spec.vocab,
        context_limit=capacity,
        tokenizer=tokenizer,
        parameters=loaded.parameters,
        runner=runner,
        loaded=loaded,
        load_phases=tuple(phases.found),
        reads=reading.parts(),
        load_ns=_clock() - phases.began_ns,
        load_notes=tuple(dict.fromkeys((*checkpoint.notes, *loaded.notes, *rate_notes))),
        browser=browser,
        rates=rates,
    )


def known_choices(path: KernelPath, checkpoint: Checkpoint, runner: Runner, on_text: OnText) -> Tuned | None:
    """A `Tuner`: what was measured on this adapter before.

    Raises:
        InputError: The file of measurements isn't ours.
    """
    from inferometer.engines.webgpu.tune.tuned_file import tuned_choices

    return tuned_choices(runner.adapter)


def measured_choices(path: KernelPath, checkpoint: Checkpoint, runner: Runner, on_text: OnText) -> Tuned | None:
    """A `Tuner`: measures now, on a second device of the same adapter, and keeps what it finds.

    Raises:
        InputError: The runner is a browser; the file of measurements isn't ours.
        Unavailable: The adapter has no timestamps.
    """
    from inferometer.engines.webgpu.tune.tuner import tune

    if not isinstance(runner, LocalRunner):
        raise InputError("tuning: expected wgpu or NumPy, found a browser", hint="Leave --tune out there.")
    tune(checkpoint, _like(runner), path=path, on_text=on_text)
    return known_choices(path, checkpoint, runner, on_text)


def whole_context(spec: ModelSpec, context: int | None = None) -> int:
    """Positions for a conversation of any length: `context` where it is given.

    Raises:
        InputError: The model has fewer.
    """
    limit = spec.context_limit
    if context is None:
        return LARGEST_DEFAULT_CONTEXT if limit is None else min(limit, LARGEST_DEFAULT_CONTEXT)
    if limit is not None and context > limit:
        raise InputError(
            f"context: expected at most the {limit:,} positions that {spec.name} was made for, found {context:,}"
        )
    return context


def context_for(
    checkpoint: Any, text: str, new_tokens: int, context: int | None = None, *, uses_template: bool = True
) -> int:
    """Positions for one answer to this question: its prompt and the answer, `context` of them at most.

    Raises:
        InputError: The prompt doesn't fit, or is none.
    """
    spec: ModelSpec = checkpoint.spec
    limit = spec.context_limit if context is None else whole_context(spec, context)
    speaker = _Speaker(spec.name, spec.vocab, limit, checkpoint.tokenizer)
    dialogue = Dialogue(speaker, new_tokens, stop_at_eos=True, uses_template=uses_template)
    prompt = dialogue.prompt_with(text)
    return len(prompt) + dialogue.room_after(prompt)


def words_for(adapter: Adapter) -> str:
    """An adapter in words: its name, backend and kind, without those that say nothing new."""
    more = [word for word in (adapter.backend, adapter.kind) if word not in ("unknown", adapter.name)]
    return f"{adapter.name} ({', '.join(more)})" if more else adapter.name


@dataclass
class _Speaker:
    """A model that isn't loaded yet, as far as a prompt needs one."""

    name: str
    vocabulary: int
    context_limit: int | None
    tokenizer: Tokenizer


def _capacity(checkpoint: Any, wanted: Capacity | None) -> int:
    if wanted is None:
        return whole_context(checkpoint.spec)
    return whole_context(checkpoint.spec, wanted) if isinstance(wanted, int) else wanted(checkpoint)


def _open_local(on: str, on_text: OnText) -> Runner:
    kind, _, name = on.partition(":")
    if on == NUMPY:
        from inferometer.engines.webgpu.run.numpy_executor import NumpyExecutor

        return LocalRunner(NumpyExecutor())
    if kind == WGPU:
        from inferometer.engines.webgpu.run.wgpu_executor import open_wgpu

        on_text("an adapter")
        return LocalRunner(open_wgpu(name or None))
    raise InferometerError(f"{on}: expected numpy, wgpu, wgpu:NAME, browser or browser-url")


def _rates_of(runner: LocalRunner) -> tuple[AdapterRates | None, list[str]]:
    """What the adapter reaches; without that, a note that says why."""
    try:
        rates = measure_rates(runner.executor)
    except DeviceLost:
        raise
    except Unavailable as error:  # too little memory for two copies of what is moved
        return None, [f"{runner.adapter.name}: its memory rate can't be measured: {error.message}"]
    return rates, [] if rates else [f"{runner.adapter.name}: its memory rate can't be measured without timestamps"]


def _like(runner: LocalRunner) -> Executor:
    """A second executor on a runner's adapter."""
    from inferometer.engines.webgpu.run.numpy_executor import NumpyExecutor

    if isinstance(runner.executor, NumpyExecutor):
        return NumpyExecutor()
    from inferometer.engines.webgpu.run.wgpu_executor import open_wgpu

    return open_wgpu(runner.adapter.name)


def _open_browser(on: str, source: str, cache: Path | None, on_text: OnText) -> "BrowserSession | None":
    if on not in (BROWSER, BROWSER_URL):
        return None
    from inferometer.engines.webgpu.browser.session import open_browser

    on_text("a browser")
    return open_browser(on_text=on_text, url_only=on == BROWSER_URL, cache=cache, source=source)


def _words_for_formats(matrix_bytes: Mapping[str, int]) -> str:
    names = sorted(matrix_bytes, key=lambda name: -matrix_bytes[name])
    return ALL_FORMATS[names[0]].words if len(names) == 1 else ", ".join(names)


def _mark_of(model: str, seed: int) -> str:
    """What tells a model's weights from others': times and sizes of its files, or name and seed."""
    gguf = find_gguf(model)
    if gguf is None and not is_folder(model):
        return f"{model} seed {seed}"
    folder = Path(model) if gguf is None else gguf.parent
    paths = folder.glob("*.safetensors") if gguf is None else [gguf]
    files = sorted((path.name, path.stat()) for path in paths)
    return " ".join([str(folder.resolve()), *(f"{name} {stat.st_size} {stat.st_mtime_ns}" for name, stat in files)])


class _Phases:
    """Parts of getting ready, in order."""

    def __init__(self) -> None:
        self.began_ns = _clock()
        self.found: list[LoadPhase] = []

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """The block is a phase of this name."""
        began_ns = _clock()
        yield
        self.found.append(LoadPhase(name, began_ns, _clock() - began_ns))


class _Reading:
    """Times what makes contents, by part."""

    def __init__(self) -> None:
        self._found: dict[str, ReadPart] = {}

    def watched(self, contents: Mapping[str, Content]) -> dict[str, Content]:
        """The same contents, whose reading is timed when an executor asks for it."""
        return {name: replace(content, read=self._timed(content)) for name, content in contents.items()}

    def parts(self) -> tuple[ReadPart, ...]:
        """In the order in which they were first read."""
        return tuple(self._found.values())

    def _timed(self, content: Content) -> Callable[[], Any]:
        def read() -> Any:
            began_ns = _clock()
            array = content.read()
            dur_ns = _clock() - began_ns
            known = self._found.get(content.part, ReadPart(content.part, 0, 0, 0))
            self._found[content.part] = ReadPart(
                content.part,
                known.source_bytes + content.source_bytes,
                known.bytes + array.nbytes,
                known.dur_ns + dur_ns,
            )
            return array

        return read
