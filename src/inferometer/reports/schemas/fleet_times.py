"""`fleet FLEET kernels` and its like: what takes the time."""

from typing import Annotated

from inferometer.reports.schemas.fields import Document, Losses, Part, Remarks, Source, TotalNs, says
from inferometer.reports.schemas.fleet import By, Group, Traces


class FleetTime(Part):
    """Time of one thing; what names it depends on the question, the other names are null."""

    group: Group
    kernel: Annotated[str | None, says("The kernel's name, of kernels.")]
    short: Annotated[str | None, says("What the name tells, in short, of kernels.")]
    family: Annotated[str | None, says("The family of names, of kernels and families.")]
    op: Annotated[str | None, says("The op, of operators and shapes; null where none is known.")]
    input_dims: Annotated[str | None, says("Shapes as recorded, of shapes.")]
    input_dtypes: Annotated[str | None, says("Types as recorded, of shapes.")]
    scalars: Annotated[str | None, says("Other arguments as recorded, of shapes.")]
    phase: Annotated[str | None, says("The phase of the steps, of classes.")]
    class_: Annotated[str | None, says("The class of kernels, of classes.")]
    traces: Annotated[int, says("Traces that have it.")]
    launches: Annotated[int | None, says("Launches; null where a source doesn't count them.")]
    total_ns: TotalNs
    share: Annotated[float | None, says("Part of all time of the group, 0 to 1; null where there is none.")]
    gpu_hours: Annotated[float, says("That part of `total_ns` that ran on GPUs, in hours.")]


class FleetTimes(Document):
    """What takes the time of a fleet."""

    source: Source
    what: Annotated[str, says("kernels, families, operators, shapes or classes.")]
    by: By
    traces: Traces
    total_ns: TotalNs
    rows: Annotated[list[FleetTime], says("By group, the most time first.")]
    remarks: Remarks
    losses: Losses


DOCUMENT = FleetTimes
