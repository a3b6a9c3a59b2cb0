"""Remarks about tables just read: what can't be right, or what an analysis must know. No row is ever changed."""

import polars as pl

from inferometer.trace.builder import TraceBuilder
from inferometer.trace.overlaps import count_overlaps

_ROUNDING_NS = 1  # start and duration are rounded apart, so neighbours may seem to overlap by this much


def check_launches(out: TraceBuilder) -> None:
    """Count device work of 0 ns, and work that overlaps later work on its stream."""
    if not out.rows("launches"):
        return
    zero = out.frame("launches").filter(pl.col("dur_ns") == 0).select(pl.len()).collect().item()
    out.losses.count("zero_duration_launch", zero, category="launches")
    count_overlaps(out)


def check_calls(out: TraceBuilder) -> None:
    """Count device work whose host call is not in the file, and correlation ids that several processes use."""
    if not out.rows("launches") or not out.rows("calls"):
        return
    calls = out.frame("calls").filter(pl.col("correlation_id").is_not_null())
    shared = (
        calls.group_by("correlation_id")
        .agg(pl.col("process").n_unique())
        .filter(pl.col("process") > 1)
        .select(pl.len())
        .collect()
        .item()
    )
    out.losses.count("correlation_in_several_processes", shared, category="calls")
    launches = out.frame("launches").filter(pl.col("correlation_id").is_not_null())
    known = pl.col("process").is_not_null()  # where nobody says whose a launch is, a call of any process will do
    ids = [
        (launches.filter(known), ["rank", "process", "correlation_id"]),
        (launches.filter(~known), ["rank", "correlation_id"]),
    ]
    without = [some.join(calls, on=key, how="anti", nulls_equal=True).select(pl.len()) for some, key in ids]
    orphans = sum(count.item() for count in pl.collect_all(without))
    out.losses.count("launch_before_window", orphans, category="launches")


def check_spans(out: TraceBuilder) -> None:
    """Count ProfilerStep marks that overlap on one thread."""
    if not out.rows("spans"):
        return
    overlaps = (
        out.frame("spans")
        .filter(pl.col("span").str.starts_with("ProfilerStep") & pl.col("thread").is_not_null())
        .sort("rank", "process", "thread", "start_ns")
        .select(
            (pl.col("start_ns").shift(-1) < pl.col("start_ns") + pl.col("dur_ns") - _ROUNDING_NS)
            .over("rank", "process", "thread")
            .sum()
        )
        .collect()
        .item()
    )
    out.losses.count("overlapping_profiler_steps", overlaps or 0, category="spans")
