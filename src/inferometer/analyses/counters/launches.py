"""The table of a file of counters: one row per launch that was profiled, in the order of the file."""

from dataclasses import dataclass
from typing import Any, ClassVar, Final

import polars as pl

from inferometer.analyses.counters.metrics import ABOUT, MEANS, SUMS, counted_launches, first_of
from inferometer.analyses.counters.stalls import as_lists, pipe_shares, stall_shares
from inferometer.analyses.recording_advice import say_how_counters_are_recorded
from inferometer.analyses.result import Result
from inferometer.analyses.rows import compile_match, first_rows, match_as_json, matching_kernels
from inferometer.errors import InputError
from inferometer.names import decode
from inferometer.trace.losses import Losses
from inferometer.trace.trace import Trace

NEEDED: Final = {"kernel_counters": (*ABOUT, "stream", "metric", "value", "unit")}
_KEY: Final = ("rank", "launch")
_MORE: Final[dict[str, tuple[str, ...]]] = {
    "compute_pct": (
        "sm__throughput.avg.pct_of_peak_sustained_elapsed",
        "GPU Speed Of Light Throughput: Compute (SM) Throughput",
    ),
    "memory_pct": (
        "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
        "GPU Speed Of Light Throughput: Memory Throughput",
    ),
    "dram_pct": (
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
        "dram__throughput.avg.pct_of_peak_sustained_elapsed",
        "GPU Speed Of Light Throughput: DRAM Throughput",
    ),
    "l1_pct": ("l1tex__t_sector_hit_rate.pct", "Memory Workload Analysis: L1/TEX Hit Rate"),
    "theoretical_pct": ("sm__maximum_warps_per_active_cycle_pct", "Occupancy: Theoretical Occupancy"),
    "registers": ("launch__registers_per_thread", "Launch Statistics: Registers Per Thread"),
    "static": ("launch__shared_mem_per_block_static", "Launch Statistics: Static Shared Memory Per Block"),
    "dynamic": ("launch__shared_mem_per_block_dynamic", "Launch Statistics: Dynamic Shared Memory Per Block"),
}
COLUMNS: Final = (
    *("rank", "launch", "kernel", "device", "process", "stream", "grid", "block", "alone_ns"),
    *("compute_share", "memory_share", "dram_share"),
    *(*SUMS, "l1_hit_rate", *MEANS, "theoretical_occupancy", "registers", "shared_bytes", "pipes", "reasons"),
)


METRICS: Final = ("kernel", "metric", "launches", "total", "mean", "least", "most", "unit")
_ABOUT: Final = frozenset({"rank", "launch", "kernel", "device", "process", "stream", "grid", "block"})


@dataclass(frozen=True)
class LaunchCounters(Result):
    """`frame`: `COLUMNS` of each launch shown. Null is what wasn't counted.

    `alone_ns`: how long it took by itself. `compute_share`, `memory_share`, `dram_share`: of the most that the device
    can sustain. `pipes` and `reasons`: lists of a name and a share, the largest first: how busy each pipe was, and what
    warps spent their cycles on. `launches`: all in the file.

    `metrics`: `METRICS` of each kernel, over all launches that `match` leaves, of a file whose metrics have no column:
    those of AMD, as rocprofv3 names them. Empty of others. `format`: that of the file.
    """

    view: ClassVar[str] = "launch_counters"
    source: str
    frame: pl.DataFrame
    launches: int
    losses: Losses
    match: str | None
    metrics: pl.DataFrame
    format: str

    def to_polars(self) -> pl.DataFrame:
        """The rows shown."""
        return self.frame

    def as_json(self) -> dict[str, Any]:
        rows = self.frame.to_dicts()
        return {
            "source": self.source,
            "launches": self.launches,
            "match": match_as_json(self.match, "kernel", "short"),
            "rows": [{**row, "short": decode(row["kernel"]).short_name} for row in rows],
            "metrics": self.metrics.to_dicts(),
            "losses": self.losses.as_dict(),
        }


def launch_counters(trace: Trace, *, top: int | None = None, match: str | None = None) -> LaunchCounters:
    """What was counted of each launch.

    Args:
        trace: With `NEEDED`.
        top: Show so many launches.
        match: Show launches of kernels whose name, or whose short name, this regular expression finds.

    Raises:
        InputError: It holds no counters of launches, or `match` is no regular expression.
    """
    table = trace.tables["kernel_counters"].select(NEEDED["kernel_counters"]).collect()
    if not table.height:
        raise InputError(
            f"{trace.facts.source}: expected counters of launches, found none",
            hint=say_how_counters_are_recorded(trace.facts.format),
        )
    rows = counted_launches(table)
    for more in (
        table.unique(_KEY, keep="first").select(*_KEY, "stream"),
        first_of(table, _MORE),
        as_lists(pipe_shares(table), "pipe"),
        as_lists(stall_shares(table), "reason"),
    ):
        rows = rows.join(more, on=_KEY, how="left", maintain_order="left", nulls_equal=True)
    rows = rows.with_columns(_shares()).select(COLUMNS)
    shown = matching_kernels(rows, compile_match(match))
    return LaunchCounters(
        trace.facts.source,
        first_rows(shown, top),
        rows.height,
        trace.losses,
        match,
        _by_metric(table, rows, shown),
        trace.facts.format,
    )


def _by_metric(table: pl.DataFrame, rows: pl.DataFrame, shown: pl.DataFrame) -> pl.DataFrame:
    """`METRICS` of the launches shown; none where a metric of the file has a column of its own."""
    has_column = any(rows[name].count() for name in COLUMNS if name not in _ABOUT)
    value = pl.col("value")
    sums = (
        table.join(shown.select(_KEY), on=_KEY, how="semi", nulls_equal=True)
        .filter(value.is_not_null() & ~pl.lit(has_column))
        .group_by("kernel", "metric", maintain_order=True)
        .agg(
            *(pl.len().cast(pl.Int64).alias("launches"), value.sum().alias("total"), value.mean().alias("mean")),
            *(value.min().alias("least"), value.max().alias("most"), pl.col("unit").first()),
        )
    )
    return sums.select(METRICS)


def _shares() -> list[pl.Expr]:
    percents = {
        "compute_share": "compute_pct",
        "memory_share": "memory_pct",
        "dram_share": "dram_pct",
        "l1_hit_rate": "l1_pct",
        "theoretical_occupancy": "theoretical_pct",
    }
    return [
        *((pl.col(percent) / 100).alias(name) for name, percent in percents.items()),
        pl.col("registers").round().cast(pl.Int64),
        (pl.col("static") + pl.col("dynamic")).round().cast(pl.Int64).alias("shared_bytes"),
    ]
