"""Where the time above the bound is: by family of ops, module and step.

A call's bound is shared among its launches as their times are, so every launch has a part of it.
"""

from typing import Final

import polars as pl

GAPS: Final = {
    "key": pl.String,
    "launches": pl.Int64,
    "total_ns": pl.Int64,
    "modelled_ns": pl.Int64,
    "bound_ns": pl.Float64,
    "above_ns": pl.Float64,
}
"""Measured time, that of it which has a bound, the bound, and what is above it; `key` null: belongs to none."""


def gaps_by(launches: pl.DataFrame, key: str) -> pl.DataFrame:
    """Sums for each value of a column, most time above the bound first.

    Args:
        launches: With `dur_ns`, `fraction` (null: not modelled) and the column.
        key: The column.
    """
    share = pl.col("dur_ns") * pl.col("fraction")
    above = pl.when(pl.col("fraction") < 1).then(pl.col("dur_ns") - share).otherwise(0.0)
    return (
        launches.group_by(pl.col(key).alias("key"))
        .agg(
            pl.len().cast(pl.Int64).alias("launches"),
            pl.col("dur_ns").sum().alias("total_ns"),
            pl.col("dur_ns").filter(pl.col("fraction").is_not_null()).sum().alias("modelled_ns"),
            share.sum().alias("bound_ns"),
            above.filter(pl.col("fraction").is_not_null()).sum().alias("above_ns"),
        )
        .select(pl.col("key").cast(pl.String), *list(GAPS)[1:])
        .sort("above_ns", "total_ns", "key", descending=[True, True, False])
    )


def with_fractions(frame: pl.DataFrame) -> pl.DataFrame:
    """Rows of `GAPS` with `fraction`, the bound over the modelled time; without such time, no bound and none above."""
    is_modelled = pl.col("modelled_ns") > 0
    return frame.with_columns(
        *(pl.when(is_modelled).then(name).alias(name) for name in ("bound_ns", "above_ns")),
        pl.when(is_modelled).then(pl.col("bound_ns") / pl.col("modelled_ns")).alias("fraction"),
    )
