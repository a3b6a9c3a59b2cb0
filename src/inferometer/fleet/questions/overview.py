"""What a fleet is: traces by group, the GPU-hours that they held, launch-bound time, and the distance to the bound."""

from dataclasses import dataclass
from typing import Any, ClassVar, Final

import polars as pl

from inferometer.analyses.result import Result
from inferometer.fleet.opening import Fleet
from inferometer.fleet.questions.times import HOUR_NS
from inferometer.trace.losses import Losses

SUMS: Final = ("held_ns", "busy_ns", "kernel_ns", "op_ns", "modelled_ns", "stepped_ns", "launch_bound_ns")


@dataclass(frozen=True)
class FleetOverview(Result):
    """`frame`: a row for each value of `by`, those that held GPUs longest first; one row for all without it.

    Sums over traces: `held_ns`, `busy_ns`, `kernel_ns`, `op_ns` and `modelled_ns` as in the table `traces`; `bound_ns`
    and `above_ns` of those with a known device, null where none has one. `above_gpu_hours` is what they took above
    their bounds, `above_share` that of the time that is modelled. `launch_bound_share` is the part of the
    windows of steps (`stepped_ns`) that waited for launches. `findings` are of severity high or medium. `aside` paths
    have no digest.
    """

    view: ClassVar[str] = "fleet.overview"
    source: str
    by: str | None
    frame: pl.DataFrame
    traces: int
    paths: int
    aside: tuple[tuple[str, str], ...]
    losses: Losses

    def to_polars(self) -> pl.DataFrame:
        """One row for each group."""
        return self.frame

    def as_json(self) -> dict[str, Any]:
        """All of it."""
        return {
            "source": self.source,
            "by": self.by,
            "traces": self.traces,
            "paths": self.paths,
            "rows": self.frame.to_dicts(),
            "aside": [{"path": path, "reason": reason} for path, reason in self.aside],
            "losses": self.losses.as_dict(),
        }


def fleet_overview(fleet: Fleet, *, by: str | None = None) -> FleetOverview:
    """What the traces are, by a column of `opening.GROUPS`."""
    grave = (
        fleet.table("findings")
        .filter(pl.col("severity").is_in(["high", "medium"]))
        .group_by("trace")
        .agg(pl.len().cast(pl.Int64).alias("findings"))
    )
    group = pl.col(by).alias("group") if by else pl.lit(None, dtype=pl.String).alias("group")
    known = pl.col("above_ns").is_not_null()
    rows = (
        fleet.traces.lazy()
        .join(grave, on="trace", how="left")
        .with_columns(group)
        .group_by("group")
        .agg(
            pl.len().cast(pl.Int64).alias("traces"),
            *(pl.col(name).sum() for name in SUMS),
            *(
                pl.when(known.any()).then(pl.col(name).filter(known).sum()).alias(name)
                for name in ("bound_ns", "above_ns")
            ),
            pl.col("findings").sum().cast(pl.Int64),
        )
        .with_columns(
            (pl.col("held_ns") / HOUR_NS).alias("held_gpu_hours"),
            (pl.col("above_ns") / HOUR_NS).alias("above_gpu_hours"),
            _ratio("busy_ns", "held_ns").alias("busy_share"),
            _ratio("above_ns", "modelled_ns").alias("above_share"),
            _ratio("launch_bound_ns", "stepped_ns").alias("launch_bound_share"),
        )
        .sort("held_ns", "kernel_ns", "group", descending=[True, True, False], nulls_last=True)
        .collect()
    )
    sources = fleet.sources()
    aside = sources.filter(pl.col("reason").is_not_null()).sort("path")
    return FleetOverview(
        source=fleet.source,
        by=by,
        frame=rows,
        traces=fleet.traces.height,
        paths=sources.height,
        aside=tuple(aside.select("path", "reason").iter_rows()),
        losses=fleet.losses(),
    )


def _ratio(part: str, whole: str) -> pl.Expr:
    return pl.when(pl.col(whole) > 0).then(pl.col(part) / pl.col(whole))
