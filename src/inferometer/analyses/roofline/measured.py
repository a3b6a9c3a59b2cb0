"""What counters measured of each row of the table, next to what is modelled, and the bound at the measured clock."""

from typing import Any, Final

import polars as pl

from inferometer.analyses.counters.by_row import BY_ROW, counted_by_row
from inferometer.analyses.counters.join import Joined
from inferometer.hardware.device import Device
from inferometer.hardware.peak_clocks import peak_clock

_FLOPS: Final = ("measured_fp32_flops", "measured_fp64_flops", "measured_tensor_flops")
MEASURED: Final[dict[str, Any]] = {
    **{name: BY_ROW[name] for name in ("counted_launches", "launches_by_name", "measured_dram_bytes")},
    "dram_ratio": pl.Float64,
    **{name: BY_ROW[name] for name in ("l2_hit_rate", "measured_occupancy", "measured_clock_hz")},
    "clock_bound_ns": pl.Float64,
    **{name: BY_ROW[name] for name in (*_FLOPS, "reasons")},
}
"""Measured: launches with counters, and the mean of one of them. `dram_ratio`: bytes of all over those modelled, null
where a kernel has no counters. `clock_bound_ns` is modelled: of rows bound by matrix units, at the measured clock."""


def with_measured(rows: pl.DataFrame, joined: Joined | None, device: Device | None) -> pl.DataFrame:
    """`rows` with columns `MEASURED`.

    Args:
        rows: Of the table, with `row`.
        joined: Without it all columns are null.
        device: For the bound at the clock.
    """
    if joined is None:
        return rows.with_columns(pl.lit(None, dtype=dtype).alias(name) for name, dtype in MEASURED.items())
    modelled = (pl.col("read_bytes") + pl.col("write_bytes")) * pl.col("calls")
    return (
        rows.join(counted_by_row(joined), on="row", how="left", maintain_order="left")
        .with_columns(pl.when(modelled > 0).then(pl.col("dram_sum") / modelled).alias("dram_ratio"))
        .with_columns(_bound_at_clock(rows, device).alias("clock_bound_ns"))
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
