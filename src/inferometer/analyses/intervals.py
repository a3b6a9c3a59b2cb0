"""Unions of intervals: busy time counts what is open at least once, so it never exceeds the wall time."""

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

Times = NDArray[np.int64]


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


def concurrent_by(intervals: pl.LazyFrame, by: Sequence[str], *, name: str = "concurrent_ns") -> pl.LazyFrame:
    """Time of each group during which at least two of its intervals are open, ns. Arguments as of `busy_by`.

    An interval meets an earlier one from its own start until the latest end so far: the union of these meetings.
    """
    end = pl.col("start_ns") + pl.col("dur_ns")
    open_until = end.cum_max().shift(1).over(by)
    met_ns = pl.min_horizontal(end, open_until.fill_null(pl.col("start_ns"))) - pl.col("start_ns")
    meetings = intervals.sort(*by, "start_ns").select(*by, "start_ns", met_ns.clip(lower_bound=0).alias("dur_ns"))
    return busy_by(meetings, by, name=name)


def merge(start_ns: Times, end_ns: Times) -> tuple[Times, Times]:
    """The union as intervals that neither overlap nor touch, in order.

    Args:
        start_ns: Starts in order of time. Shape (n,).
        end_ns: Ends, exclusive. Shape (n,).
    """
    if not len(start_ns):
        return start_ns, end_ns
    open_until = np.maximum.accumulate(end_ns)
    begins = np.flatnonzero(np.concatenate(([True], start_ns[1:] > open_until[:-1])))
    return start_ns[begins], open_until[np.concatenate((begins[1:] - 1, [len(end_ns) - 1]))]
