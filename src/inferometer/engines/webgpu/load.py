"""A model made ready on WebGPU: its checkpoint opened, a program planned for the adapter, its weights on the device.

What getting ready took is reported by phase. Reading and decoding weights happens inside of the phases that put them on
the device, when an executor asks for them, and is timed there by part of the model.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from inferometer.backends.wgsl.cache_formats import CACHE_F16, CacheFormat
from inferometer.backends.wgsl.weight_formats import ALL_FORMATS, WeightFormat
from inferometer.engines.bundled import is_folder
from inferometer.engines.gguf.model import find_gguf
from inferometer.engines.webgpu.capacity import Capacity, positions_for
from inferometer.engines.webgpu.engine import ReadPart, WebGpuEngine
from inferometer.engines.webgpu.model_spec import Checkpoint
from inferometer.engines.webgpu.plan.kernel_path import KernelPath
from inferometer.engines.webgpu.plan.path_files import find_path, read_path
from inferometer.engines.webgpu.plan.planner import plan_model
from inferometer.engines.webgpu.run.adapter_rates import AdapterRates, measure_rates
from inferometer.engines.webgpu.run.executor import Content, DeviceLost, LoadedModel, LoadPhase, OnText, Runner
from inferometer.engines.webgpu.run.local_runner import LocalRunner
from inferometer.engines.webgpu.runners import WGPU, describe_adapter, open_browser_named, open_local
from inferometer.engines.webgpu.tune.choices import Tuner
from inferometer.engines.webgpu.weights.checkpoint import open_checkpoint
from inferometer.errors import Unavailable

_clock = time.perf_counter_ns


@dataclass(frozen=True)
class LoadOptions:
    """Where and how a model is made ready.

    Attributes:
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
    """

    seed: int = 0
    on: str = WGPU
    capacity_tokens: Capacity | None = None
    kernel_path: Path | None = None
    tuner: Tuner | None = None
    greedy: bool = False
    weights: WeightFormat | None = None
    cache: CacheFormat = CACHE_F16
    browser_cache: Path | None = None
    measures_rates: bool = False


def load_webgpu(model: str, options: LoadOptions | None = None, *, on_text: OnText = lambda what: None) -> WebGpuEngine:
    """Open a model, plan its program for an adapter and load it there.

    Args:
        model: A folder with `config.json` and safetensors, a GGUF file or a folder with one, or a bundled or published
            name (random weights).
        options: None: the defaults.
        on_text: Called with what is being made, and each line of a browser's log, which begins with `[browser`.

    Raises:
        InputError: The model or the kernel path can't be run.
        Unavailable: No such adapter or browser, a limit or feature that is missing, too little memory.
    """
    options = options or LoadOptions()
    phases = _Phases()
    path = None if options.kernel_path is None else read_path(options.kernel_path)
    on_text(f"the model {model}")
    with phases.timed("open"):
        checkpoint = open_checkpoint(model, seed=options.seed)
        capacity = positions_for(checkpoint, options.capacity_tokens)
    with phases.timed("adapter"):
        mark = f"{_mark_of(model, options.seed)} {'own' if options.weights is None else options.weights.name}"
        browser = open_browser_named(options.on, mark, options.browser_cache, on_text)
        runner = open_local(options.on, on_text) if browser is None else browser
    try:
        rates, rate_notes = _rates_of(runner, phases, on_text) if options.measures_rates else (None, [])
        on_text("a program")
        loaded = _plan(checkpoint, runner, path, capacity, options, phases, on_text)
        reading = _Reading()
        phases.found += runner.load(loaded.program, reading.watched(loaded.contents), on_text)
    except BaseException:
        runner.close()
        raise
    return WebGpuEngine(
        name=checkpoint.spec.name,
        spec=checkpoint.spec,
        source=checkpoint.source,
        device=describe_adapter(runner.adapter),
        place="browser" if browser is not None else options.on.partition(":")[0],
        dtype=_words_for_formats(loaded.matrix_bytes),
        cache_dtype=options.cache.dtype.name,
        vocabulary=checkpoint.spec.vocab,
        context_limit=capacity,
        tokenizer=checkpoint.tokenizer,
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


def _plan(
    checkpoint: Checkpoint,
    runner: Runner,
    path: KernelPath | None,
    capacity: int,
    options: LoadOptions,
    phases: "_Phases",
    on_text: OnText,
) -> LoadedModel:
    tuned = None
    if options.tuner is not None:
        on_text("a choice of kernels")
        with phases.timed("tune"):
            tuned = options.tuner(path or find_path(checkpoint.spec.family), checkpoint, runner, on_text)
    with phases.timed("plan"):
        return plan_model(
            checkpoint,
            runner.adapter,
            capacity=capacity,
            path=path,
            tuned=tuned,
            greedy=options.greedy,
            weights=options.weights,
            cache=options.cache,
        )


def _rates_of(runner: Runner, phases: "_Phases", on_text: OnText) -> tuple[AdapterRates | None, list[str]]:
    """What the adapter reaches; without that, a note that says why."""
    if not isinstance(runner, LocalRunner):
        return None, ["the memory rate of a browser's device isn't measured: its page runs whole answers only"]
    on_text("what the adapter reaches")
    with phases.timed("rates"):
        try:
            rates = measure_rates(runner.executor)
        except DeviceLost:
            raise
        except Unavailable as error:  # too little memory for two copies of what is moved
            return None, [f"{runner.adapter.name}: its memory rate can't be measured: {error.message}"]
    return rates, [] if rates else [f"{runner.adapter.name}: its memory rate can't be measured without timestamps"]


def _words_for_formats(matrix_bytes: Mapping[str, int]) -> str:
    names = sorted(matrix_bytes, key=lambda name: -matrix_bytes[name])
    return ALL_FORMATS[names[0]].words if len(names) == 1 else ", ".join(names)


def _mark_of(model: str, seed: int) -> str:
    """What distinguishes a model's weights from others': times and sizes of its files, or name and seed."""
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
