"""Device time of each profiled call, out of a profiler's file.

The worker names the host's time of each call by a range, `inferometer.call 7`. Device work belongs to the call in whose
range the host queued it, on whatever thread or stream: the runtime call with its correlation id began there. So work
that ends after the range is counted, and all kernels of a graph's replay belong to the call that launched it. Ranges on
a device's track (`gpu_user_annotation`) bear the same names, are the profiler's projection, and aren't used.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from inferometer.analyses.correlation import NO_CALL, find_calls
from inferometer.analyses.intervals import busy_sums
from inferometer.analyses.named_ranges import on_device
from inferometer.bench.process.course import CALL
from inferometer.errors import FormatError
from inferometer.formats.opening import open_trace
from inferometer.trace.losses import Loss
from inferometer.trace.trace import Trace

OUTSIDE, LOST = -1, -2
"""In the place of a call: queued in no call's range; or when it was queued isn't recorded."""

NEEDED = {
    "launches": ("kernel", "device", "stream", "rank", "process", "start_ns", "dur_ns", "correlation_id"),
    "calls": ("rank", "process", "start_ns", "correlation_id"),
    "spans": ("span", "domain", "process", "thread", "device", "stream", "start_ns", "dur_ns"),
}
_OTHER_EVENTS = ("unknown_category", "unknown_phase")
_OF_THE_FILE = (
    *("truncated", "broken_compression", "changed_while_read", "unreadable_file", "unreadable_rank_file"),
)  # parts of it, with any number of events, may be missing
_NAME = re.compile(re.escape(CALL) + r" (\d{1,9})")
_HINT = f'Record it with torch.profiler, each call inside record_function("{CALL} N").'

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class KernelTimes:
    """All arrays are by call, in the order of their numbers. Shape (n,).

    Attributes:
        numbers: Of the calls, as the worker counts them.
        busy_ns: Union of the intervals of all device work (kernels, copies, sets) that the call queued.
        summed_ns: Sum of their durations: more than `busy_ns` where they overlap.
        span_ns: From the first one's start to the last one's end, gaps and all.
        launches: How many there were; 0 with all times 0 for a call without device work.
        streams: How many streams of how many devices had them.
        unattributed: Device work queued outside of all calls, such as what empties the caches in between.
        unattributed_ns: Sum of its durations.
        lost: Device work that can't be tied to any time of the host, since its runtime call isn't in the file.
        lost_ns: Sum of its durations.
        damage: What of the file couldn't be read; then times may be too short.
    """

    numbers: Numbers
    busy_ns: Numbers
    summed_ns: Numbers
    span_ns: Numbers
    launches: Numbers
    streams: Numbers
    unattributed: int
    unattributed_ns: int
    lost: int
    lost_ns: int
    damage: tuple[str, ...] = ()


@dataclass(frozen=True)
class CallRanges:
    """The host's ranges of the calls, in the order of their numbers."""

    numbers: Numbers
    start_ns: Numbers
    end_ns: Numbers
    process: Numbers
    thread: Numbers

    def places(self, time_ns: Numbers) -> Numbers:
        """Which of the calls, counted from 0, holds each time; `OUTSIDE` where none does."""
        order = np.argsort(self.start_ns, kind="stable")
        at = np.searchsorted(self.start_ns[order], time_ns, side="right") - 1
        held = (at >= 0) & (time_ns < self.end_ns[order][np.maximum(at, 0)])
        return np.where(held, order[np.maximum(at, 0)], OUTSIDE)


def kernel_times(path: str | Path) -> KernelTimes:
    """Of every call in a file that torch.profiler exported.

    Raises:
        FormatError: It has no ranges of calls, or two of one number or at one time.
        InputError: It can't be read.
    """
    with open_trace(path, NEEDED) as trace:
        ranges = read_ranges(trace)
        work = read_work(trace, ranges)
        damage = tuple(f"{loss.name}: {loss.count:,}. {loss.meaning}" for loss in trace.losses if _may_shorten(loss))
    own = work.filter(pl.col("place") >= 0)
    count = len(ranges.numbers)
    place, start, duration = (own[name].to_numpy() for name in ("place", "start_ns", "dur_ns"))
    first, last = np.full(count, np.iinfo(np.int64).max), np.full(count, np.iinfo(np.int64).min)
    np.minimum.at(first, place, start)
    np.maximum.at(last, place, start + duration)
    launches = np.bincount(place, minlength=count).astype(np.int64)
    summed = np.zeros(count, dtype=np.int64)
    np.add.at(summed, place, duration)
    outside, lost = (work.filter(pl.col("place") == each)["dur_ns"] for each in (OUTSIDE, LOST))
    return KernelTimes(
        numbers=ranges.numbers,
        busy_ns=busy_sums(place, start, start + duration, count),
        summed_ns=summed,
        span_ns=np.where(launches > 0, last - first, 0),
        launches=launches,
        streams=_streams(own, count),
        unattributed=len(outside),
        unattributed_ns=int(outside.sum()),
        lost=len(lost),
        lost_ns=int(lost.sum()),
        damage=damage,
    )


def read_ranges(trace: Trace) -> CallRanges:
    """Of the host only.

    Raises:
        FormatError: As `kernel_times`.
    """
    source = trace.facts.source
    host = trace.tables["spans"].filter(~on_device(), pl.col("span").str.starts_with(CALL)).collect()
    found = host.with_columns(pl.col("span").str.extract(f"^{_NAME.pattern}$").cast(pl.Int64).alias("number"))
    found = found.filter(pl.col("number").is_not_null()).sort("number", "start_ns")
    if not found.height:
        raise FormatError(f"{source}: expected a range {CALL} 0 on a thread of the host, found none", hint=_HINT)
    if found["number"].n_unique() < found.height:
        twice = found.filter(pl.col("number").is_duplicated())["number"][0]
        raise FormatError(f"{source}: expected one range {CALL} {twice}, found several", hint=_HINT)
    in_time = found.sort("start_ns")
    ends = (in_time["start_ns"] + in_time["dur_ns"]).to_numpy()
    if (in_time["start_ns"].to_numpy()[1:] < ends[:-1]).any():
        raise FormatError(f"{source}: expected one call after another, found two at one time", hint=_HINT)
    names = ("number", "start_ns", "dur_ns", "process", "thread")
    number, start, duration, process, thread = (found[name].fill_null(0).to_numpy() for name in names)
    return CallRanges(number, start, start + duration, process, thread)


def read_work(trace: Trace, ranges: CallRanges) -> pl.DataFrame:
    """All launches with `place`, the call that queued each, counted from 0; else `OUTSIDE` or `LOST`."""
    launches, calls = (trace.tables[name].collect() for name in ("launches", "calls"))
    at = find_calls(launches, calls)
    known = at != NO_CALL
    place = np.full(launches.height, LOST, dtype=np.int64)
    place[known] = ranges.places(calls["start_ns"].to_numpy()[at[known]])
    return launches.with_columns(pl.Series("place", place, dtype=pl.Int64))


def _may_shorten(loss: Loss) -> bool:
    """Whether device work or calls may be missing; categories that aren't read are none of them."""
    if loss.name in _OF_THE_FILE:
        return True
    return loss.dropped and loss.severity == "warning" and loss.name not in _OTHER_EVENTS


def _streams(own: pl.DataFrame, count: int) -> Numbers:
    counted = own.group_by("place").agg(pl.struct("device", "stream").n_unique().alias("streams"))
    streams = np.zeros(count, dtype=np.int64)
    streams[counted["place"].to_numpy()] = counted["streams"].to_numpy()
    return streams
