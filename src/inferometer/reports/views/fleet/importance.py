"""Weights of operators with their shapes."""

from collections.abc import Iterator, Sequence
from typing import Final

import polars as pl

from inferometer.analyses.roofline.shapes import shapes_of
from inferometer.fleet.questions.importance import FleetImportance
from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.layout import Field, Section, say_rest
from inferometer.reports.views.view import View
from inferometer.units import format_counted

_TIME: Final = (
    Field("time_weight", "By time", "share"),
    Field("time_low", "from", "share", spare=2),
    Field("time_high", "to", "share", spare=2),
)
_HOURS: Final = (
    Field("gpu_hours_weight", "By GPU-hours", "share"),
    Field("gpu_hours_low", "from", "share", spare=2),
    Field("gpu_hours_high", "to", "share", spare=2),
)
_REST: Final = (
    Field("total_ns", "Total Time", "ns", spare=3),
    Field("traces", "Traces", "count", spare=4),
    Field("operator", "Catalogue", "text", spare=1),
    Field("op", "Op", "name"),
    Field("shapes", "Shapes", "name"),
)
_EXACT: Final = (
    *(Field(name, name, "text") for name in ("op", "kernel", "family", "input_dims", "input_dtypes", "scalars")),
    *(Field(name, name, "count") for name in ("traces", "clusters", "calls", "total_ns")),
    *(Field(name, name, "number") for name in ("time_weight", "time_low", "time_high", "gpu_hours")),
    *(Field(name, name, "number") for name in ("gpu_hours_weight", "gpu_hours_low", "gpu_hours_high", "bound_ns")),
    *(Field(name, name, "text") for name in ("operator", "operator_args")),
)


def _facts(found: FleetImportance) -> Sequence[tuple[str, str]]:
    clusters = "each its own cluster" if found.cluster is None else f"{found.clusters:,} clusters by {found.cluster}"
    return [("Fleet", f"{found.source}: {format_counted(found.traces, 'trace')} with launches, {clusters}")]


def _sections(found: FleetImportance) -> Iterator[Section]:
    no_op = pl.concat_str(pl.lit("(no op) "), pl.col("kernel").fill_null("of several kernels"))
    rows = found.frame.with_columns(pl.col("op").fill_null(no_op), shapes_of(found.frame))
    first, second = (_TIME, _HOURS) if found.weighing == "time" else (_HOURS, _TIME)
    yield Section(
        "Operators by importance", [*first, *(Field(f.column, f.title, f.kind, 3) for f in second), *_REST], rows
    )


def _remarks(found: FleetImportance) -> Iterator[str]:
    yield from say_rest(found.frame.height, found.rows)
    yield "Weights of all rows add up to 100 %: each launch is in one row."
    if found.clusters > 1:
        yield "Intervals are of 95 %, by drawing clusters anew."


def _table(found: FleetImportance) -> Section:
    return Section("Operators by importance", _EXACT, found.frame)


VIEW = View(
    schema=Schema("fleet_importance", 1),
    facts=_facts,
    sections=_sections,
    remarks=_remarks,
    remarks_in_json=True,
    table=_table,
)
