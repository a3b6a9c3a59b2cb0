"""The questions of a fleet as tables of the page: each as its view shows it of all traces, and as sums for filters."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import polars as pl

from inferometer.analyses.result import Result
from inferometer.fleet.opening import Fleet
from inferometer.fleet.questions.bootstrap import Clusters
from inferometer.fleet.questions.importance import KEYS, fleet_importance, op_parts
from inferometer.fleet.questions.models import fleet_models, recognised_traces
from inferometer.fleet.questions.overview import SUMS, fleet_overview
from inferometer.fleet.questions.savings import fleet_savings
from inferometer.fleet.questions.times import HOUR_NS, What, fleet_times
from inferometer.fleet.tables import TRACE
from inferometer.reports.fleet.cells import NOT_SAID, Cells
from inferometer.reports.fleet.sums import FromSums, QuestionSums, kept_things, sums_data
from inferometer.reports.views.layout import Section
from inferometer.reports.views.view import sections_of

TOP: Final = 200
"""Rows of all traces, of a question that has many."""
_KERNEL: Final = ("kernel", "short", "family")
TIMES: Final[tuple[tuple[What, tuple[str, ...]], ...]] = (
    ("kernels", _KERNEL),
    ("families", ("family",)),
    ("operators", ("op",)),
    ("shapes", ("op", "input_dims", "input_dtypes", "scalars")),
    ("classes", ("phase", "class")),
)
_CELL: Final = "cell"
_TIME_SUMS: Final = ("total_ns", "gpu_hours", "launches", "traces")
_TRACES: Final = FromSums("traces")
_OVERVIEW: Final = {
    **{name: FromSums(name) for name in ("traces", "kernel_ns", "findings")},
    "held_gpu_hours": FromSums("held_ns", per=HOUR_NS),
    "above_gpu_hours": FromSums("above_ns", per=HOUR_NS),
    "busy_share": FromSums("busy_ns", over="held_ns", own=True),
    "launch_bound_share": FromSums("launch_bound_ns", over="stepped_ns", own=True),
    "above_share": FromSums("above_ns", over="modelled_ns", own=True),
}


@dataclass(frozen=True)
class Question:
    """`result` of all traces, with what its view says; `data` is what the script adds up of it."""

    name: str
    result: Result
    data: dict[str, Any]

    @property
    def section(self) -> Section:
        """The table of all traces."""
        return sections_of(self.result)[0]


def times_question(fleet: Fleet, cells: Cells, what: What, keys: Sequence[str]) -> Question:
    """Kernels, families, operators, shapes or classes."""
    found = fleet_times(fleet, what, top=TOP)
    rows = fleet_times(_celled(fleet, cells), what, by=_CELL).frame.rename({"group": _CELL})
    rows = rows.select(_CELL, *keys, *_TIME_SUMS)
    shown = {
        "share": FromSums("total_ns", over="total_ns"),
        "gpu_hours": FromSums("gpu_hours"),
        **{name: FromSums(name) for name in ("total_ns", "launches", "traces")},
    }
    summed = QuestionSums(rows, keys, _TIME_SUMS, shown, strict=frozenset({"launches"}))
    phase = "phase" if what == "classes" else None
    return _question(what, found, summed, cells, phase=phase)


def overview_question(fleet: Fleet, cells: Cells, by: str | None) -> Question:
    """Traces by the values of a filter; by None, all of them."""
    values = ("held_ns", *(name for name in SUMS if name != "held_ns"), "above_ns", "traces", "findings")
    of_cells = fleet_overview(_celled(fleet, cells), by=_CELL).frame.drop("bound_ns")
    group = pl.lit(None, dtype=pl.String) if by is None else pl.Series("group", _of_cells(cells, by), dtype=pl.String)
    named = cells.frame.select(pl.col(_CELL).cast(pl.Int64)).with_columns(group.alias("group"))
    rows = of_cells.rename({"group": _CELL}).join(named, on=_CELL).select(_CELL, "group", *values)
    found = fleet_overview(fleet, by=by)
    if by is not None:
        found = replace(found, frame=found.frame.with_columns(pl.col("group").fill_null(NOT_SAID)))
    return _question(f"by-{by or 'none'}", found, QuestionSums(rows, ("group",), values, _OVERVIEW), cells)


def models_question(fleet: Fleet, cells: Cells) -> Question:
    """Models by shapes. Names that were recorded, and examples, are of all traces alone."""
    keys = ("models", "tensor_parallel", "agree", "reason")
    of = fleet.traces.select(TRACE, "held_ns", "op_ns").join(cells.of, on=TRACE)
    recognised = recognised_traces(fleet)
    rows = recognised.join(of, on=TRACE).with_columns(pl.lit(1, dtype=pl.Int64).alias("traces"))
    sums = rows.group_by(_CELL, *keys).agg(pl.col("held_ns", "op_ns", "traces").sum())
    shown = {"held_gpu_hours": FromSums("held_ns", per=HOUR_NS), "op_ns": FromSums("op_ns"), "traces": _TRACES}
    return _question(
        "models",
        fleet_models(fleet, recognised),
        QuestionSums(sums, keys, ("held_ns", "op_ns", "traces"), shown),
        cells,
    )


def importance_question(fleet: Fleet, cells: Cells) -> Question:
    """Weights of operators with their shapes. Intervals are of all traces alone."""
    clusters = Clusters(cells.of.rename({_CELL: "cluster"}), cells.count)
    parts = op_parts(fleet, clusters).with_columns(pl.lit(1, dtype=pl.Int64).alias("traces"))
    rows = parts.group_by(pl.col("cluster").alias(_CELL), *KEYS).agg(
        pl.col("total_ns", "held_ns", "traces").sum(), pl.col("operator").drop_nulls().first()
    )
    shown = {
        "time_weight": FromSums("total_ns", over="total_ns"),
        "gpu_hours_weight": FromSums("held_ns", over="held_ns"),
        "total_ns": FromSums("total_ns"),
        "traces": _TRACES,
    }
    summed = QuestionSums(rows, KEYS, ("total_ns", "held_ns", "traces"), shown)
    return _question("importance", fleet_importance(fleet, top=TOP), summed, cells)


def savings_question(fleet: Fleet, cells: Cells) -> Question:
    """What a faster kernel saves. Intervals are of all traces alone."""
    found = fleet_savings(fleet, top=TOP)
    holding = replace(fleet, traces=fleet.traces.filter(pl.col("held_ns") > 0))
    rows = fleet_times(_celled(holding, cells), "kernels", by=_CELL).frame.rename({"group": _CELL})
    held = dict(holding.traces.join(cells.of, on=TRACE).group_by(_CELL).agg(pl.col("held_ns").sum()).iter_rows())
    saved = 1 - 1 / (1 + found.faster)
    shown = {
        "share": FromSums("total_ns", over="held_ns", factor=saved),
        "saved_gpu_hours": FromSums("total_ns", factor=saved, per=HOUR_NS),
        "total_ns": FromSums("total_ns"),
        "traces": _TRACES,
    }
    whole = {"held_ns": [held.get(cell, 0) for cell in range(cells.count)]}
    summed = QuestionSums(
        rows.select(_CELL, *_KERNEL, "total_ns", "traces"), _KERNEL, ("total_ns", "traces"), shown, whole=whole
    )
    return _question("savings", found, summed, cells)


def _question(name: str, found: Any, summed: QuestionSums, cells: Cells, *, phase: str | None = None) -> Question:
    kept, total = kept_things(summed)
    things = _with_what_goes_along(kept, summed)
    missing = {name: dtype for name, dtype in found.frame.schema.items() if name not in things.columns}
    empty = [pl.lit(None, dtype=dtype).alias(name) for name, dtype in missing.items()]
    frame = things.with_columns(empty).select(found.frame.columns)
    section = sections_of(replace(found, frame=frame))[0]
    return Question(name, found, sums_data(summed, kept, section, cells, total=total, phase=phase))


def _with_what_goes_along(kept: pl.DataFrame, summed: QuestionSums) -> pl.DataFrame:
    """Things with what each has and isn't added up: the catalogue's operator."""
    also = [name for name in summed.rows.columns if name not in (_CELL, *summed.keys, *summed.values)]
    known = summed.rows.group_by(summed.keys).agg(pl.col(also).drop_nulls().first())
    return kept.join(known, on=list(summed.keys), how="left", nulls_equal=True, maintain_order="left") if also else kept


def _of_cells(cells: Cells, by: str) -> list[str]:
    return [cells.values[by][place] or NOT_SAID for place in cells.frame[by]]


def _celled(fleet: Fleet, cells: Cells) -> Fleet:
    """With the cell as something to group by."""
    return replace(fleet, traces=fleet.traces.join(cells.of, on=TRACE, maintain_order="left"))


def questions(fleet: Fleet, cells: Cells) -> list[Callable[[], Question]]:
    """All that are added up, each as what makes it."""
    return [
        *(lambda by=by: overview_question(fleet, cells, by) for by in (None, *cells.values)),
        lambda: models_question(fleet, cells),
        *(lambda what=what, keys=keys: times_question(fleet, cells, what, keys) for what, keys in TIMES),
        lambda: importance_question(fleet, cells),
        lambda: savings_question(fleet, cells),
    ]
