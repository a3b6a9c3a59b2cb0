"""Which operators with which shapes matter, and how much: their weights add up to 1.

By time, a weight is an op's device time in all traces over that of all ops: what a longer recording holds counts more.
By GPU-hours, it is the op's part of the time for which the GPUs were held: each trace's held time, idle included, is
shared among its ops as their device time is, so a trace whose GPUs mostly wait counts as much as one that keeps them
busy for as long. A trace of a CPU holds none.

What has no op, or was beyond the ops of a digest, has rows of its own: without them weights would be too large. Each
launch is in one row, so weights can't add up to more than 1. The published importance of 30 operators adds up to
109.478 %; its source doesn't say what is counted twice there.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal

import polars as pl

from inferometer.analyses.result import Result
from inferometer.fleet.opening import Fleet
from inferometer.fleet.questions.bootstrap import Clusters, cluster_sums, clusters_of, pivot, share_intervals
from inferometer.fleet.questions.times import HOUR_NS
from inferometer.fleet.tables import TRACE
from inferometer.trace.losses import Losses

Weighing = Literal["time", "gpu-hours"]
WEIGHT: Final = {"time": "time_weight", "gpu-hours": "gpu_hours_weight"}
KEYS: Final = ("op", "kernel", "input_dims", "input_dtypes", "scalars")
"""What makes a row: of an op, its arguments; of launches without one, the kernel."""


@dataclass(frozen=True)
class FleetImportance(Result):
    """`frame`: a row for each op with its arguments, the weightiest first.

    `time_weight` and `gpu_hours_weight`, each with the ends of its interval, `time_low` to `gpu_hours_high`: null with
    a single cluster. `traces` have it, in `clusters`; `calls`, null where some aren't known; `total_ns` is its device
    time, `gpu_hours` its part of the `held_gpu_hours` of all. `bound_ns` is null where it isn't modelled everywhere.
    `operator` of the catalogue, with `operator_args`, null where it is none. `rows` counts those before `top`.
    """

    view: ClassVar[str] = "fleet.importance"
    source: str
    weighing: Weighing
    cluster: str | None
    frame: pl.DataFrame
    traces: int
    clusters: int
    total_ns: int
    held_gpu_hours: float
    rows: int
    losses: Losses

    def to_polars(self) -> pl.DataFrame:
        """The rows shown."""
        return self.frame

    def as_json(self) -> dict[str, Any]:
        """All of it."""
        return {
            "source": self.source,
            "weighing": self.weighing,
            "cluster": self.cluster,
            "traces": self.traces,
            "clusters": self.clusters,
            "total_ns": self.total_ns,
            "held_gpu_hours": self.held_gpu_hours,
            "rows": self.frame.to_dicts(),
            "losses": self.losses.as_dict(),
        }


def fleet_importance(
    fleet: Fleet, *, weighing: Weighing = "time", cluster: str | None = None, top: int | None = None
) -> FleetImportance:
    """Weights of operators with their shapes.

    Args:
        fleet: The traces.
        weighing: What rows are ordered by.
        cluster: The column of `opening.GROUPS` whose values make clusters; None: each trace is one.
        top: Show so many rows.
    """
    clusters = clusters_of(fleet, cluster)
    parts = op_parts(fleet, clusters)
    rows = weighed(parts, weighing)
    shown = _with_intervals(rows if top is None else rows.head(top), parts, clusters)
    return FleetImportance(
        source=fleet.source,
        weighing=weighing,
        cluster=cluster,
        frame=shown,
        traces=parts[TRACE].n_unique(),
        clusters=clusters.count,
        total_ns=int(parts["total_ns"].sum()),
        held_gpu_hours=float(parts["held_ns"].sum()) / HOUR_NS,
        rows=rows.height,
        losses=fleet.losses(),
    )


def op_parts(fleet: Fleet, clusters: Clusters) -> pl.DataFrame:
    """A row for each trace and op with arguments, with `cluster` and `held_ns`, its part of the trace's held time."""
    known = pl.col("op").is_not_null()
    held = fleet.traces.lazy().select(TRACE, pl.col("held_ns").alias("trace_held_ns"))
    part = (pl.col("total_ns") / pl.col("total_ns").sum().over(TRACE)).fill_nan(0.0)
    return (
        fleet.table("ops")
        .with_columns(pl.when(~known).then("kernel").alias("kernel"))
        .group_by(TRACE, *KEYS, maintain_order=True)
        .agg(
            *(_all_or_none(name) for name in ("calls", "bound_ns")),
            pl.col("total_ns").sum(),
            pl.col("family", "operator", "operator_args").first(),
        )
        .join(held, on=TRACE)
        .with_columns((pl.col("trace_held_ns") * part).alias("held_ns"))
        .join(clusters.of.lazy(), on=TRACE)
        .drop("trace_held_ns")
        .sort(TRACE, *KEYS, nulls_last=True)
        .collect()
    )


def _all_or_none(name: str) -> pl.Expr:
    return pl.when(pl.col(name).null_count() == 0).then(pl.col(name).sum()).alias(name)


def weighed(parts: pl.DataFrame, weighing: Weighing) -> pl.DataFrame:
    """All rows of `op_parts` joined over traces, without intervals, the weightiest first."""
    rows = parts.group_by(KEYS).agg(
        pl.col("family", "operator", "operator_args").drop_nulls().first(),
        pl.col(TRACE).n_unique().cast(pl.Int64).alias("traces"),
        pl.col("cluster").n_unique().cast(pl.Int64).alias("clusters"),
        *(_all_or_none(name) for name in ("calls", "bound_ns")),
        pl.col("total_ns").sum(),
        pl.col("held_ns").sum(),
    )
    weights = rows.with_columns(
        (pl.col("total_ns") / pl.col("total_ns").sum()).fill_nan(None).alias("time_weight"),
        (pl.col("held_ns") / pl.col("held_ns").sum()).fill_nan(None).alias("gpu_hours_weight"),
        (pl.col("held_ns") / HOUR_NS).alias("gpu_hours"),
    ).drop("held_ns")
    return weights.sort(WEIGHT[weighing], *KEYS, descending=[True, *[False] * len(KEYS)], nulls_last=True)


def _with_intervals(rows: pl.DataFrame, parts: pl.DataFrame, clusters: Clusters) -> pl.DataFrame:
    numbered = rows.select(KEYS).with_row_index("thing")
    own = parts.join(numbered, on=list(KEYS), nulls_equal=True)
    added = []
    for column, name in (("total_ns", "time"), ("held_ns", "gpu_hours")):
        of = pivot(own.select("cluster", "thing", pl.col(column).alias("value")), clusters.count, rows.height)
        ends = share_intervals(of, cluster_sums(parts, column, clusters.count))
        added += [pl.Series(f"{name}_{end}", ends[i]).fill_nan(None) for i, end in enumerate(("low", "high"))]
    order = (
        *("op", "kernel", "family", "input_dims", "input_dtypes", "scalars", "traces", "clusters", "calls", "total_ns"),
        *("time_weight", "time_low", "time_high", "gpu_hours", "gpu_hours_weight", "gpu_hours_low", "gpu_hours_high"),
        *("bound_ns", "operator", "operator_args"),
    )
    return rows.with_columns(added).select(order)
