"""Which samples of pooled GPU counters are of the GPU that the program uses.

Some sources give one value per GPU at each tick and don't say of which. A GPU is read at one moment, so samples of
several metrics with the very same time are of one GPU. Its memory shows whose it is: as much in use as the program
holds, and what an idle GPU has in use, or a little more. Elsewhere the only GPU of a tick that works is the program's,
if that uses a GPU at all. Of samples of which neither says, nothing is known: extremes over all GPUs are mostly those
of idle ones.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from inferometer.analyses.compare.causes.resampling import Values
from inferometer.analyses.compare.causes.ticks import Times, tick_starts
from inferometer.analyses.comparison_limits import MOST, OWN_MEMORY_BYTES, SAME_MEMORY_BYTES
from inferometer.trace.trace import Trace

_USED, _HELD, _OF_PROGRAM = "gpu_mem_used", "process_gpu_mem_usage", "process_gpu_usage"
_ACTIVITY = ("gpu_usage", "gpu_sm_util")
_BYTES = "bytes"


def own_sample_times(trace: Trace) -> frozenset[int]:
    """When the program's own GPU was read, ns; empty where that can't be known."""
    if "counters" not in trace.scope:
        return frozenset()
    names = [_USED, _HELD, _OF_PROGRAM, *_ACTIVITY]
    frame = trace.counters.filter(
        pl.col("metric").is_in(names), pl.col("device").is_null(), pl.col("value").is_finite()
    ).select("metric", "unit", "process", "time_ns", "value")
    rows = frame.sort("time_ns", maintain_order=True).collect()
    uses_gpu = bool((rows.filter(pl.col("metric") == _OF_PROGRAM)["value"] > 0).any())
    found = set(_by_memory(rows))
    for metric in _ACTIVITY if uses_gpu else ():
        times, values = _samples(rows, metric)
        if found.isdisjoint(times.tolist()):  # read at other moments than memory is
            found.update(_only_active(times, values))
    return frozenset(found)


def _samples(rows: pl.DataFrame, metric: str) -> tuple[Times, Values]:
    own = rows.filter(pl.col("metric") == metric)
    return own["time_ns"].to_numpy(), own["value"].to_numpy()


def _by_memory(rows: pl.DataFrame) -> Iterator[int]:
    """Times of samples in which as much memory is in use as a process of the program holds."""
    bytes_only = rows.filter(pl.col("unit") == _BYTES)
    times, used = _samples(bytes_only, _USED)
    held = bytes_only.filter(pl.col("metric") == _HELD)
    processes = [own["value"].median() for _, own in held.group_by("process", maintain_order=True)]
    amounts = [value for value in processes if isinstance(value, float) and value > 0]
    if not len(times) or not amounts:
        return
    idle = float(used.min())
    ticks = _ticks(times)
    for low, high in ((idle - SAME_MEMORY_BYTES, idle + SAME_MEMORY_BYTES), (0.0, float(OWN_MEMORY_BYTES))):
        own = [_holding(used[tick], amounts, low, high) for tick in ticks]
        if sum(len(at) == len(amounts) for at in own) > MOST * len(ticks):
            for tick, at in zip(ticks, own, strict=True):
                yield from times[tick][at].tolist() if len(at) == len(amounts) else ()
            return


def _holding(used: Values, amounts: Sequence[float], low: float, high: float) -> list[int]:
    """Places of a tick's GPUs that have so much more in use than a process holds."""
    return [at for at, value in enumerate(used.tolist()) if any(low <= value - held <= high for held in amounts)]


def _only_active(times: Times, values: Values) -> Iterator[int]:
    """Times of samples that are the only ones of their tick above 0, where that is so in most ticks."""
    ticks = _ticks(times)
    active = [np.flatnonzero(values[tick] > 0) for tick in ticks]
    known = [tick[at[0]] for tick, at in zip(ticks, active, strict=True) if len(at) == 1]
    if len(known) > MOST * len(ticks) and not any(len(at) > 1 for at in active):
        yield from times[known].tolist()


def _ticks(times: Times) -> list[NDArray[np.int64]]:
    """Places of each tick's samples; none of one that holds two samples of the same moment."""
    if not len(times):
        return []
    ticks = np.split(np.arange(len(times)), tick_starts(times)[1:])
    return [tick for tick in ticks if len(np.unique(times[tick])) == len(tick)]
