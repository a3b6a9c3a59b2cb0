"""Which kernels, families, operators or shapes take the time of all traces, or of each group of them.

Kernels and families are of the tables that `inferometer kernels` prints, so their sums are the sums of those of the
single traces. Operators and shapes are of `inferometer roofline`, whose time has copies and memory sets, too. Phases
are of steps alone: what runs outside of steps, or in steps of an unknown phase, is a row without one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal

import polars as pl

from inferometer.analyses.result import Result
from inferometer.analyses.rows import compile_match, matching
from inferometer.fleet.opening import Fleet
from inferometer.fleet.tables import TRACE
from inferometer.trace.losses import Losses

What = Literal["kernels", "families", "operators", "shapes", "classes"]
HOUR_NS: Final = 3.6e12

_KEYS: Final[Mapping[What, tuple[str, tuple[str, ...]]]] = {  # the table, and what makes a row
    "kernels": ("kernels", ("kernel",)),
    "families": ("kernels", ("family",)),
    "operators": ("ops", ("op",)),
    "shapes": ("ops", ("op", "input_dims", "input_dtypes", "scalars")),
    "classes": ("classes", ("phase", "class")),
}
_COUNTS: Final = {"kernels": "count", "ops": "launches"}
COLUMNS: Final = ("kernel", "short", "family", "op", "input_dims", "input_dtypes", "scalars", "phase", "class")
"""What may name a row; those that a question doesn't ask for are null."""


@dataclass(frozen=True)
class FleetTimes(Result):
    """`frame`: a row for each thing, and each value of `by`, the most time first.

    `group` is that value, null where traces don't say. `traces` have it, `launches` are its launches (null where a
    source doesn't count them), `total_ns` their time, `share` that of all time of the group, `gpu_hours` what of the
    time ran on GPUs, in hours. `total_ns` is of all traces; `rows` counts those before `top` and `match` picked some.
    """

    view: ClassVar[str] = "fleet.times"
    source: str
    what: What
    by: str | None
    frame: pl.DataFrame
    traces: int
    total_ns: int
    rows: int
    losses: Losses

    def to_polars(self) -> pl.DataFrame:
        """The rows shown."""
        return self.frame

    def as_json(self) -> dict[str, Any]:
        """All of it."""
        return {
            "source": self.source,
            "what": self.what,
            "by": self.by,
            "traces": self.traces,
            "total_ns": self.total_ns,
            "rows": self.frame.to_dicts(),
            "losses": self.losses.as_dict(),
        }


def fleet_times(
    fleet: Fleet, what: What, *, by: str | None = None, top: int | None = None, match: str | None = None
) -> FleetTimes:
    """Time of all things of a kind.

    Args:
        fleet: The traces.
        what: The things.
        by: Group traces by this column of `opening.GROUPS`.
        top: Show so many rows, of each group.
        match: Show rows whose name this regular expression finds.

    Raises:
        InputError: `match` is no regular expression.
    """
    table, keys = _KEYS[what]
    pattern = compile_match(match)
    group = pl.col(by) if by else pl.lit(None, dtype=pl.String)
    groups = fleet.traces.select(TRACE, group.alias("group"), _is_of_gpus().alias("on_gpu"))
    counted = pl.col(_COUNTS[table]) if table in _COUNTS else pl.lit(None, dtype=pl.Int64)
    rows = (
        fleet.table(table)
        .with_columns(counted.alias("n"))
        .join(groups.lazy(), on=TRACE)
        .group_by("group", *keys)
        .agg(
            pl.col(TRACE).n_unique().cast(pl.Int64).alias("traces"),
            pl.when(pl.col("n").null_count() == 0).then(pl.col("n").sum()).alias("launches"),
            pl.col("total_ns").sum(),
            pl.col("total_ns").filter("on_gpu").sum().alias("gpu_ns"),
            *([pl.col("short", "family").first()] if what == "kernels" else []),
        )
        .collect()
    )
    total = pl.col("total_ns").sum().over("group")
    missing = [pl.lit(None, dtype=pl.String).alias(name) for name in COLUMNS if name not in rows.columns]
    shared = rows.with_columns(
        pl.when(total > 0).then(pl.col("total_ns") / total).alias("share"),
        (pl.col("gpu_ns") / HOUR_NS).alias("gpu_hours"),
        total.alias("group_ns"),
        *missing,
    ).sort(
        "group_ns", "group", "total_ns", *keys, descending=[True, False, True, *[False] * len(keys)], nulls_last=True
    )
    found = matching(shared, keys[-1] if what == "classes" else keys[0], pattern)
    shown = found if top is None else found.group_by("group", maintain_order=True).head(top)
    return FleetTimes(
        source=fleet.source,
        what=what,
        by=by,
        frame=shown.select("group", *COLUMNS, "traces", "launches", "total_ns", "share", "gpu_hours"),
        traces=fleet.traces.height,
        total_ns=int(rows["total_ns"].sum()),
        rows=shared.height,
        losses=fleet.losses(),
    )


def _is_of_gpus() -> pl.Expr:
    """Whether a trace's kernels ran on GPUs: not where all launches are a CPU's."""
    return (pl.col("basis") == "totals") | (pl.col("gpus") > 0)
