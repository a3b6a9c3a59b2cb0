"""Shapes of a trace as a file of workloads, which `read_workloads` reads: calls that operators of the catalogue are.

Each line has an operator with its arguments, and says how often the trace calls it. Inputs aren't in it: `bench` draws
them as the operator does.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import polars as pl

from inferometer.analyses.roofline.shapes import say_op
from inferometer.analyses.roofline.table import Roofline
from inferometer.bench.exchange.axes import bind
from inferometer.bench.exchange.definitions import define
from inferometer.bench.exchange.schema import Drawn, Trace, Workload
from inferometer.bench.exchange.traces import uuid_of
from inferometer.errors import InputError
from inferometer.new_files import begins_with
from inferometer.operators import require_operator
from inferometer.units import format_counted, format_duration

SHAPE_FILE = begins_with("file of workloads", b'{"definition":')


@dataclass(frozen=True)
class TracedShape:
    """A call of an operator, and what it is called: the op with its shapes, calls and time in the trace.

    `weight` is its part of all time in a fleet of traces; None of one trace.
    """

    operator: str
    args: dict[str, Any]
    label: str
    weight: float | None = None


def traced_shapes(found: Roofline) -> list[TracedShape]:
    """Each operator with each set of arguments once, the most time first.

    Raises:
        InputError: The catalogue has no operator for any op of the trace.
    """
    rows = found.frame.filter(pl.col("operator").is_not_null()).sort("total_ns", descending=True)
    merged = (
        rows.group_by("operator", "operator_args", maintain_order=True)
        .agg(pl.col("op", "input_dims", "input_dtypes").first(), pl.col("calls", "total_ns").sum())
        .sort("total_ns", descending=True, maintain_order=True)
    )
    if not merged.height:
        raise InputError(
            f"{found.source}: no op is an operator of the catalogue with the same types",
            hint="`inferometer operators` lists them; `inferometer replay` runs any op again.",
        )
    return [
        TracedShape(row["operator"], msgspec.json.decode(row["operator_args"]), _label(row))
        for row in merged.iter_rows(named=True)
    ]


def _label(row: dict[str, Any]) -> str:
    return f"{say_op(row)}: {format_counted(row['calls'], 'call')}, {format_duration(row['total_ns'])}"


def without_operator(found: Roofline) -> dict[str, int]:
    """Time of ops that no operator of the catalogue is, the longest first."""
    rows = found.frame.filter(pl.col("op").is_not_null(), pl.col("operator").is_null())
    summed = rows.group_by("op").agg(pl.col("total_ns").sum()).sort("total_ns", "op", descending=[True, False])
    return dict(summed.iter_rows())


def encode_shapes(shapes: Sequence[TracedShape]) -> bytes:
    """A line for each."""
    return b"".join(msgspec.json.encode(_line(shape)) + b"\n" for shape in shapes)


def _line(shape: TracedShape) -> Trace:
    operator = require_operator(shape.operator)
    bound = bind(operator, shape.args)
    workload = Workload(
        axes={axis: size for axis, size in bound.sizes.items() if axis in bound.var and size is not None},
        inputs={},
        uuid=uuid_of(shape.operator, shape.args),
        inferometer=Drawn(operator=shape.operator, args=shape.args, shape=shape.label, weight=shape.weight),
    )
    return Trace(definition=define(operator, shape.args).name, workload=workload)
