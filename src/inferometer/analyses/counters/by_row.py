"""What was counted of the launches of each row of a table: counts, shares, and what warps spent their cycles on."""

from typing import Any, Final

import polars as pl

from inferometer.analyses.counters.join import Joined
from inferometer.analyses.counters.metrics import MEANS, SUMS

BY_ROW: Final[dict[str, Any]] = {
    "counted_launches": pl.Int64,
    "launches_by_name": pl.Int64,
    **dict.fromkeys((f"measured_{name}" for name in SUMS), pl.Float64),
    **dict.fromkeys(("l2_hit_rate", "measured_occupancy", "measured_clock_hz"), pl.Float64),
    "reasons": pl.List(pl.Struct({"reason": pl.String, "share": pl.Float64})),
}
"""Columns: launches with counters; those of them that joined by name alone, whatever their size; means of one of them;
reasons and their shares of the cycles of warps."""
_NAMES: Final = {"l2_hit_rate": "l2_hit_rate", "occupancy": "measured_occupancy", "clock_hz": "measured_clock_hz"}


def counted_by_row(joined: Joined) -> pl.DataFrame:
    """`row`, `BY_ROW` and `dram_sum`: of all launches of a row, copies and fills aside.

    `dram_sum` is null where one of the row's kernels has no counters.
    """
    is_joined = pl.col("counted").is_not_null()
    is_kernel = pl.col("kind").cast(pl.String) == "kernel"
    rows = joined.launches.group_by("row").agg(
        is_joined.sum().cast(pl.Int64).alias("counted_launches"),
        pl.col("is_by_name").sum().cast(pl.Int64).alias("launches_by_name"),
        *(pl.col(name).mean().alias(f"measured_{name}") for name in SUMS),
        *((pl.col(name).sum() / pl.col(f"{name}_of").sum()).fill_nan(None).alias(_NAMES[name]) for name in MEANS),
        pl.when((pl.col("dram_bytes").is_not_null() | ~is_kernel).all() & is_joined.any())
        .then(pl.col("dram_bytes").sum())
        .alias("dram_sum"),
    )
    return rows.join(_reasons(joined), on="row", how="left")


def _reasons(joined: Joined) -> pl.DataFrame:
    """The mean over the launches of a row whose kernels have any; each launch counts once."""
    place = ["alike", "place"]
    known = joined.stalls.join(joined.counted.select("rank", "launch", *place), on=("rank", "launch"), nulls_equal=True)
    counted = known.group_by(place).agg(pl.struct("rank", "launch").n_unique().alias("counted"))
    shares = known.group_by(*place, "reason").agg(pl.col("share").sum())
    launches = joined.launches.group_by("row", *place).agg(pl.len().alias("launches")).join(counted, on=place)
    total = launches.group_by("row").agg(pl.col("launches").sum().alias("total"))
    return (
        launches.join(shares, on=place)
        .group_by("row", "reason")
        .agg((pl.col("launches") * pl.col("share") / pl.col("counted")).sum().alias("share"))
        .join(total, on="row")
        .with_columns(pl.col("share") / pl.col("total"))
        .sort("row", "share", "reason", descending=[False, True, False])
        .group_by("row", maintain_order=True)
        .agg(pl.struct("reason", "share").alias("reasons"))
    )
