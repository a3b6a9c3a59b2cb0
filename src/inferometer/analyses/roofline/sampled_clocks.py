"""The clocks that a recording sampled while launches ran, and the bound at these.

Peaks are given for a clock that a device under load doesn't always hold. Matrix units scale with the multiprocessors'
clock, from the one at which their peak holds; vector units and special functions from the highest; memory with its own
clock, from the highest that the recording has, since device data don't show the nominal one. A sample is of a moment,
some launches away: bounds at sampled clocks stand next to those at the nominal ones and replace none.
"""

from typing import Any, Final

import polars as pl

from inferometer.hardware.device import Device
from inferometer.hardware.peak_clocks import peak_clock
from inferometer.trace.trace import Trace

SAMPLED: Final[dict[str, Any]] = dict.fromkeys(
    ("sampled_clock_hz", "sampled_memory_clock_hz", "sampled_clock_bound_ns"), pl.Float64
)
"""Sampled: harmonic means over the launches of a row, null unless each has a sample nearby. Modelled: the bound."""
_METRICS: Final = {"sm_hz": "gpu_sm_frequency", "memory_hz": "gpu_mem_frequency"}
_NEAR_NS: Final = 500_000_000
_HZ: Final = 1e6  # samples are in MHz


def with_clocks(launches: pl.DataFrame, trace: Trace) -> pl.DataFrame:
    """`launches` with `sm_hz` and `memory_hz`, of the sample that is nearest in time; null where none is near.

    Files of several machines name devices alike, so launches of such have none.
    """
    clocks = _samples(trace)
    if clocks.is_empty():
        return launches.with_columns(pl.lit(None, dtype=pl.Float64).alias(name) for name in _METRICS)
    found = launches.with_columns(pl.col("device").cast(pl.String).alias("place")).with_row_index("at")
    for name, metric in _METRICS.items():
        samples = clocks.filter(pl.col("metric") == metric).select(
            pl.col("device").alias("place"), "time_ns", (pl.col("value") * _HZ).alias(name)
        )
        near = found.select("at", "place", "start_ns").sort("start_ns").join_asof(
            samples.sort("time_ns"), left_on="start_ns", right_on="time_ns", by="place", strategy="nearest",
            tolerance=_NEAR_NS, check_sortedness=False,
        )  # fmt: skip
        found = found.join(near.select("at", name), on="at", how="left", maintain_order="left")
    return found.drop("at", "place")


def with_sampled(rows: pl.DataFrame, launches: pl.DataFrame, device: Device | None) -> pl.DataFrame:
    """`rows` with columns `SAMPLED`.

    Args:
        rows: Of the table, with `row` and the times of one call by bound.
        launches: Of `with_clocks`, each with its `row`.
        device: For the clocks at which its peaks hold.
    """
    means = launches.group_by("row").agg(
        *(
            pl.when(pl.col(clock).is_not_null().all()).then(1 / (1 / pl.col(clock)).mean()).alias(name)
            for clock, name in (("sm_hz", "sampled_clock_hz"), ("memory_hz", "sampled_memory_clock_hz"))
        )
    )
    highest = launches["memory_hz"].max()
    return rows.join(means, on="row", how="left", maintain_order="left").with_columns(
        _bound(rows, device, highest if isinstance(highest, float) else None).alias("sampled_clock_bound_ns")
    )


def _samples(trace: Trace) -> pl.DataFrame:
    if "counters" not in trace.scope or len(trace.facts.hosts) > 1:
        return pl.DataFrame(schema={"metric": pl.String, "device": pl.String, "time_ns": pl.Int64, "value": pl.Float64})
    rows = trace.counters.filter(pl.col("metric").is_in(list(_METRICS.values())), pl.col("value") > 0)
    return rows.select(pl.col("metric", "device").cast(pl.String), "time_ns", "value").drop_nulls().collect()


def _bound(rows: pl.DataFrame, device: Device | None, highest_memory_hz: float | None) -> pl.Expr:
    """Of all calls, the greatest of its bounds, each at its clock; null where a clock that it needs isn't known."""
    if device is None or device.graphics_clock is None:
        return pl.lit(None, dtype=pl.Float64)
    dtypes = [str(each) for each in rows["dtype"].drop_nulls().unique().to_list()]
    clocks = {dtype: clock for dtype in dtypes if (clock := peak_clock(device, dtype)) is not None}
    peak = pl.col("dtype").replace_strict(clocks, default=None, return_dtype=pl.Float64)
    sm = pl.col("sampled_clock_hz")
    matrix = pl.when(pl.col("matrix_of_call_ns") > 0).then(pl.col("matrix_of_call_ns") * peak / sm).otherwise(0.0)
    vector = pl.col("vector_of_call_ns") * device.graphics_clock.value / sm
    slower = (pl.lit(highest_memory_hz) / pl.col("sampled_memory_clock_hz")).fill_null(1.0)
    memory = pl.col("memory_of_call_ns") * slower
    known = pl.all_horizontal(each.is_not_null() for each in (matrix, vector, memory))
    at_clock = pl.when(known).then(pl.max_horizontal(matrix, vector, memory))
    return pl.when(pl.col("reason").is_null()).then(at_clock * pl.col("calls"))
