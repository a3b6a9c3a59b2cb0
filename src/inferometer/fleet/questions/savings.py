"""What a quicker kernel would save: the table of Amdahl.

A kernel that is 20 % faster does 1.2 times as much in the same time, so it takes 1 / 1.2 of it, and saves a sixth.
That is the most: where the GPU would only wait for the host longer, or other kernels ran meanwhile, less is saved.
GPU-hours are those that the traces hold; `share` is of the time for which they held their GPUs, so it can be taken to
what the deployments use.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl

from inferometer.analyses.result import Result
from inferometer.fleet.opening import Fleet
from inferometer.fleet.questions.bootstrap import cluster_sums, clusters_of, pivot, share_intervals
from inferometer.fleet.questions.times import HOUR_NS
from inferometer.fleet.tables import TRACE
from inferometer.trace.losses import Losses


@dataclass(frozen=True)
class FleetSavings(Result):
    """`frame`: a row for each kernel, the most to save first: `total_ns`, `saved_ns`, the same in `saved_gpu_hours`.

    `share` is what is saved of the held time, `low` and `high` its interval over clusters of traces, null with a single
    one. `faster` is by how much a kernel is (0.2: 20 %). Only traces that hold GPUs for a known time count: `traces`.
    """

    view: ClassVar[str] = "fleet.savings"
    source: str
    faster: float
    cluster: str | None
    frame: pl.DataFrame
    traces: int
    clusters: int
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
            "faster": self.faster,
            "cluster": self.cluster,
            "traces": self.traces,
            "clusters": self.clusters,
            "held_gpu_hours": self.held_gpu_hours,
            "rows": self.frame.to_dicts(),
            "losses": self.losses.as_dict(),
        }


def fleet_savings(
    fleet: Fleet, *, faster: float = 0.2, cluster: str | None = None, top: int | None = None
) -> FleetSavings:
    """What each kernel would save at most.

    Args:
        fleet: The traces.
        faster: By how much a kernel is, above 0: 0.2 is 20 %.
        cluster: The column of `opening.GROUPS` whose values make clusters; None: each trace is one.
        top: Show so many rows.
    """
    clusters = clusters_of(fleet, cluster)
    held = fleet.traces.filter(pl.col("held_ns") > 0).select(TRACE, "held_ns").join(clusters.of, on=TRACE)
    saved = 1 - 1 / (1 + faster)
    parts = fleet.table("kernels").join(held.lazy().select(TRACE, "cluster"), on=TRACE).collect()
    sums = parts.group_by("kernel").agg(
        pl.col("short", "family").first(),
        pl.col(TRACE).n_unique().cast(pl.Int64).alias("traces"),
        pl.col("total_ns").sum(),
    )
    rows = sums.sort("total_ns", "kernel", descending=[True, False])
    shown = rows if top is None else rows.head(top)
    own = parts.join(shown.select("kernel").with_row_index("thing"), on="kernel")
    values = own.select("cluster", "thing", (pl.col("total_ns") * saved).alias("value"))
    wholes = cluster_sums(held, "held_ns", clusters.count)
    has_some = wholes > 0
    low, high = share_intervals(pivot(values, clusters.count, shown.height)[has_some], wholes[has_some])
    held_ns = int(held["held_ns"].sum())
    frame = shown.with_columns(
        (pl.col("total_ns") * saved).alias("saved_ns"),
        (pl.col("total_ns") * saved / HOUR_NS).alias("saved_gpu_hours"),
        (pl.col("total_ns") * saved / held_ns if held_ns else pl.lit(None, dtype=pl.Float64)).alias("share"),
        pl.Series("low", low).fill_nan(None),
        pl.Series("high", high).fill_nan(None),
    )
    return FleetSavings(
        source=fleet.source,
        faster=faster,
        cluster=cluster,
        frame=frame,
        traces=held.height,
        clusters=int(np.count_nonzero(has_some)),
        held_gpu_hours=held_ns / HOUR_NS,
        rows=rows.height,
        losses=fleet.losses(),
    )
