"""Device work that overlaps later work on its stream, by what that says: branches of a graph, or a wrong end.

A stream runs the work of one call after that of the call before. Three things overlap by design: work that one call
queued (branches of a graph launch), a kernel that starts before the one ahead of it ends (programmatic dependent
launch), and queues that a profiler reports as one stream. In order, no launch can outlast two later ones of other
calls from start to end; some profilers of AMD devices write such ends. No row is ever changed.
"""

import polars as pl

from inferometer.trace.builder import TraceBuilder

_ROUNDING_NS = 1  # start and duration are rounded apart, so neighbours may seem to overlap by this much
_LANE = ("rank", "process", "device", "context", "stream")


def count_overlaps(out: TraceBuilder) -> None:
    """Count launches that overlap later ones on their stream, each once, by what is known of the reason."""
    launches = out.frame("launches")
    crowded = _find_crowded(launches)
    if crowded.is_empty():
        return
    from inferometer.trace.crowded import compare_with_other_calls

    found = compare_with_other_calls(crowded, launches, _ROUNDING_NS)
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
    lane_goes_on = pl.col("lane") == pl.col("lane").shift(-1)
    begins_before = pl.col("start_ns").shift(-1) < pl.col("start_ns") + pl.col("dur_ns") - _ROUNDING_NS
    if not rows.select((lane_goes_on & begins_before).any()).item():
        return rows.clear()
    from inferometer.trace.crowded import keep_crowded

    return keep_crowded(rows, _ROUNDING_NS)
