"""Weights of operators with their shapes."""

from collections.abc import Iterator, Sequence
from typing import Final

import polars as pl

from inferometer.analyses.roofline.shapes import shapes_of
from inferometer.fleet.questions.importance import FleetImportance
from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.layout import Field, Section, say_rest
from inferometer.reports.views.view import View
from inferometer.units import format_counted, format_share

_WEIGHTS: Final = {"time": "By time", "gpu_hours": "By GPU-hours"}
_REST: Final = (
    Field("total_ns", "Total Time", "ns", spare=3),
    Field("traces", "Traces", "count", spare=4),
    Field("operator", "Catalogue", "text", spare=1),
    Field("what", "Op or kernel", "kernel", kernel_where="is_kernel"),
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
    is_kernel = pl.col("op").is_null() & pl.col("kernel").is_not_null()
    what = pl.coalesce("op", "kernel", pl.lit("(no op, several kernels)")).alias("what")
    rows = found.frame.with_columns(what, is_kernel.alias("is_kernel"), shapes_of(found.frame))
    intervals = [_interval(found.frame, weight) for weight in _WEIGHTS]
    first, second = _WEIGHTS if found.weighing == "time" else reversed(_WEIGHTS)
    fields = [*_weight(first, spare=0), *_weight(second, spare=3), *_REST]
    yield Section("Operators by importance", fields, rows.with_columns(intervals))


def _weight(weight: str, spare: int) -> Iterator[Field]:
    yield Field(f"{weight}_weight", _WEIGHTS[weight], "share", spare)
    yield Field(f"{weight}_interval", "95 %", "text", max(spare + 1, 2))


def _interval(frame: pl.DataFrame, weight: str) -> pl.Series:
    bounds = frame.select(f"{weight}_low", f"{weight}_high").iter_rows()
    texts = [None if None in (low, high) else f"{format_share(low)} to {format_share(high)}" for low, high in bounds]
    return pl.Series(f"{weight}_interval", texts, dtype=pl.String)


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
