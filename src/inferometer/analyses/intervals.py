"""Unions of intervals: busy time counts what is open at least once, so it never exceeds the wall time."""

from collections.abc import Sequence

import polars as pl


def busy_by(launches: pl.LazyFrame, by: Sequence[str], *, name: str = "busy_ns") -> pl.LazyFrame:
    """Busy time of each group: the union of its intervals, ns, not their sum.

    Args:
        launches: Has the columns `by`, `start_ns` and `dur_ns`; any order, overlaps allowed.
        by: Columns that make a group; nulls are a group of their own.
        name: Name of the resulting column.

    Returns:
        One row a group: `by` and `name`.
    """
    start, end = pl.col("start_ns"), pl.col("start_ns") + pl.col("dur_ns")
    return (
        launches.sort(*by, "start_ns")
        .with_columns(end.cum_max().shift(1).over(by).alias("_open_until"))
        .select(*by, (end - pl.max_horizontal(start, pl.col("_open_until"))).clip(lower_bound=0).alias(name))
        .group_by(by)
        .agg(pl.col(name).sum())
    )
