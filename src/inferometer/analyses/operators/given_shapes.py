"""Shapes that somebody gives, such as those that stand for a fleet of traces, with their bounds on a device."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import polars as pl

from inferometer.analyses.result import Result
from inferometer.hardware.device import Device
from inferometer.operators.bounds import bounds_of
from inferometer.operators.operator import Operator
from inferometer.trace.losses import Losses
from inferometer.trace.tables import ALL_TABLES

_SCHEMA: Final = {
    **dict.fromkeys(("operator", "shape"), pl.String),
    "weight": pl.Float64,
    **dict.fromkeys(("flops", "bytes"), pl.Int64),
    "bound_ns": pl.Float64,
    "binding": pl.String,
    "below_launch": pl.Boolean,
}


@dataclass(frozen=True)
class GivenShape:
    """One call of an operator, what it is called, and its weight, where it has one."""

    operator: Operator
    args: Mapping[str, Any]
    label: str
    weight: float | None = None


@dataclass(frozen=True)
class GivenShapes(Result):
    """`frame`: a row for each shape, as given: `flops` and `bytes` of a call, `bound_ns` and `binding` on the device.

    `below_launch` says that a launch takes longer than the bound, null where that isn't known of the device.
    """

    view: ClassVar[str] = "given_shapes"
    source: str
    device: Device
    frame: pl.DataFrame
    losses: Losses

    def to_polars(self) -> pl.DataFrame:
        """One row for each shape."""
        return self.frame

    def as_json(self) -> dict[str, Any]:
        return {"source": self.source, "device": self.device.name, "rows": self.frame.to_dicts()}


def bound_given(source: str, shapes: Sequence[GivenShape], device: Device) -> GivenShapes:
    """Bounds of the shapes of the file `source`."""
    frame = pl.DataFrame([_row(shape, device) for shape in shapes], schema=_SCHEMA, orient="row")
    return GivenShapes(source, device, frame, Losses(ALL_TABLES))


def _row(shape: GivenShape, device: Device) -> dict[str, Any]:
    work = shape.operator.work(**shape.args)
    bounds = bounds_of(work, device)
    return {
        "operator": shape.operator.name,
        "shape": shape.label,
        "weight": shape.weight,
        "flops": work.matrix_flops + work.vector_flops + work.special_ops,
        "bytes": work.moved_bytes,
        "bound_ns": bounds.bound_ns,
        "binding": bounds.binding,
        "below_launch": None if bounds.launch is None else bounds.is_below_launch,
    }
