"""What counters measured of each row of the table, next to what is modelled, and the bound at the measured clock."""

from typing import Any, Final

import polars as pl

from inferometer.analyses.roofline.counters.metrics import MEANS, SUMS
from inferometer.hardware.device import Device
from inferometer.hardware.peak_clocks import peak_clock

MEASURED: Final[dict[str, Any]] = {
    "counted_launches": pl.Int64,
    **dict.fromkeys(("measured_dram_bytes", "dram_ratio", "l2_hit_rate", "measured_occupancy"), pl.Float64),
    **dict.fromkeys(("measured_clock_hz", "clock_bound_ns"), pl.Float64),
    **dict.fromkeys((f"measured_{name}" for name in SUMS if name != "dram_bytes"), pl.Float64),
}
"""Measured: launches with counters, and the mean of one of them. `dram_ratio`: bytes of all over those modelled, null
where a kernel has no counters. `clock_bound_ns` is modelled: of rows bound by matrix units, at the measured clock."""
_NAMES: Final = {"l2_hit_rate": "l2_hit_rate", "occupancy": "measured_occupancy", "clock_hz": "measured_clock_hz"}


def with_measured(rows: pl.DataFrame, launches: pl.DataFrame | None, device: Device | None) -> pl.DataFrame:
    """`rows` with columns `MEASURED`.

    Args:
        rows: Of the table, with `row`.
        launches: Of `join_counters`; without them all columns are null.
        device: For the bound at the clock.
    """
    if launches is None:
        return rows.with_columns(pl.lit(None, dtype=dtype).alias(name) for name, dtype in MEASURED.items())
    modelled = (pl.col("read_bytes") + pl.col("write_bytes")) * pl.col("calls")
    return (
        rows.join(_by_row(launches), on="row", how="left", maintain_order="left")
        .with_columns(pl.when(modelled > 0).then(pl.col("dram_sum") / modelled).alias("dram_ratio"))
        .with_columns(_bound_at_clock(rows, device).alias("clock_bound_ns"))
    )


def _by_row(launches: pl.DataFrame) -> pl.DataFrame:
    """`dram_sum`: of all launches of a row, copies and fills aside; null where one of its kernels has no counters."""
    is_joined = pl.col("counted").is_not_null()
    is_kernel = pl.col("kind").cast(pl.String) == "kernel"
    return launches.group_by("row").agg(
        is_joined.sum().cast(pl.Int64).alias("counted_launches"),
        *(pl.col(name).mean().alias(f"measured_{name}") for name in SUMS),
        *((pl.col(name).sum() / pl.col(f"{name}_of").sum()).fill_nan(None).alias(_NAMES[name]) for name in MEANS),
        pl.when((pl.col("dram_bytes").is_not_null() | ~is_kernel).all() & is_joined.any())
        .then(pl.col("dram_bytes").sum())
        .alias("dram_sum"),
    )


def _bound_at_clock(rows: pl.DataFrame, device: Device | None) -> pl.Expr:
    """Of all calls: the peak of the matrix units scales with the clock, memory's bandwidth doesn't."""
    dtypes = rows["dtype"].drop_nulls().unique().to_list() if device else []
    clocks = {dtype: clock for dtype in dtypes if device and (clock := peak_clock(device, dtype)) is not None}
    if device is None or device.memory_bandwidth is None or not clocks:
        return pl.lit(None, dtype=pl.Float64)
    peak = pl.col("dtype").replace_strict(clocks, default=None, return_dtype=pl.Float64)
    matrix = pl.col("bound_ns") * peak / pl.col("measured_clock_hz")
    memory = 1e9 * (pl.col("read_bytes") + pl.col("write_bytes")) * pl.col("calls") / device.memory_bandwidth.value
    return pl.when(pl.col("binding") == "matrix", matrix.is_not_null()).then(pl.max_horizontal(matrix, memory))
