"""What was counted of the kernels of a trace: the counters' file joined to its launches, a row per kernel."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
import polars as pl

from inferometer.analyses.counters.by_row import BY_ROW, counted_by_row
from inferometer.analyses.counters.join import JoinAccount, join_counters
from inferometer.trace.trace import Trace

LAUNCHES: Final = ("kind", "kernel", "rank", "device", "start_ns", "dur_ns", "grid", "block")
"""Columns of launches that tie them to counted ones."""


class KernelCounters(msgspec.Struct, frozen=True):
    """`frame`: `kernel`, `total_ns`, `launches` and `BY_ROW` of each kernel with counters, the most time first."""

    account: JoinAccount
    frame: pl.DataFrame

    def as_json(self) -> dict[str, Any]:
        """All of it, plain."""
        return {**self.account.as_json(), "rows": self.frame.to_dicts()}


def kernel_counters(launches: pl.LazyFrame, labels: Mapping[str, str | None], counters: Trace) -> KernelCounters:
    """Join them by name, grid, block and order.

    Args:
        launches: With `LAUNCHES`.
        labels: What kernels are called in the table; others keep their names.
        counters: Of the same kernels, with `join.NEEDED`.

    Raises:
        InputError: `counters` holds none that are read.
    """
    placed = (
        launches.select(*LAUNCHES)
        .filter(pl.col("kind").cast(pl.String) == "kernel")
        .with_columns(pl.col("kernel").cast(pl.String))
        .with_columns(pl.col("kernel").replace(labels).rank("dense").cast(pl.Int64).alias("row"))
        .collect()
    )
    joined = join_counters(placed, counters)
    rows = placed.group_by("row").agg(
        pl.col("kernel").first().replace(labels),
        pl.col("dur_ns").sum().alias("total_ns"),
        pl.len().cast(pl.Int64).alias("launches"),
    )
    frame = (
        rows.join(counted_by_row(joined), on="row")
        .filter(pl.col("counted_launches") > 0)
        .sort("total_ns", "kernel", descending=[True, False])
        .select("kernel", "total_ns", "launches", *BY_ROW)
    )
    return KernelCounters(joined.account, frame)
