"""A run as an engine's log: loading, choices of kernels, a profile report a step, results.

The grammar is that of `formats/webgpu_log`, which reads it back: lines as `[wgpu:log] [12.345ms][Module] text`, and
reports as tables of label, time and share. Titles of reports show the step's context and wall time too, since the host
does other things between two steps. Times have as many digits as the shortest kernel needs. The clock begins with
loading. Without timestamps there are no reports.
"""

import math
import re
from collections.abc import Iterator, Sequence

import polars as pl

from inferometer.engines.webgpu.profile.dispatch_times import dispatch_times
from inferometer.engines.webgpu.profile.metrics import (
    COMMAND,
    kernel_path_of,
    loads_of,
    memory_entries,
    one_line,
    run_metrics,
)
from inferometer.engines.webgpu.profile.profiled_run import (
    ProfiledRun,
    decode_passes,
    end_of,
    prefill_tokens,
    step_phase,
)
from inferometer.engines.webgpu.profile.tables import step_rows
from inferometer.engines.webgpu.run.executor import Submission

_MOST_PROMPT = 2_000  # characters of the prompt
_SIGNIFICANT = 3  # digits of the shortest time, at least
_TITLE = {"prefill": "Prefill", "decode": "Batch decode", "mixed": "Mixed prefill and decode"}
_SPLITS = re.compile(r"[\s,|()\"]+")  # what ends a value in a line of the harness


def render_engine_log(run: ProfiledRun, *, tables: bool = True) -> Iterator[str]:
    """The lines of the log, without line ends; `tables`: with the rows of the profile reports."""
    writer = _Writer(run)
    yield from writer.start()
    yield from writer.load()
    yield from writer.choices()
    yield from writer.steps(tables=tables)
    yield from writer.end()


class _Writer:
    """Writes lines with times that never go back, as the lines of one process don't."""

    def __init__(self, run: ProfiledRun) -> None:
        self.run = run
        self._at_ns = 0
        self._model = _SPLITS.sub("_", run.program.name.strip()) or "model"

    def start(self) -> Iterator[str]:
        """Who runs what on which adapter."""
        run = self.run
        yield f"[progress] {run.harness} launching WebGPU engine..."
        yield f"[progress] {run.harness} resolved modelUrl={self._model}"
        features = "/".join(sorted(run.adapter.features)) or "none"
        limit = _limit(run.adapter.most_buffer_bytes)
        yield f"[{run.harness}:log] [GPU] {one_line(run.adapter.name)}, {features}, {limit}"
        path = kernel_path_of(run)
        counts = f"{path['decode_steps']} decode steps, {path['kernels']} kernels, source={path['source']}"
        yield self._say("Pipeline", f"KernelPath: {path['name']} ({counts})")
        if (spec := run.spec) is not None:
            dims = f"{spec.layers}L/{spec.hidden}H/{spec.heads}heads ({spec.head_dim}dim)"
            yield self._say("Pipeline", f"{dims}, kernelPath={path['name']}")
        if run.tokenizer is not None:
            source, tokens = run.tokenizer
            yield self._say("Tokenizer", f"Loaded {one_line(source)} {tokens} tokens")
            if tokens != (vocab := run.program.vocabulary):
                words = f"Tokenizer vocabSize={tokens} differs from model={vocab}, using model size"
                yield self._say("Pipeline", words)

    def load(self) -> Iterator[str]:
        """Parts of loading, with bytes and rates, and the memory of the device before and after."""
        memory = [(entry["time_ns"], f"Memory ({entry['when']})", entry) for entry in memory_entries(self.run)]
        parts = [(entry["time_ns"], "", entry) for entry in loads_of(self.run)]
        yield self._say("Loader", f"Loading: {self._model}")
        for at_ns, when, entry in sorted([memory[0], *parts, *memory[1:]], key=lambda each: each[0]):
            yield self._say("Loader", _memory_line(when, entry) if when else _load_line(entry), at_ns=at_ns)
        for note in self.run.loaded.notes:
            yield self._say("Loader", f"Note: {one_line(note)}", "warning")
        yield self._say("Pipeline", "Model loaded successfully")

    def choices(self) -> Iterator[str]:
        """The kernel of every operator, and why it is that one."""
        at_ns = self.run.request_ns - self.run.zero_ns
        for one in self.run.loaded.selections:
            where = f"{one.phase} {one.role}" if one.role else one.phase
            text = f"{one.op} variant={one.kernel} reason={where}: {one_line(one.reason)}"
            yield self._say("KernelSelect", text, at_ns=at_ns)

    def steps(self, *, tables: bool) -> Iterator[str]:
        """A report per step that has timestamps."""
        run = self.run
        times = dispatch_times(run.program, run.submissions)
        sums = label_sums(times)
        digits = _digits(sums)
        parts = sums.partition_by("step", as_dict=True, maintain_order=True)
        untimed = dict(step_rows(times, run.submissions).select("step", "untimed").iter_rows())
        for number, one in enumerate(run.submissions):
            at_ns = end_of(one) - run.zero_ns
            rows = parts.get((number,))
            if rows is None:
                continue
            if untimed[number]:
                words = f"{untimed[number]} of {sum(len(p.dispatches(run.program)) for p in one.passes)} passes untimed"
                yield self._say("CommandRecorder", words, "warning", at_ns=at_ns)
            yield self._say("Profile", f"{_title(one)}:", at_ns=at_ns)
            yield self._say("Profile", "GPU Profile Report")
            yield from _table(rows, digits) if tables else ()

    def end(self) -> Iterator[str]:
        """Times and rates; a rate that nothing shows is left out."""
        run, metrics = self.run, run_metrics(self.run)
        perf = metrics["perf"]
        times = {"TTFT": "ttft_ns", "Prefill": "prefill_ns", "Decode": "decode_ns"}
        text = " | ".join(f"{name}: {_ms(perf[key])}" for name, key in times.items() if key in perf)
        rate = f" @ {perf['decode_tokens_per_s']:.2f} tok/s" if "decode_tokens_per_s" in perf else ""
        yield self._say("Perf", f"{text} ({perf['decode_tokens']} tokens{rate})", at_ns=metrics["duration_ns"])
        if run.failure is not None:
            yield f"[{run.harness}:error] {one_line(run.failure)}"
        yield self._say("Pipeline", "Unloaded")
        outcome = f"passed={metrics['passed']} failed={metrics['failed']} duration={_ms(metrics['duration_ns'])}"
        yield f"[{metrics['result']}] {COMMAND} model={self._model} {outcome}"
        if "prompt" in metrics:
            yield f'[metrics] prompt="{metrics["prompt"][:_MOST_PROMPT]}"'
        load = f"load={_ms(metrics['load_ns'])} " if "load_ns" in metrics else ""
        counts = ("prefill_tokens", "decode_tokens", "max_tokens")
        yield f"[metrics] {load}{' '.join(f'{_camel(key)}={metrics[key]}' for key in counts)}"
        keys = [key for key in ("ttft_ns", "prefill_ns", "decode_ns", "total_ns") if key in metrics]
        yield f"[metrics] {' '.join(f'{key[:-3]}={_ms(metrics[key])}' for key in keys)}"
        rates = {name: metrics.get(f"{name}_tokens_per_s") for name in ("total", "prefill", "decode")}
        yield "[metrics] tok/s " + " ".join(f"{name}={rate:.2f}" for name, rate in rates.items() if rate is not None)

    def _say(self, module: str, text: str, level: str = "log", *, at_ns: int | None = None) -> str:
        self._at_ns = max(self._at_ns, at_ns or 0)
        return f"[{self.run.harness}:{level}] [{_ms(self._at_ns)}][{module}] {text}"


def label_sums(times: pl.DataFrame) -> pl.DataFrame:
    """Timed dispatches by step and label, with layers, the most time first: `step`, `label`, `total_ns`."""
    sums = times.filter(pl.col("dur_ns").is_not_null()).group_by("step", "label").agg(pl.col("dur_ns").sum())
    return sums.rename({"dur_ns": "total_ns"}).sort("step", "total_ns", "label", descending=[False, True, False])


def _title(one: Submission) -> str:
    n = prefill_tokens(one) + decode_passes(one)
    return f"{_TITLE[step_phase(one)]} (N={n}, context={one.passes[0].position}, wall={_ms(one.wall_ns)})"


def _table(rows: pl.DataFrame, digits: int) -> Iterator[str]:
    """Wide enough for the longest label, so that columns are always parted by spaces."""
    labels: Sequence[str] = rows["label"].to_list()
    total_ns = int(rows["total_ns"].sum())
    name, time = max(25, *(len(label) + 1 for label in labels)), max(12, len(f"{total_ns / 1e6:.{digits}f}") + 2)
    rule = "─" * (name + time + 8)
    yield from (rule, f"{'Kernel':<{name}}{'Time (ms)':>{time}}{'%':>8}", rule)
    for label, ns in zip(labels, rows["total_ns"].to_list(), strict=True):
        share = 100 * ns / total_ns if total_ns else 0.0
        yield f"{label:<{name}}{ns / 1e6:>{time}.{digits}f}{share:>8.1f}"
    yield from (rule, f"{'TOTAL':<{name}}{total_ns / 1e6:>{time}.{digits}f}{100:>8.1f}", "")


def _digits(sums: pl.DataFrame) -> int:
    """Decimals of a ms that the shortest time needs; six are whole ns."""
    least = sums.filter(pl.col("total_ns") > 0)["total_ns"].min()
    if not isinstance(least, int):
        return 2
    return min(6, max(2, _SIGNIFICANT - 1 - math.floor(math.log10(least / 1e6))))


def _load_line(entry: dict[str, object]) -> str:
    name = str(entry["what"]).capitalize()
    dur_ns, size, per_s = entry["dur_ns"], entry.get("bytes"), entry.get("bytes_per_s")
    time = _ms(dur_ns) if isinstance(dur_ns, int) else ""
    if not isinstance(size, int) or not isinstance(per_s, float):
        return f"{name}: nothing moved in {time}"
    return f"{name}: {_size(size)} in {time} ({_size(per_s)}/s)"


def _memory_line(when: str, entry: dict[str, int]) -> str:
    gpu = f"GPU={_size(entry['gpu_bytes'])} ({entry['gpu_active']} active, 0 pooled, peak={_size(entry['gpu_bytes'])})"
    counts = f"Layers={entry['layers']}, GPUBuffers={entry['buffers']}"
    return f"[{entry['elapsed_ns'] / 1e9:.3f}s] {when}: | {gpu} | {counts}"


def _ms(ns: int) -> str:
    return f"{ns / 1e6:.3f}ms"


def _camel(key: str) -> str:
    first, *rest = key.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _size(size: float) -> str:
    """As engines print bytes: units are powers of 1024."""
    for unit, scale in (("GB", 2**30), ("MB", 2**20), ("KB", 2**10)):
        if size >= scale:
            return f"{size / scale:.2f} {unit}"
    return f"{size:.0f} B"


def _limit(size: int) -> str:
    """The largest unit that is exact; where there is none, as other sizes."""
    for unit, scale in (("GB", 2**30), ("MB", 2**20), ("KB", 2**10)):
        if size and size % scale == 0:
            return f"{size // scale}{unit}"
    return _size(size)
