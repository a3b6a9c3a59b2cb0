"""Time of kernels, families, operators, shapes or classes over all traces."""

from collections.abc import Iterator, Sequence
from typing import Final

import polars as pl

from inferometer.analyses.roofline.shapes import shapes_of
from inferometer.fleet.questions.times import COLUMNS, FleetTimes
from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.fleet.titles import title_of
from inferometer.reports.views.layout import Field, Section, say_rest
from inferometer.reports.views.view import View
from inferometer.units import format_counted

_NUMBERS: Final = (
    Field("share", "Time", "share"),
    Field("total_ns", "Total Time", "ns"),
    Field("gpu_hours", "GPU-hours", "ratio", spare=3),
    Field("launches", "Launches", "count", spare=2),
    Field("traces", "Traces", "count", spare=1),
)
_NAMES: Final = {
    "kernels": (Field("kernel", "Name", "kernel"),),
    "families": (Field("family", "Family", "name"),),
    "operators": (Field("op", "Op", "name"),),
    "shapes": (Field("op", "Op", "name"), Field("shapes", "Shapes", "name")),
    "classes": (Field("phase", "Phase", "text"), Field("class", "Class", "name")),
}
_TITLES: Final = {
    "kernels": "Kernels of all traces",
    "families": "Families of kernels of all traces",
    "operators": "Operators of all traces",
    "shapes": "Operators with their shapes, of all traces",
    "classes": "Classes of kernels by phase, of all traces",
}
_EXACT: Final = (
    Field("group", "group", "text"),
    *(Field(name, name, "text") for name in COLUMNS),
    *(Field(name, name, "count") for name in ("traces", "launches", "total_ns")),
    *(Field(name, name, "number") for name in ("share", "gpu_hours")),
)


def _sections(found: FleetTimes) -> Iterator[Section]:
    rows = found.frame
    if found.what in ("operators", "shapes"):
        rows = rows.with_columns(pl.col("op").fill_null("(no op)"))
    if found.what == "shapes":
        rows = rows.with_columns(shapes_of(rows))
    fields = [*_group(found.by), *_NUMBERS, *_NAMES[found.what]]
    yield Section(_TITLES[found.what], fields, rows)


def _group(by: str | None) -> Sequence[Field]:
    return [] if by is None else [Field("group", title_of(by), "text", leads=True)]


def _facts(found: FleetTimes) -> Sequence[tuple[str, str]]:
    return [("Fleet", f"{found.source}: {format_counted(found.traces, 'trace')}")]


def _remarks(found: FleetTimes) -> Iterator[str]:
    yield from say_rest(found.frame.height, found.rows)


def _table(found: FleetTimes) -> Section:
    return Section(_TITLES[found.what], _EXACT, found.frame)


VIEW = View(
    schema=Schema("fleet_times", 1),
    facts=_facts,
    sections=_sections,
    remarks=_remarks,
    remarks_in_json=True,
    table=_table,
)
