"""Rows of a table that can become rows of a trace: those with a start and an end that make sense."""

import polars as pl

from inferometer.trace.losses import Losses

_LONGEST_NS = 2**53  # 104 days: a thousand such durations still add up within 64 bits
_FURTHEST_NS = 2**62  # ±146 years


def keep_timed(rows: pl.DataFrame, table: str, losses: Losses) -> pl.DataFrame:
    """`rows` with `dur_ns` from `start` and `end`, without those whose times can't be used; these are counted.

    Rows that have `dur_ns` already are good: a reader gives it only where it can be trusted.
    """
    if "dur_ns" in rows.columns:
        return rows
    start, length = pl.col("start"), pl.col("end") - pl.col("start")  # a difference beyond 64 bits wraps to below 0
    timed = rows.with_columns(length.alias("dur_ns"))
    if _all_good(timed):
        return timed
    reasons = {
        "without_timestamp": start.is_null(),
        "without_duration": pl.col("end").is_null(),
        "negative_duration": length < 0,
        "time_out_of_range": (length > _LONGEST_NS) | ~start.is_between(-_FURTHEST_NS, _FURTHEST_NS),
    }
    reason = pl.coalesce(pl.when(bad).then(pl.lit(name)) for name, bad in reasons.items())
    judged = timed.with_columns(reason.alias("reason"))
    for name, n in judged["reason"].drop_nulls().value_counts(name="n").iter_rows():
        losses.count(name, n, category=table)
    return judged.filter(pl.col("reason").is_null()).drop("reason")


def _all_good(rows: pl.DataFrame) -> bool:
    """The usual case, found quickly."""
    if not rows.height:
        return True
    if rows["start"].null_count() or rows["dur_ns"].null_count():
        return False
    return (
        _least(rows["dur_ns"]) >= 0
        and _most(rows["dur_ns"]) <= _LONGEST_NS
        and _least(rows["start"]) >= -_FURTHEST_NS
        and _most(rows["start"]) <= _FURTHEST_NS
    )


def _least(numbers: pl.Series) -> int:
    return int(numbers.min())  # type: ignore[arg-type]  # a column of integers with rows has one


def _most(numbers: pl.Series) -> int:
    return int(numbers.max())  # type: ignore[arg-type]
