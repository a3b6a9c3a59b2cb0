"""Each op with each set of arguments: time, calls and rates."""

from collections.abc import Iterator
from typing import Final

import polars as pl

from inferometer.analyses.roofline.op_arguments import OpArguments
from inferometer.analyses.roofline.shapes import shapes_of
from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.layout import Field, Section, say_rest
from inferometer.reports.views.view import View

_FIELDS: Final = (
    Field("number", "#", "count"),
    Field("share", "Time", "share", spare=2),
    Field("total_ns", "Total Time", "ns"),
    Field("calls", "Calls", "count"),
    Field("launches", "Launches", "count", spare=4),
    Field("mean_of_call_ns", "Avg of Call", "ns", spare=3),
    Field("tflops_per_s", "TFLOP/s", "ratio", spare=1),
    Field("tb_per_s", "TB/s", "ratio", spare=1),
    Field("op", "Op", "name"),
    Field("shapes", "Shapes", "name"),
    Field("input_strides", "Strides", "name", spare=5),
)
_EXACT: Final = (
    Field("number", "number", "count"),
    *(Field(name, name, "text") for name in ("op", "input_dims", "input_dtypes", "input_strides", "scalars")),
    *(Field(name, name, "count") for name in ("calls", "cut_calls", "launches", "total_ns")),
    *(Field(name, name, "count") for name in ("flops", "read_bytes", "write_bytes")),
    *(Field(name, name, "number") for name in ("share", "mean_of_call_ns", "flops_per_s", "bytes_per_s")),
    Field("reason", "reason", "text"),
)


def _sections(found: OpArguments) -> Iterator[Section]:
    shown = found.shown
    rows = shown.with_columns(
        pl.col("op").fill_null("(no op)"),
        shapes_of(shown),
        (pl.col("flops_per_s") / 1e12).alias("tflops_per_s"),
        (pl.col("bytes_per_s") / 1e12).alias("tb_per_s"),
    )
    yield Section("Ops by their arguments", _FIELDS, rows)


def _remarks(found: OpArguments) -> Iterator[str]:
    yield from say_rest(found.shown.height, found.frame.height)
    if found.frame["flops"].null_count() < found.frame.height:
        yield "FLOPs and bytes are modelled from the arguments; times are measured."


def _table(found: OpArguments) -> Section:
    return Section("Ops by their arguments", _EXACT, found.shown)


VIEW = View(schema=Schema("op_arguments", 1), sections=_sections, remarks=_remarks, remarks_in_json=True, table=_table)
