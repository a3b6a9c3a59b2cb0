"""Whose code a candidate's time went to, out of a profile: kernels of its own file, of libraries; ops of torch.

Shares are of summed time, so they add up to 1 however much overlaps; what no name takes is reported under a name of its
own. Both are of the calls only (`kernel_times`), and of a profiled run, whose host times are longer than timed ones.
"""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl

from inferometer.bench.profiles.kernel_times import NEEDED, OUTSIDE, CallRanges, read_ranges, read_work
from inferometer.bench.profiles.own_kernels import is_own
from inferometer.bench.results import Attribution
from inferometer.formats.opening import open_trace
from inferometer.names.decoding import decode, read_parts
from inferometer.names.short_names import short

REST = "own code and Python"
"""The host's time in no op of torch: the candidate's Python, what it calls besides torch, and the interpreter."""

_HOST = {
    "spans": NEEDED["spans"],
    "ops": ("op", "process", "thread", "start_ns", "dur_ns"),
}


def attribute_device(path: str | Path, own: frozenset[str] | None) -> Attribution:
    """Shares of the device time that calls queued, by kernel; copies and sets are named too.

    Args:
        path: As for `kernel_times`, with the same errors.
        own: Names of the candidate's own kernels (`own_kernels`); None: not known, as of a backend.

    Returns:
        `own` is None where `own` was, and where calls had no device work.
    """
    with open_trace(path, NEEDED) as trace:
        work = read_work(trace, read_ranges(trace))
    totals = (
        work.filter(pl.col("place") >= 0).group_by("kernel").agg(pl.col("dur_ns").sum()).sort("dur_ns", "kernel").rows()
    )
    whole_ns = sum(total for _, total in totals)
    by_label: dict[str, int] = defaultdict(int)
    own_ns = 0
    for kernel, total_ns in totals:
        is_ours = own is not None and is_own(kernel, own)
        own_ns += total_ns if is_ours else 0
        by_label[label(kernel, is_ours=is_ours)] += total_ns
    return Attribution(
        own=own_ns / whole_ns if own is not None and whole_ns else None, by_name=_shares(by_label), of="device"
    )


def attribute_host(path: str | Path, own_ns: float | None) -> Attribution:
    """Shares of the calls' host time by op of torch, outermost ones on the call's own thread; the rest is `REST`.

    Args:
        path: As for `kernel_times`, with the same errors.
        own_ns: Time in the candidate's own interpreted kernels during these calls, which ops that they call share;
            None: not measured.
    """
    with open_trace(path, _HOST) as trace:
        ranges = read_ranges(trace)
        ops = trace.tables["ops"].select(_HOST["ops"]).collect()
    whole_ns = int((ranges.end_ns - ranges.start_ns).sum())
    by_op: dict[str, int] = defaultdict(int)
    for op, total_ns in _outermost(ops, ranges).group_by("op").agg(pl.col("dur_ns").sum()).rows():
        by_op[op] += total_ns
    by_op[REST] = whole_ns - sum(by_op.values())
    return Attribution(
        own=own_ns / whole_ns if own_ns is not None and whole_ns else None, by_name=_shares(by_op), of="host"
    )


def label(kernel: str, *, is_ours: bool) -> str:
    """A kernel for readers: an own one by its function, a library's by what it does and whose it is."""
    if is_ours:
        return short(read_parts(kernel).path)
    known = decode(kernel)
    if known.library == "other" or known.library.replace("_", " ") in known.short_name.replace("_", " "):
        return known.short_name
    return f"{known.short_name} ({known.library})"


def _outermost(ops: pl.DataFrame, ranges: CallRanges) -> pl.DataFrame:
    """Ops within no other, on the threads of the calls, cut where a call ends."""
    place = ranges.places(ops["start_ns"].to_numpy())
    at = np.maximum(place, 0)
    same = (ops["process"].fill_null(0).to_numpy() == ranges.process[at]) & (
        ops["thread"].fill_null(0).to_numpy() == ranges.thread[at]
    )
    kept = (place != OUTSIDE) & same
    start = ops["start_ns"].to_numpy()[kept]
    end = np.minimum(start + ops["dur_ns"].to_numpy()[kept], ranges.end_ns[at[kept]])
    order = np.lexsort((-end, start))
    names, start, end = ops["op"].filter(pl.Series(kept, dtype=pl.Boolean)).gather(order), start[order], end[order]
    open_until = np.concatenate(([np.iinfo(np.int64).min], np.maximum.accumulate(end)[:-1])) if len(end) else end
    return pl.DataFrame({"op": names, "dur_ns": end - start}).filter(pl.Series(start >= open_until, dtype=pl.Boolean))


def _shares(totals: Mapping[str, int]) -> dict[str, float]:
    """Largest first; none where there is no time at all."""
    whole_ns = sum(totals.values())
    ordered = sorted(totals.items(), key=lambda item: (-item[1], item[0]))
    return {name: total / whole_ns for name, total in ordered} if whole_ns else {}
