"""A window's tables made rows of the recording: on its clock, with ids that are unique in it, joined with the ops.

Pure: nothing is recorded or written here. Where ops were intercepted, the profiler's own rows of the same work are left
out, and launches and calls carry the `external_id` of the intercepted op that was open when they were called for.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from inferometer.formats.kineto.cpu_launches import Kind, find_cpu_launches, is_dispatched
from inferometer.record.interception.open_ops import NONE, OpenOps
from inferometer.record.profiler.clock_marks import Alignment, Mark, align
from inferometer.record.profiler.window_rows import WindowRows

MARK = "inferometer.clock"
MARK_CALLS = ("cudaStreamQuery", "hipStreamQuery")  # one within each mark, on the thread that makes them
WINDOW_RANGE = "PyTorch Profiler (0)"  # Kineto's own range, from the begin of a profile to its end
_WINDOW_BITS = 40  # the profiler counts its ids from 1 in each window, and makes far fewer than 2^40
_OWN_SPANS = "^(PyTorch Profiler \\(0\\)|Iteration Start: PyTorch Profiler|Record Window End)$"
_IDS = ("correlation_id", "external_id", "frame_id", "parent")


@dataclass(frozen=True)
class Joining:
    """How windows are joined.

    `process`, `host`: whose they are. `origin_ns`: the recording's clock began then, on the clock of the marks.
    `intercepted`: another part of the recording writes ops; `open_ops` answers which one was open. Without it, all ops
    of the dispatcher count as intercepted. `kind_of`: where given, ops are launches of device `cpu`, too.
    """

    process: int
    host: str
    origin_ns: int
    intercepted: bool = False
    open_ops: OpenOps | None = None
    kind_of: Callable[[str], Kind] | None = None


@dataclass(frozen=True)
class Joined:
    """Rows for the recording by table; `alignment` None: nothing set the clock, and there are no rows.

    `duplicates`: ops left out since they were intercepted. `cut`: ops that were open when the window ended.
    """

    tables: Mapping[str, pl.DataFrame]
    alignment: Alignment | None
    duplicates: int = 0
    cut: int = 0


def join_window(
    window: WindowRows,
    number: int,
    marks: Sequence[Mark],
    how: Joining,
    *,
    marking: int | None = None,
    threads: Mapping[int, int] | None = None,
) -> Joined:
    """The rows of window `number`, which counts from 1.

    `marking`: the thread that made the marks. `threads`: the system's number of a thread by one that calls may have.
    """
    if threads and "calls" in window.frames:
        calls = window.frames["calls"].with_columns(pl.col("thread").replace(dict(threads)))
        window = replace(window, frames={**window.frames, "calls": calls})
    alignment = _align(window, marks, marking)
    if alignment is None:
        return Joined({}, None)
    tables = {
        name: _with_ids(_on_clock(frame, alignment, how.origin_ns), number) for name, frame in window.frames.items()
    }
    if "spans" in tables:
        own = pl.col("span").str.contains(_OWN_SPANS) | pl.col("span").str.starts_with(MARK)
        tables["spans"] = tables["spans"].filter(~own)
    if "calls" in tables:
        tables["calls"] = tables["calls"].filter(~_is_mark(marking))
    if "launches" in tables:
        tables["launches"] = tables["launches"].with_columns(
            pl.col("process").fill_null(how.process), pl.col("host").fill_null(how.host)
        )
    cut = _count_cut(tables.get("ops"), marks, how.origin_ns)
    duplicates = 0
    if how.intercepted:
        duplicates = _join_intercepted(tables, how.open_ops)
    if how.kind_of is not None and "ops" in tables:
        of_cpu = find_cpu_launches(tables["ops"], how.kind_of).with_columns(pl.lit(how.host).alias("host"))
        both = [tables["launches"], of_cpu] if "launches" in tables else [of_cpu]
        tables["launches"] = pl.concat(both, how="diagonal_relaxed")
    return Joined({name: frame for name, frame in tables.items() if frame.height}, alignment, duplicates, cut)


def _align(window: WindowRows, marks: Sequence[Mark], marking: int | None) -> Alignment | None:
    """By the ranges of the marks, else by the calls within them, else by the profile's own begin and end."""
    ours = [mark for mark in marks if mark.name != WINDOW_RANGE]
    whole = [mark for mark in marks if mark.name == WINDOW_RANGE]
    ranges = _times(window.frames.get("spans"), "span", pl.col("span").is_in([mark.name for mark in marks]))
    spans = {name: (start, end) for name, start, end in ranges}
    calls = _times(window.frames.get("calls"), "api", _is_mark(marking))
    by_call = {mark.name: (start, end) for mark, (_, start, end) in zip(ours, calls, strict=False)}
    within = [Mark(mark.name, mark.group, mark.entered, mark.leaving, mark.entered, mark.leaving) for mark in ours]
    return (
        align(ours, spans)
        or (align(within, by_call, how="calls") if len(calls) == len(ours) else None)
        or align(whole, spans, how="window")
    )


def _times(frame: pl.DataFrame | None, name: str, which: pl.Expr) -> list[tuple[str, int, int]]:
    """Name, start and end of some rows, in order of time."""
    if frame is None:
        return []
    end = (pl.col("start_ns") + pl.col("dur_ns")).alias("end_ns")
    return list(frame.filter(which).sort("start_ns").select(name, "start_ns", end).iter_rows())


def _is_mark(marking: int | None) -> pl.Expr:
    """Whether a call is within one of our marks."""
    on_ours = pl.col("thread") == (NONE if marking is None else marking)
    return (pl.col("api").is_in(MARK_CALLS) & on_ours).fill_null(value=False)


def _on_clock(frame: pl.DataFrame, alignment: Alignment, origin_ns: int) -> pl.DataFrame:
    """With starts on the recording's clock. The drift within one event is far below 1 ns, so durations stay."""
    return frame.with_columns(pl.Series("start_ns", alignment.apply(frame["start_ns"].to_numpy()) - origin_ns))


def _with_ids(frame: pl.DataFrame, number: int) -> pl.DataFrame:
    names = [name for name in _IDS if name in frame.columns]
    return frame.with_columns(pl.col(name) + (number << _WINDOW_BITS) for name in names)


def _count_cut(ops: pl.DataFrame | None, marks: Sequence[Mark], origin_ns: int) -> int:
    """Ops that end when the profile does: they were open then, and PyTorch ended them."""
    ends = [mark.leaving - origin_ns for mark in marks if mark.name == WINDOW_RANGE]
    if ops is None or not ends:
        return 0
    return ops.filter(pl.col("start_ns") + pl.col("dur_ns") >= ends[0]).height


def _join_intercepted(tables: dict[str, pl.DataFrame], open_ops: OpenOps | None) -> int:
    """Leave out ops that were intercepted, and name the intercepted one in calls and launches. Returns how many."""
    ops = tables.get("ops")
    dropped = pl.DataFrame(schema={"external_id": pl.Int64, "thread": pl.Int64, "moment": pl.Int64})
    if ops is not None:
        doubled = is_dispatched(ops["op"])
        if open_ops is not None:
            ends = ops["start_ns"] + ops["dur_ns"]
            doubled &= open_ops.overlaps(_whole(ops["thread"]), ops["start_ns"].to_numpy(), ends.to_numpy())
        moment = pl.col("start_ns") + pl.col("dur_ns") // 2
        dropped = ops.filter(doubled).select("external_id", "thread", moment.alias("moment"))
        tables["ops"] = ops.filter(~doubled)
    if "calls" in tables:
        at = tables["calls"].select("thread", pl.col("start_ns").alias("moment"))
        tables["calls"] = _named(tables["calls"], _ids_at(at, open_ops), dropped)
    if "launches" in tables:
        at = _called(tables["launches"], tables.get("calls"), dropped)
        tables["launches"] = _named(tables["launches"], _ids_at(at, open_ops), dropped)
    return dropped.height


def _called(launches: pl.DataFrame, calls: pl.DataFrame | None, ops: pl.DataFrame) -> pl.DataFrame:
    """Thread and moment of what queued each launch: its call, else the middle of the profiler's op around it."""
    found = launches.select("correlation_id", "external_id")
    schema = {"correlation_id": pl.Int64, "thread": pl.Int64, "moment": pl.Int64}
    of_calls = (
        pl.DataFrame(schema=schema)
        if calls is None
        else calls.select("correlation_id", "thread", pl.col("start_ns").alias("moment"))
    )
    by_call = found.join(
        of_calls.drop_nulls().unique("correlation_id"), on="correlation_id", how="left", maintain_order="left"
    )
    by_op = found.join(ops.drop_nulls().unique("external_id"), on="external_id", how="left", maintain_order="left")
    return pl.DataFrame([by_call[name].fill_null(by_op[name]) for name in ("thread", "moment")])


def _ids_at(at: pl.DataFrame, open_ops: OpenOps | None) -> pl.Series:
    """The intercepted op's id at each thread and moment; null where there was none."""
    if open_ops is None:
        return pl.Series("found", [None] * at.height, dtype=pl.Int64)
    ids = open_ops.find(_whole(at["thread"]), _whole(at["moment"]))
    return pl.Series("found", ids).replace(NONE, None)


def _named(frame: pl.DataFrame, found: pl.Series, dropped: pl.DataFrame) -> pl.DataFrame:
    """With the intercepted op's id; else the profiler's, where its op is still there."""
    gone = pl.col("external_id").is_in(dropped["external_id"].drop_nulls().implode())
    kept = pl.when(gone).then(None).otherwise(pl.col("external_id"))
    return frame.with_columns(pl.coalesce(found, kept).alias("external_id"))


def _whole(series: pl.Series) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """As numbers; `NONE`, which is no thread and no time, where there is none."""
    return series.fill_null(NONE).to_numpy()
