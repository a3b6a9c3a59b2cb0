"""What was counted of each launch, from the metrics of Nsight Compute's raw page or its details.

Sources: Nsight Compute's documentation of metrics (Kernel Profiling Guide), and both pages of one run on an H200.
FLOPs are additions, multiplications and twice the fused ones that threads executed; where a file has their rate alone,
that rate times the cycles. Of the matrix units, what `sm__ops_path_tensor_*` counts: their instructions have several
sizes. Left out: FP16 on vector units (how packed instructions count isn't documented), sparse products, Blackwell's
metrics by instruction (`.._op_utcqmma_..`), which may count the same operations again.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Final

import polars as pl

_SINGLE: Final[dict[str, tuple[str, ...]]] = {
    "dram_read": ("dram__bytes_read.sum",),
    "dram_write": ("dram__bytes_write.sum",),
    "dram": ("dram__bytes.sum",),
    "dram_per_s": ("dram__bytes.sum.per_second", "Memory Workload Analysis: Memory Throughput"),
    "alone_ns": ("gpu__time_duration.sum", "gpu__time_duration.avg", "GPU Speed Of Light Throughput: Duration"),
    "cycles": ("smsp__cycles_elapsed.avg", "sm__cycles_elapsed.avg"),
    "l2_hit_pct": ("lts__t_sector_hit_rate.pct", "Memory Workload Analysis: L2 Hit Rate"),
    "l2_sectors": ("lts__t_sectors.sum",),
    "occupancy_pct": ("sm__warps_active.avg.pct_of_peak_sustained_active", "Occupancy: Achieved Occupancy"),
    "clock_hz": (
        *("gpc__cycles_elapsed.avg.per_second", "GPU Speed Of Light Throughput: SM Frequency"),
        *("sm__cycles_elapsed.avg.per_second", "smsp__cycles_elapsed.avg.per_second"),
    ),  # gpc__ is what the details call SM Frequency; on an H200, sm__ was a fifth lower where a kernel took 4 us
}  # the first that a launch has
_OPERATION: Final = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum"
_RATE: Final = ".per_cycle_elapsed"
_FLOPS: Final = {"fp32_flops": "f", "fp64_flops": "d"}
_EACH: Final = {"add": 1, "mul": 1, "fma": 2}
_MATRIX: Final = r"^sm__ops_path_tensor_src_[a-z0-9]+_dst_[a-z0-9]+\.sum$"
SUMS: Final = ("dram_bytes", *_FLOPS, "tensor_flops")
"""Counts of a launch, to be added up."""
MEANS: Final = {"l2_hit_rate": "l2_weight", "occupancy": "time_weight", "clock_hz": "time_weight"}
"""Shares and rates of a launch, and the column that weights each where several launches are one row."""
ABOUT: Final = ("rank", "launch", "kernel", "grid", "block", "process", "device")
_KEY: Final = ("rank", "launch")


def first_of(counters: pl.DataFrame, metrics: Mapping[str, Sequence[str]]) -> pl.DataFrame:
    """A row per launch that has any of them: `rank`, `launch`, and of each name the first metric that was counted."""
    known = counters.filter(pl.col("metric").is_in([name for names in metrics.values() for name in names]))
    return known.group_by(_KEY).agg(_first(names).alias(name) for name, names in metrics.items())


def counted_launches(counters: pl.DataFrame) -> pl.DataFrame:
    """A row per launch, in the order of the file: `ABOUT`, `alone_ns`, `SUMS`, `MEANS` (shares, 0 to 1), their weights.

    Null is what wasn't counted. Launches without any of these metrics stay.

    Args:
        counters: The table `kernel_counters`.
    """
    about = counters.select(ABOUT).unique(_KEY, keep="first", maintain_order=True).sort(_KEY)
    known = counters.filter(pl.col("metric").is_in(_names()) | pl.col("metric").str.contains(_MATRIX))
    values = known.group_by(_KEY).agg(
        *(_first(names).alias(name) for name, names in _SINGLE.items()),
        *(
            _value(_OPERATION.format(kind + each) + suffix).alias(kind + each + suffix)
            for kind in _FLOPS.values()
            for each in _EACH
            for suffix in ("", _RATE)
        ),
        pl.col("value").filter(pl.col("metric").str.contains(_MATRIX)).alias("matrix"),
    )
    wide = about.join(values, on=_KEY, how="left", maintain_order="left", nulls_equal=True)
    flops = (_flops(kind).alias(name) for name, kind in _FLOPS.items())
    return wide.select(*ABOUT, "alone_ns", _dram(), *flops, *_others())


def _names() -> list[str]:
    operations = [_OPERATION.format(kind + each) for kind in _FLOPS.values() for each in _EACH]
    return [
        *(name for names in _SINGLE.values() for name in names),
        *operations,
        *(name + _RATE for name in operations),
    ]


def _value(metric: str) -> pl.Expr:
    return pl.col("value").filter(pl.col("metric") == metric).first()


def _first(metrics: Sequence[str]) -> pl.Expr:
    return pl.coalesce(_value(metric) for metric in metrics)


def _dram() -> pl.Expr:
    rate = pl.col("dram_per_s") * pl.col("alone_ns") / 1e9
    return pl.coalesce(pl.col("dram_read") + pl.col("dram_write"), "dram", rate).alias("dram_bytes")


def _flops(kind: str) -> pl.Expr:
    """Of all three instructions; null where one wasn't counted."""
    counts = (
        count * pl.coalesce(pl.col(kind + each), pl.col(kind + each + _RATE) * pl.col("cycles"))
        for each, count in _EACH.items()
    )
    return reduce(pl.Expr.add, counts)


def _others() -> tuple[pl.Expr, ...]:
    return (
        pl.when(pl.col("matrix").list.drop_nulls().list.len() > 0)
        .then(pl.col("matrix").list.sum())
        .alias("tensor_flops"),
        (pl.col("l2_hit_pct") / 100).alias("l2_hit_rate"),
        (pl.col("occupancy_pct") / 100).alias("occupancy"),
        pl.col("clock_hz"),
        pl.col("l2_sectors").fill_null(1.0).alias("l2_weight"),
        pl.col("alone_ns").fill_null(1.0).alias("time_weight"),
    )
