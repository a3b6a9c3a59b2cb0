"""Synthetic labelled pairs of runs: `make_pair` gives two traces as the LatencyPrism reader fills them.

A pair is a machine with eight GPUs (counters.py), a workload (workloads.py), the noise of real runs (noise.py) and what
the case does to the candidate (effects.py). The base is the same without the fault. Everything is drawn from
`numpy.random.default_rng([seed, …])`, with a stream of its own for the machine, the times and the counters of each run:
the same case and seed give the same pair.

Recording is imperfect as in the real runs: the first and last cycles hold GPU functions in part or not at all, in three
runs of ten the last cycle is cut as a whole, functions have metrics only in cycles with a counter tick, pooled GPU
counters don't say their device and come in another order at each tick, the first tick of a process may be missing.

The method to be tested plays no part: nothing here knows a threshold, a score or a role.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from tests.faults.case import Case
from tests.faults.counters import CORES, Machine, Samples, Ticks, machine_of, run_counters, tick_times
from tests.faults.effects import GPU_MEMORY_BYTES, MEASURED_BY, NOTHING, OF_GPUS, Effect, effect_of, together
from tests.faults.noise import Floats
from tests.faults.workloads import LAYERS, Function, Steps, run_steps, workload

from inferometer import Trace
from inferometer.trace.builder import TraceBuilder
from inferometer.trace.facts import Facts

STEP_ANCHOR = "Scheduler.run_batch"
LAYER_ANCHOR = "DecoderLayer._wrapped_call_impl"
CPU_MAX_MHZ = 4000.0
_START_NS = 1_763_000_000_000_000_000
_TABLES = ("function_times", "function_metrics", "counters", "steps")
_GPU = ("gpu_compute",)
_ON_HOST = {
    "cpu_frequency": ("oncpu",),
    "host_cpu_usage": ("oncpu", "runq"),
    "process_cpu_usage": ("oncpu", "runq"),
    "disk_usage": ("disk_read_and_write",),
    "disk_read_rate": ("disk_read_and_write",),
    "disk_write_rate": ("disk_read_and_write",),
    "host_mem_usage": ("cpu_os_syscall_mem",),
}
_ON_GPU = {
    **dict.fromkeys(("gpu_frequency", "gpu_sm_frequency", "gpu_mem_frequency", "gpu_usage", "gpu_mem_used"), _GPU),
    **dict.fromkeys(("gpu_sm_util", "gpu_sm_occupancy", "gpu_temperature", "gpu_power", "process_gpu_usage"), _GPU),
    **dict.fromkeys(("gpu_link_transmit", "gpu_link_receive"), ("gpu_compute", "gpu_comm", "gpu_memcpy_d2d")),
    **dict.fromkeys(("gpu_pcie_transmit", "gpu_pcie_receive"), ("gpu_memcpy_h2d", "gpu_memcpy_d2h")),
}
_IN_PERCENT = {
    "cpu_frequency": 100 / CPU_MAX_MHZ,
    "gpu_mem_used": 100 / GPU_MEMORY_BYTES,
    "process_cpu_usage": 1 / CORES,
}
_PERCENT_OF = {"cpu_frequency": "% of maximum", "gpu_mem_used": "%", "process_cpu_usage": "% of all cores"}


def make_pair(case: Case, seed: int) -> tuple[Trace, Trace]:
    """Base and candidate of a case. `case.seed` is the seed of its own in the tables of results."""
    machine = machine_of(case, np.random.default_rng([seed, 0]))
    effects = rank_effects(case)
    base = _make_run(case, machine, [NOTHING] * case.processes, seed, 0)
    candidate = _make_run(case, machine, effects, seed, 1)
    return (candidate, base) if case.swapped else (base, candidate)


def rank_effects(case: Case) -> list[Effect]:
    """What the candidate suffers on each rank: with `one_gpu`, GPU faults hit the first only."""
    shared = together(effect_of(f, case.severity) for f in case.faults if not (case.one_gpu and f in OF_GPUS))
    of_first = together(effect_of(f, case.severity) for f in case.faults if case.one_gpu and f in OF_GPUS)
    return [together([shared, of_first])] + [shared] * (case.processes - 1)


@dataclass(frozen=True)
class _Cycles:
    """Cycles as recorded: `calls` and `time_ns` by rank and function, of shape (cycles,)."""

    functions: tuple[Function, ...]
    anchor: str
    start_ns: Ticks
    dur_ns: Ticks
    calls: list[list[Floats]]
    time_ns: list[list[Floats]]


def _make_run(case: Case, machine: Machine, effects: Sequence[Effect], seed: int, which: int) -> Trace:
    rng = np.random.default_rng([seed, 1, which])
    work = workload(case.workload, case.processes)
    for fault in case.faults if which else ():
        work = work.replaced(fault, case.severity)
    steps = run_steps(work, effects, case.cycles[which], rng)
    start_ns = _START_NS + which * 1_000_000_000_000
    cycles = _as_recorded(_layers(steps, start_ns, rng) if case.layer_anchor and which else _whole(steps, start_ns, rng), rng)  # noqa: E501 # fmt: skip
    restarted = which * (seed >> 3 & 1)
    processes = [700_000 + seed % 90_000 + 10_007 * restarted + rank for rank in range(case.processes)]
    rng = np.random.default_rng([seed, 2, which])
    time_ns = tick_times(case.ticks[which], start_ns, rng)
    samples = run_counters(case, machine, effects, steps, time_ns, rng)
    hidden = set().union(*(MEASURED_BY.get(f, set()) for f in case.faults)) if not case.cause_recorded else set()
    samples = [s for s in samples if s.metric not in hidden]
    return _trace(case, machine, cycles, samples, processes, rng)


def _whole(steps: Steps, start_ns: int, rng: np.random.Generator) -> _Cycles:
    """One cycle a step."""
    dur_ns = _whole_us(steps.step_ns)
    calls = [[_calls(f, len(dur_ns), rng) for f in steps.functions] for _ in steps.time_ns]
    times = [
        [time * call / f.calls for f, time, call in zip(steps.functions, rank, counted, strict=True)]
        for rank, counted in zip(steps.time_ns, calls, strict=True)
    ]
    return _Cycles(steps.functions, STEP_ANCHOR, _starts(start_ns, dur_ns), dur_ns, calls, times)


def _layers(steps: Steps, start_ns: int, rng: np.random.Generator) -> _Cycles:
    """64 cycles a step: calls that don't divide among the layers, and 6 % of the time, fall to the last one."""
    n = len(steps.step_ns)
    shares = np.full((n, LAYERS), 0.94 / LAYERS) * np.exp(rng.normal(0, 0.03, (n, LAYERS)))
    shares[:, -1] = 1 - shares[:, :-1].sum(axis=1)
    dur_ns = _whole_us((steps.step_ns[:, None] * shares).ravel())
    calls, times = [], []
    for rank in steps.time_ns:
        split = [_split(f, time, rng) for f, time in zip(steps.functions, rank, strict=True)]
        calls.append([counted for counted, _ in split])
        times.append([time for _, time in split])
    return _Cycles(steps.functions, LAYER_ANCHOR, _starts(start_ns, dur_ns), dur_ns, calls, times)


def _split(f: Function, time: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    counted = np.full((len(time), LAYERS), float(f.calls // LAYERS))
    counted[:, -1] += f.calls % LAYERS
    weights = counted * np.exp(rng.normal(0, 0.02, counted.shape))
    return counted.ravel(), (time[:, None] * weights / weights.sum(axis=1, keepdims=True)).ravel()


def _calls(f: Function, n: int, rng: np.random.Generator) -> Floats:
    """Calls of each step: host functions that are called a thousand times vary by 1 %."""
    varies = not f.on_gpu and f.calls > 1000
    return np.round(f.calls * (1 + rng.normal(0, 0.01, n))) if varies else np.full(n, float(f.calls))


def _whole_us(values: Floats) -> Ticks:
    return np.round(values / 1000).astype(np.int64) * 1000


def _starts(start_ns: int, dur_ns: Ticks) -> Ticks:
    return start_ns + np.concatenate([[0], np.cumsum(dur_ns)[:-1]]).astype(np.int64)


def _as_recorded(cycles: _Cycles, rng: np.random.Generator) -> _Cycles:
    """The edges of the recording: GPU functions in part, and sometimes a last cycle that was cut."""
    n = len(cycles.dur_ns)
    seen = np.ones(n)
    edge = max(1, round(0.08 * n)) if cycles.anchor == LAYER_ANCHOR else 1
    for side in (slice(0, edge), slice(n - edge, n)):
        seen[side] = 0.0 if rng.random() < 0.5 else rng.uniform(0.1, 0.8)
    cut = float(rng.uniform(0.3, 0.9)) if rng.random() < 0.3 else 1.0
    last = np.ones(n)
    last[-1] = cut
    dur_ns = cycles.dur_ns.copy()
    dur_ns[-1] = int(dur_ns[-1] * cut) // 1000 * 1000
    calls = [
        [np.floor(c * (seen * last if f.on_gpu else last)) for f, c in zip(cycles.functions, rank, strict=True)]
        for rank in cycles.calls
    ]
    times = [
        [t * kept / np.maximum(c, 1) for t, kept, c in zip(time, rank, whole, strict=True)]
        for time, rank, whole in zip(cycles.time_ns, calls, cycles.calls, strict=True)
    ]
    return _Cycles(cycles.functions, cycles.anchor, cycles.start_ns, dur_ns, calls, times)


def _trace(
    case: Case,
    machine: Machine,
    cycles: _Cycles,
    samples: Sequence[Samples],
    processes: Sequence[int],
    rng: np.random.Generator,
) -> Trace:
    out = TraceBuilder(_TABLES)
    if case.recorded != "counters":
        times = _function_times(cycles, machine, processes)
        _add(out, "function_times", times)
        _add(out, "steps", _steps(cycles, processes))
        if case.recorded != "functions":
            _add(out, "function_metrics", _function_metrics(cycles, times, machine, samples, processes))
    if case.recorded in ("all", "counters"):
        _add(out, "counters", _counters(case, samples, processes, rng))
    return out.finish(Facts(format="by-hand", source=case.name))


def _add(out: TraceBuilder, table: str, frame: pl.DataFrame) -> None:
    out.add(table, frame.height, {column: frame[column] for column in frame.columns})


def _steps(cycles: _Cycles, processes: Sequence[int]) -> pl.DataFrame:
    n = len(cycles.dur_ns)
    columns = {"step": np.arange(1, n + 1), "start_ns": cycles.start_ns, "dur_ns": cycles.dur_ns}
    one = pl.DataFrame(columns).with_columns(anchor=pl.lit(cycles.anchor), source=pl.lit("recorded"))
    return pl.concat(one.with_columns(process=pl.lit(process, pl.Int64)) for process in processes)


def _function_times(cycles: _Cycles, machine: Machine, processes: Sequence[int]) -> pl.DataFrame:
    """Rows in order of cycle, process and function; a function without calls in a cycle has none."""
    number = np.arange(1, len(cycles.dur_ns) + 1)
    parts = []
    for rank, process in enumerate(processes):
        for f, calls, time in zip(cycles.functions, cycles.calls[rank], cycles.time_ns[rank], strict=True):
            dur_ns = np.maximum(1, np.round(time)).astype(np.int64)
            texts = {"function": f.name, "class": f.cls, "device": f"gpu:{machine.own[rank]}" if f.on_gpu else "host"}
            columns = {
                "cycle": number,
                "calls": calls.astype(np.int64),
                "dur_ns": dur_ns,
                "cycle_dur_ns": cycles.dur_ns,
            }
            part = pl.DataFrame(columns).with_columns(
                process=pl.lit(process, pl.Int64), **{name: pl.lit(text) for name, text in texts.items()}
            )
            parts.append(part.filter(pl.col("calls") > 0))
    beta = pl.col("dur_ns") / pl.col("cycle_dur_ns")
    rows = pl.concat(parts).with_columns(anchor=pl.lit(cycles.anchor), beta=beta)
    return rows.sort("cycle", "process", maintain_order=True)


def _function_metrics(
    cycles: _Cycles, times: pl.DataFrame, machine: Machine, samples: Iterable[Samples], processes: Sequence[int]
) -> pl.DataFrame:
    """Every function of a class that goes with the metric has the same value in a cycle: the mean of its ticks."""
    parts = []
    for metric in samples:
        classes = _ON_HOST.get(metric.metric) or _ON_GPU.get(metric.metric)
        if classes is None:
            continue
        ranks = range(len(processes)) if metric.rank is None else [metric.rank]
        for rank in ranks:
            values = _of_rank(metric, machine, rank)
            at = _by_cycle(cycles, metric.time_ns, values * _IN_PERCENT.get(metric.metric, 1.0))
            filled = "some" if metric.metric in _ON_HOST else "all"
            rows = times.filter(pl.col("class").is_in(classes), pl.col("process") == processes[rank])
            found = rows.select("cycle", "process", "function", "device").join(at, on="cycle")
            texts = {
                "metric": metric.metric,
                "unit": _PERCENT_OF.get(metric.metric, metric.unit),
                "interpolation": filled,
            }
            parts.append(found.with_columns(pl.lit(text).alias(column) for column, text in texts.items()))
    return pl.concat(parts).sort("cycle", "process", "function", "metric")


def _of_rank(metric: Samples, machine: Machine, rank: int) -> Floats:
    """One value a tick: of the rank's own GPU, of the mean core, of the second file system."""
    if metric.devices:
        return metric.values[:, machine.own[rank]]
    return metric.values[:, 1] if metric.metric == "disk_usage" else metric.values.mean(axis=1)


def _by_cycle(cycles: _Cycles, time_ns: Ticks, values: Floats) -> pl.DataFrame:
    cycle = np.searchsorted(cycles.start_ns, time_ns, side="right")
    inside = time_ns < cycles.start_ns[-1] + cycles.dur_ns[-1]
    frame = pl.DataFrame({"cycle": cycle[inside], "value": values[inside]})
    mean, spread = pl.col("value").mean().alias("mu"), pl.col("value").std(ddof=0).alias("sigma")
    return frame.group_by("cycle", maintain_order=True).agg(mean, spread)


def _counters(
    case: Case, samples: Iterable[Samples], processes: Sequence[int], rng: np.random.Generator
) -> pl.DataFrame:
    """Rows in order of metric, process and time; pooled samples in another order at each tick.

    A GPU is read at one moment, so samples of several metrics with one time are of one GPU, as in published recordings.
    """
    parts = []
    for one in sorted(samples, key=lambda s: (s.metric, s.rank or 0)):
        ticks, width = one.values.shape
        order = rng.permuted(np.tile(np.arange(width), (ticks, 1)), axis=1)
        values = np.take_along_axis(one.values, order, axis=1).ravel()
        named = bool(one.devices) and not case.pooled
        devices = [one.devices[i] for i in order.ravel()] if named else None
        process = None if one.rank is None else processes[one.rank]
        times = np.repeat(one.time_ns, width)
        if one.devices and not named:
            times = times + np.take_along_axis(_moments(one.time_ns, width), order, axis=1).ravel()
        part = pl.DataFrame({"time_ns": times, "value": values}).with_columns(
            pl.Series("device", devices or [None] * len(values), dtype=pl.String),
            metric=pl.lit(one.metric),
            unit=pl.lit(one.unit),
            process=pl.lit(process, pl.Int64),
        )
        part = part.sort("time_ns", maintain_order=True)
        late = one.rank is not None and len(one.time_ns) > 1 and rng.random() < 0.5
        parts.append(part.slice(1) if late else part)
    return pl.concat(parts)


def _moments(time_ns: Ticks, width: int) -> Ticks:
    """How long after a tick began each GPU is read, ns, shape (ticks, width): in another order at each tick."""
    draw = np.random.default_rng(int(time_ns[0]))
    return np.argsort(draw.random((len(time_ns), width)), axis=1) * 4_000_000
