"""What host threads did during stretches of time: exact overlaps, in parts that add up.

Each moment of a stretch belongs to the first of `ACTIVITIES` that holds it on the thread: a stream capture, a
compiler or tuner, a call of the driver or runtime by its kind, else an op or a range that a framework named of its
own work, else a Python frame, else nothing that was recorded. Nothing is sampled. Frames that compile are recognised
from their names, captures from the calls that begin and end them, or from the first to the last captured launch where
those calls aren't in the file.
"""

import re
from collections.abc import Sequence
from typing import Final, Literal

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from inferometer.analyses.cover import Cover
from inferometer.analyses.intervals import Times
from inferometer.names.apis import api_kind, canonical_api
from inferometer.names.compilers import is_compiling
from inferometer.trace.tables import FRAMEWORK_RANGES
from inferometer.trace.trace import Trace

ActivityKind = Literal[
    "capture", "compiling", "wait", "copy", "slow_call", "allocation", "launch", "call", "op", "frame", "unrecorded"
]
WhereRanges = Literal["none", "here", "elsewhere"]
ACTIVITIES: Final[tuple[ActivityKind, ...]] = (
    *("capture", "compiling", "wait", "copy", "slow_call", "allocation", "launch", "call"),
    *("op", "frame", "unrecorded"),
)
CALLS: Final = frozenset({"wait", "copy", "slow_call", "allocation", "launch", "call"})
SLOW_CALL_NS: Final = 1_000_000
"""Calls that neither wait nor copy take 1 to 100 μs once warm; one of 1 ms or more loads code, initialises, or maps
or returns memory."""

THREAD: Final = ("rank", "process", "thread")
_BEGIN, _END = re.compile(r"(?:cuda|cu|hip)StreamBeginCapture"), re.compile(r"(?:cuda|cu|hip)StreamEndCapture")
_TABLES: Final = (("calls", "api"), ("ops", "op"), ("frames", "frame"))
_PARTS_SCHEMA: Final = {"activity": pl.String, "time_ns": pl.Int64}
_CALLS_SCHEMA: Final = {
    "activity": pl.String,
    "api": pl.String,
    "time_ns": pl.Int64,
    "count": pl.Int64,
    "first_ns": pl.Int64,
    "last_ns": pl.Int64,
}


class HostActivity(msgspec.Struct, frozen=True):
    """`total_ns` of all stretches; `parts`: `activity` and `time_ns`, which add up to that, the most first.

    `ranges`: whether a framework named ranges of its own work, and where: some on these threads, or all on threads of
    other numbers; then what else these did may be in the file, and isn't known to be theirs.
    `calls`: of the kinds in `CALLS`, `api` (canonical), `time_ns` within the stretches (nested calls count in both)
    and `count` of calls that reach into them, when the `first_ns` and `last_ns` of these began; the most first.
    """

    total_ns: int
    parts: pl.DataFrame
    calls: pl.DataFrame
    ranges: WhereRanges = "none"

    def time_ns(self, *activities: ActivityKind) -> int:
        """Time of these activities together."""
        return int(self.parts.filter(pl.col("activity").is_in(activities))["time_ns"].sum())


def find_activity(trace: Trace, stretches: pl.DataFrame, captured: pl.DataFrame | None = None) -> HostActivity:
    """What the thread of each stretch did in it.

    Args:
        trace: Needs `calls`, `ops` and `frames`; uses `spans` where they were read.
        stretches: `rank`, `process`, `thread`, `start_ns`, `end_ns`; where the thread is null, nothing was recorded.
            Those of one thread don't overlap.
        captured: Calls whose kernels were captured, not run: `rank`, `process`, `thread`, `called_ns`.
    """
    total_ns = int((stretches["end_ns"] - stretches["start_ns"]).sum())
    sums = dict.fromkeys(ACTIVITIES, 0)
    calls: list[pl.DataFrame] = []
    for (rank, process, thread), group in stretches.group_by(THREAD, maintain_order=True):
        within = Cover.of(group["start_ns"].to_numpy(), group["end_ns"].to_numpy())
        own_ns = int((within.end_ns - within.start_ns).sum())
        if thread is None:
            sums["unrecorded"] += own_ns
            continue
        here = _on_thread(rank, process, thread)
        ranges = _ranges_within(trace, here, within)
        if captured is not None:
            ranges += _captures(captured.filter(here)["called_ns"].sort().to_numpy(), within)
        for activity, time_ns in _parted(ranges, within, own_ns):
            sums[activity] += time_ns
        calls += [each.calls for each in ranges if each.calls is not None]
    parts = pl.DataFrame([(name, ns) for name, ns in sums.items() if ns], schema=_PARTS_SCHEMA, orient="row")
    by_api = pl.concat([pl.DataFrame(schema=_CALLS_SCHEMA), *calls]).group_by("activity", "api")
    return HostActivity(
        total_ns,
        parts.sort("time_ns", "activity", descending=[True, False]),
        by_api.agg(pl.col("time_ns", "count").sum(), pl.col("first_ns").min(), pl.col("last_ns").max()).sort(
            "time_ns", "api", descending=[True, False]
        ),
        _where_ranges(trace, stretches),
    )


def _where_ranges(trace: Trace, stretches: pl.DataFrame) -> WhereRanges:
    if "spans" not in trace.scope:
        return "none"
    ranges = trace.spans.filter(pl.col("domain").is_in(FRAMEWORK_RANGES)).select(THREAD).unique().collect()
    if ranges.is_empty():
        return "none"
    return "elsewhere" if stretches.join(ranges, on=THREAD, how="semi", nulls_equal=True).is_empty() else "here"


class _Ranges(msgspec.Struct, frozen=True):
    """Times on one thread that reach into the stretches; of calls, also who they are."""

    activity: ActivityKind
    start_ns: Times
    end_ns: Times
    calls: pl.DataFrame | None = None


def _on_thread(rank: object, process: object, thread: object) -> pl.Expr:
    values = zip(THREAD, (rank, process, thread), strict=True)
    return pl.all_horizontal(pl.col(name).eq_missing(pl.lit(value, dtype=pl.Int64)) for name, value in values)


def _ranges_within(trace: Trace, here: pl.Expr, within: Cover) -> list[_Ranges]:
    """What the thread did, by activity; captures by the calls that begin and end them."""
    found: list[_Ranges] = []
    for table, column in _TABLES:
        rows = trace.tables[table].filter(here, pl.col("dur_ns") > 0).select(column, "start_ns", "dur_ns").collect()
        start, dur = rows["start_ns"].to_numpy(), rows["dur_ns"].to_numpy()
        if table == "calls":
            found += _captures_by_calls(rows, within)
        own_ns = within.within(start, start + dur)
        inside = np.flatnonzero(own_ns > 0)
        kept = rows[inside].with_columns(pl.Series("time_ns", own_ns[inside], dtype=pl.Int64))
        names = kept[column].unique()
        kinds = {name: _kind(table, name) for name in names}
        kind = kept[column].replace_strict(kinds, return_dtype=pl.String)
        if table == "calls":
            slow = (kept["dur_ns"] >= SLOW_CALL_NS) & kind.is_in(["allocation", "launch", "call"])
            kind = pl.select(pl.when(slow).then(pl.lit("slow_call")).otherwise(kind)).to_series()
        for activity in kind.unique().sort():
            of = kept.filter(kind == activity)
            begin = of["start_ns"].to_numpy()
            known = _by_api(of, activity) if table == "calls" else None
            found.append(_Ranges(activity, begin, begin + of["dur_ns"].to_numpy(), known))
    if "spans" in trace.scope:
        own = here & pl.col("domain").is_in(FRAMEWORK_RANGES) & (pl.col("dur_ns") > 0)
        rows = trace.spans.filter(own).select("start_ns", "dur_ns").collect()
        begin = rows["start_ns"].to_numpy()
        found += [_Ranges("op", begin, begin + rows["dur_ns"].to_numpy())] if rows.height else []
    return found


def _kind(table: str, name: str | None) -> ActivityKind:
    if table == "ops":
        return "op"
    if table == "frames":
        return "compiling" if is_compiling(name or "") else "frame"
    kind = api_kind(name or "")
    return {"wait": "wait", "copy": "copy", "allocation": "allocation", "launch": "launch", "graph": "launch"}.get(
        kind, "call"
    )  # type: ignore[return-value]


def _by_api(calls: pl.DataFrame, activity: str) -> pl.DataFrame:
    names = {name: canonical_api(name) for name in calls["api"].unique()}
    named = calls.with_columns(pl.col("api").replace(names), pl.lit(activity).alias("activity"))
    start = pl.col("start_ns")
    sums = named.group_by("activity", "api").agg(
        *(pl.col("time_ns").sum(), pl.len().cast(pl.Int64).alias("count")),
        *(start.min().alias("first_ns"), start.max().alias("last_ns")),
    )
    return sums.select(pl.col(name).cast(dtype) for name, dtype in _CALLS_SCHEMA.items())


def _captures_by_calls(calls: pl.DataFrame, within: Cover) -> list[_Ranges]:
    """From each call that begins a capture to the end of the next that ends one; to the end where none does."""
    names = calls["api"].unique().to_list()
    begins = calls.filter(pl.col("api").is_in([name for name in names if _BEGIN.match(name)]))["start_ns"].sort()
    ends = calls.filter(pl.col("api").is_in([name for name in names if _END.match(name)]))
    if begins.is_empty() or not len(within.end_ns):
        return []
    stops = np.append(np.sort((ends["start_ns"] + ends["dur_ns"]).to_numpy()), within.end_ns[-1])
    start = begins.to_numpy()
    stop = stops[np.minimum(np.searchsorted(stops, start, side="right"), len(stops) - 1)]
    return [_Ranges("capture", start, np.maximum(stop, start))]


def _captures(called_ns: Times, within: Cover) -> list[_Ranges]:
    """In each stretch from the first captured launch to the last."""
    if not len(called_ns):
        return []
    first, last = (np.searchsorted(called_ns, each, side="left") for each in (within.start_ns, within.end_ns))
    some = np.flatnonzero(last > first)
    return [_Ranges("capture", called_ns[first[some]], called_ns[last[some] - 1])]


def _parted(ranges: Sequence[_Ranges], within: Cover, own_ns: int) -> list[tuple[ActivityKind, int]]:
    """Time of each activity that none before it in `ACTIVITIES` has; the rest is unrecorded."""
    start: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
    end, before_ns = start, 0
    found: list[tuple[ActivityKind, int]] = []
    for activity in ACTIVITIES[:-1]:
        own = [each for each in ranges if each.activity == activity]
        if not own:
            continue
        start = np.concatenate([start, *(each.start_ns for each in own)])
        end = np.concatenate([end, *(each.end_ns for each in own)])
        covered_ns = int(Cover.of(start, end).within(within.start_ns, within.end_ns).sum())
        found.append((activity, covered_ns - before_ns))
        before_ns = covered_ns
    return [*found, ("unrecorded", own_ns - before_ns)]
