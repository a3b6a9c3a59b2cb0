"""Device work that overlaps later work on its stream, by what that says: branches of a graph, or a wrong end.

A stream runs the work of one call after that of the call before. Three things overlap by design: work that one call
queued (branches of a graph launch), a kernel that starts before the one ahead of it ends (programmatic dependent
launch), and queues that a profiler reports as one stream. In order, no launch can outlast two later ones of other
calls from start to end; some profilers of AMD devices write such ends. No row is ever changed.
"""

import polars as pl

from inferometer.trace.lean import having_several
from inferometer.trace.losses import Losses

_ROUNDING_NS = 1  # start and duration are rounded apart, so neighbours may seem to overlap by this much
_FEW = 16  # streams, each of which is gone through alone: one sort of all takes four times as long
LANE = ("rank", "process", "device", "context", "stream")


def count_overlaps(launches: pl.LazyFrame, timed: pl.DataFrame, losses: Losses) -> None:
    """Count launches that overlap later ones on their stream, each once, by what is known of the reason.

    Args:
        launches: Of one trace.
        timed: Their columns `LANE`, `start_ns` and `dur_ns`.
        losses: Where they are counted.
    """
    crowded = _find_crowded(timed)
    if crowded.is_empty():
        return
    from inferometer.trace.crowded import compare_with_other_calls

    found = compare_with_other_calls(crowded, launches, _ROUNDING_NS)
    in_graph, wrong = found.filter(~pl.col("overlaps_others")), found.filter("outlasts_two")
    count = losses.count
    count("overlaps_in_graph", in_graph.height, category="launches")
    count("overlaps_in_stream", found.height - in_graph.height - wrong.height, category="launches")
    if wrong.height:
        longest = wrong.sort("dur_ns").row(-1, named=True)
        name = launches.select("kernel").slice(longest["row"], 1).collect().item()
        example = f"{name[:60]}: {longest['dur_ns']:,} ns"
        count("overflows_stream", wrong.height, category="launches", example=example)


def _find_crowded(timed: pl.DataFrame) -> pl.DataFrame:
    """Launches that overlap others of their stream (`lane`), by stream and start; mostly none, which is seen first."""
    lane = [*having_several(timed, [name for name in LANE if name != "stream"]), "stream"]
    streams = timed["stream"].unique().drop_nulls() if lane == ["stream"] else None
    if streams is not None and streams.len() <= _FEW and not any(_meets_next(timed, stream) for stream in streams):
        return timed.clear()
    rows = (
        timed.lazy()
        .select(*lane, "start_ns", "dur_ns")
        .with_row_index("row")
        .filter(pl.col("stream").is_not_null())
        .sort(*lane, "start_ns", "dur_ns")
        .select("row", "start_ns", "dur_ns", pl.struct(lane).rle_id().alias("lane"))
        .collect()
    )
    starts, lanes = rows["start_ns"], rows["lane"]
    begins_before = starts.shift(-1) < starts + rows["dur_ns"] - _ROUNDING_NS
    if not ((lanes == lanes.shift(-1)) & begins_before).any():
        return rows.clear()
    from inferometer.trace.crowded import keep_crowded

    return keep_crowded(rows, _ROUNDING_NS)


def _meets_next(timed: pl.DataFrame, stream: int) -> bool:
    """Whether any launch of the stream ends after the next one's start; where several start at once, it may say so."""
    own = timed.lazy().filter(pl.col("stream") == stream).select("start_ns", "dur_ns").collect()
    if not own["start_ns"].is_sorted():
        own = own.sort("start_ns")
    ends = pl.col("start_ns") + pl.col("dur_ns") - _ROUNDING_NS
    return bool(own.select((pl.col("start_ns").shift(-1) < ends).any()).item())
