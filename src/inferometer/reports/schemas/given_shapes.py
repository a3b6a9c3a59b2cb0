"""`operators --shapes FILE`: shapes of a file, with their bounds on a device."""

from typing import Annotated

from inferometer.reports.schemas.fields import Document, Part, Remarks, Source, says


class GivenShapeBound(Part):
    """A call of an operator."""

    operator: Annotated[str, says("The catalogue's operator.")]
    shape: Annotated[str, says("What the file calls the shape.")]
    weight: Annotated[float | None, says("Part of a fleet's time that it stands for; null where the file has none.")]
    flops: Annotated[int, says("Matrix, vector and special operations of a call.")]
    bytes: Annotated[int, says("Bytes that a call must move.")]
    bound_ns: Annotated[float | None, says("The greatest of the bounds, ns; null where the device's data tell none.")]
    binding: Annotated[str, says("Which bound that is.")]
    below_launch: Annotated[bool | None, says("Whether a launch takes longer; null where that isn't known.")]


class GivenShapes(Document):
    """Shapes of a file on one device."""

    source: Source
    device: Annotated[str, says("The device.")]
    rows: Annotated[list[GivenShapeBound], says("In the order of the file, by operator.")]
    remarks: Remarks


DOCUMENT = GivenShapes
