"""Device work that overlaps later work on its stream, by what that says: branches of a graph, or a wrong end.

A stream runs the work of one call after that of the call before. Three things overlap by design: work that one call
queued (branches of a graph launch), a kernel that starts before the one ahead of it ends (programmatic dependent
launch), and queues that a profiler reports as one stream. In order, no launch can outlast two later ones of other
calls from start to end; some profilers of AMD devices write such ends. No row is ever changed.
"""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray

from inferometer.trace.builder import TraceBuilder

_LANE = ("rank", "process", "device", "context", "stream")
_ROUNDING_NS = 1  # start and duration are rounded apart, so neighbours may seem to overlap by this much
_NEVER_NS = np.iinfo(np.int64).max
_Ints = NDArray[np.int64]


def count_overlaps(out: TraceBuilder) -> None:
    """Count launches that overlap later ones on their stream, each once, by what is known of the reason."""
    launches = out.frame("launches")
    crowded = _find_crowded(launches)
    if crowded.is_empty():
        return
    found = _compare_with_other_calls(crowded, launches)
    in_graph, wrong = found.filter(~pl.col("overlaps_others")), found.filter("outlasts_two")
    count = out.losses.count
    count("overlaps_in_graph", in_graph.height, category="launches")
    count("overlaps_in_stream", found.height - in_graph.height - wrong.height, category="launches")
    if wrong.height:
        longest = wrong.sort("dur_ns").row(-1, named=True)
        name = launches.select("kernel").slice(longest["row"], 1).collect().item()
        example = f"{name[:60]}: {longest['dur_ns']:,} ns"
        count("overflows_stream", wrong.height, category="launches", example=example)


def _find_crowded(launches: pl.LazyFrame) -> pl.DataFrame:
    """Launches that overlap others of their stream (`lane`), by stream and start; mostly none, which is seen first."""
    differ = launches.select(pl.col(_LANE).n_unique()).collect().row(0)
    lane = [column for column, n in zip(_LANE, differ, strict=True) if n > 1 or column == "stream"]
    rows = (
        launches.select(*lane, "start_ns", "dur_ns")
        .with_row_index("row")
        .filter(pl.col("stream").is_not_null())
        .sort(*lane, "start_ns", "dur_ns")
        .select("row", "start_ns", "dur_ns", pl.struct(lane).rle_id().alias("lane"))
        .collect()
    )
    starts, latest, lanes = _times(rows)
    follows = lanes[1:] == lanes[:-1]
    if not (follows & (starts[1:] < latest[:-1])).any():
        return rows.clear()
    for part in _parts(lanes):
        latest[part] = np.maximum.accumulate(latest[part])
    joins = np.concatenate([[False], follows & (starts[1:] < latest[:-1])])
    return rows.filter(pl.Series(joins | np.append(joins[1:], False)))


def _compare_with_other_calls(crowded: pl.DataFrame, launches: pl.LazyFrame) -> pl.DataFrame:
    """Those that overlap a later one; `overlaps_others`: of another call, `outlasts_two` of these from start to end.

    A launch without a call (0 in some profilers' files) is on its own.
    """
    calls = launches.select(pl.col("process", "correlation_id").gather(crowded["row"])).collect()
    own = pl.when(pl.col("correlation_id") > 0).then(None).otherwise(pl.col("row")).alias("own")
    named = calls.with_columns(crowded["row"], crowded["lane"])
    call = named.select(pl.struct("lane", "process", "correlation_id", own).rle_id()).to_series().to_numpy()
    starts, latest, lanes = _times(crowded)
    following, after_call = np.arange(len(call)) + 1, np.searchsorted(call, call, side="right")
    return crowded.with_columns(
        overlaps_others=pl.Series(_at(starts, lanes, after_call) < latest),
        outlasts_two=pl.Series(_at(_second_least(latest, lanes), lanes, after_call) < latest - _ROUNDING_NS),
    ).filter(pl.Series(_at(starts, lanes, following) < latest))


def _times(rows: pl.DataFrame) -> tuple[_Ints, _Ints, _Ints]:
    """Of each row its start, the end with the rounding taken off, and its lane."""
    starts = rows["start_ns"].to_numpy()
    return starts, starts + rows["dur_ns"].to_numpy() - _ROUNDING_NS, rows["lane"].to_numpy()


def _parts(lanes: _Ints) -> Iterator[slice]:
    """The rows of each lane; they stand together."""
    cuts = [0, *(np.flatnonzero(lanes[1:] != lanes[:-1]) + 1).tolist(), len(lanes)]
    return (slice(first, last) for first, last in pairwise(cuts))


def _second_least(times: _Ints, lanes: _Ints) -> _Ints:
    """Of the times from each row to the end of its lane, the second least."""
    second = np.empty_like(times)
    for part in _parts(lanes):
        backward = times[part][::-1]
        least_before = np.append(_NEVER_NS, np.minimum.accumulate(backward)[:-1])
        second[part] = np.minimum.accumulate(np.maximum(backward, least_before))[::-1]
    return second


def _at(values: _Ints, lanes: _Ints, index: _Ints) -> _Ints:
    """The value at each index; never, where that is not in the row's own lane."""
    inside = np.minimum(index, len(values) - 1)
    return np.where((index < len(values)) & (lanes[inside] == lanes), values[inside], _NEVER_NS)
