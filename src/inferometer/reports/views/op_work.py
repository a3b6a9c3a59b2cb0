"""What ops must do by their arguments: calls, FLOPs, bytes and the least time."""

from collections.abc import Iterator
from typing import Final

import polars as pl

from inferometer.analyses.roofline.op_work import OpWork
from inferometer.analyses.roofline.shapes import shapes_of
from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.layout import Field, Section, say_rest
from inferometer.reports.views.view import View
from inferometer.units import format_bytes, format_count, format_duration

_FIELDS: Final = (
    Field("calls", "Calls", "count"),
    Field("counted", "Counted", "count", spare=2),
    Field("total_bound_ns", "At Least", "ns"),
    Field("gflop", "GFLOP", "ratio"),
    Field("total_bytes", "Bytes", "bytes"),
    Field("op", "Op", "name"),
    Field("shapes", "Shapes", "name"),
    Field("input_strides", "Strides", "name", spare=4),
    Field("reason", "Why Unknown", "name", spare=3),
)
_EXACT: Final = (
    *(Field(name, name, "text") for name in ("op", "family", "input_dims", "input_dtypes", "input_strides", "scalars")),
    *(Field(name, name, "count") for name in ("calls", "counted", "flops", "read_bytes", "write_bytes")),
    *(Field(name, name, "count") for name in ("total_flops", "total_bytes")),
    *(Field(name, name, "number") for name in ("bound_ns", "total_bound_ns")),
    *(Field(name, name, "text") for name in ("binding", "reason")),
)
_TITLE: Final = "Ops by what they were called with"


def _sections(found: OpWork) -> Iterator[Section]:
    fields = [field for field in _FIELDS if found.device or field.column != "total_bound_ns"]
    rows = found.shown.with_columns(shapes_of(found.shown), (pl.col("total_flops") / 1e9).alias("gflop"))
    yield Section(_TITLE, fields, rows)


def _remarks(found: OpWork) -> Iterator[str]:
    yield from say_rest(found.shown.height, found.frame.height)
    yield (
        f"Of all {format_count(found.calls)} calls, {format_count(found.counted)} count: their work is known, and that "
        f"of none around them. {format_count(found.inside)} are inside those, {format_count(found.without_data)} move "
        f"no data (views, allocations), and {format_count(found.unknown)} are unknown."
    )
    least = "" if found.bound_ns is None else f", {format_duration(found.bound_ns)} at least on {found.device}"
    yield (
        f"What counts must do {found.flops / 1e9:,.3f} GFLOP and move {format_bytes(found.bytes)}{least}. This is "
        "modelled from the arguments."
    )
    if not found.has_times:
        yield "An execution trace has no times: a profile of the same run has them (--execution-trace)."
    elif found.device is None:
        yield "The least time needs a device: --hardware NAME."


def _table(found: OpWork) -> Section:
    return Section(_TITLE, _EXACT, found.shown)


VIEW = View(schema=Schema("op_work", 1), sections=_sections, remarks=_remarks, remarks_in_json=True, table=_table)
