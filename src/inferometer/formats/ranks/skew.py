"""How far the clocks of ranks seem to be apart: ranks leave a collective at nearly the same time.

The k-th launches of one kernel on two ranks are taken for the same collective, where both have as many; the difference
of their ends is the clocks' difference plus what the ranks did differently. An estimate: it is noted, never applied.
"""

from collections.abc import Mapping

import polars as pl

from inferometer.names.communication import done_halves, find_collective
from inferometer.trace.combined_facts import Skew

_TOGETHER = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")  # of others, a rank may leave early
_NEEDED = ("kind", "kernel", "rank", "start_ns", "dur_ns")


def find_skews(launches: pl.LazyFrame | None) -> Mapping[int, Skew]:
    """The skew of each rank against the lowest rank that has collectives; none where nothing can be compared."""
    if launches is None or not set(_NEEDED) <= set(launches.collect_schema().names()):
        return {}
    launches = launches.filter(pl.col("kind") == "kernel")
    names = launches.select(pl.col("kernel").unique()).collect().to_series()
    together = [name for name in names if find_collective(name) in _TOGETHER]
    together = sorted(set(together) - done_halves(together))  # of a collective in halves, the first's end counts
    if not together:
        return {}
    ends = (
        launches.filter(pl.col("kernel").is_in(together))
        .select("rank", "kernel", end_ns=pl.col("start_ns") + pl.col("dur_ns"))
        .sort("rank", "kernel", "end_ns")
        .with_columns(k=pl.int_range(pl.len()).over("rank", "kernel"), n=pl.len().over("rank", "kernel"))
        .collect()
    )
    reference = ends.filter(pl.col("rank") == pl.col("rank").min())
    late = (
        ends.filter(pl.col("rank") != pl.col("rank").min())
        .join(reference.rename({"end_ns": "reference_ns"}).drop("rank"), on=["kernel", "k", "n"])
        .select("rank", late_ns=pl.col("end_ns") - pl.col("reference_ns"))
        .with_columns(skew_ns=pl.col("late_ns").median().over("rank").round().cast(pl.Int64))
        .with_columns(off_ns=(pl.col("late_ns") - pl.col("skew_ns")).abs())
        .group_by("rank")
        .agg(pl.col("skew_ns").first(), pl.col("off_ns").median().round().cast(pl.Int64), pl.len())
    )
    return {rank: Skew(skew_ns, spread_ns, n) for rank, skew_ns, spread_ns, n in late.iter_rows()}
