"""`fleet FLEET importance`: weights of operators with their shapes."""

from typing import Annotated

from inferometer.reports.schemas.fields import Document, Losses, Part, Remarks, Source, TotalNs, says
from inferometer.reports.schemas.fleet import Traces

Weight = Annotated[float | None, says("Of all rows they add up to 1; null where no time is known.")]
Low = Annotated[float | None, says("Lower end of its interval of 95 %; null with a single cluster.")]
High = Annotated[float | None, says("Upper end of the same.")]


class WeighedOp(Part):
    """An op with its arguments, or the launches of a kernel whose op isn't known."""

    op: Annotated[str | None, says("The op; null where it isn't known.")]
    kernel: Annotated[str | None, says("The kernel, where the op isn't known.")]
    family: Annotated[str | None, says("The op's family.")]
    input_dims: Annotated[str | None, says("Shapes, as recorded.")]
    input_dtypes: Annotated[str | None, says("Types, as recorded.")]
    scalars: Annotated[str | None, says("Other arguments, as recorded.")]
    traces: Annotated[int, says("Traces that have it.")]
    clusters: Annotated[int, says("Clusters that have it.")]
    calls: Annotated[int | None, says("Calls; null where some aren't known.")]
    total_ns: TotalNs
    time_weight: Weight
    time_low: Low
    time_high: High
    gpu_hours: Annotated[float, says("Its part of the hours for which GPUs were held.")]
    gpu_hours_weight: Weight
    gpu_hours_low: Low
    gpu_hours_high: High
    bound_ns: Annotated[float | None, says("The bound of all calls, ns; null where it isn't modelled everywhere.")]
    operator: Annotated[str | None, says("The catalogue's operator that it is.")]
    operator_args: Annotated[str | None, says("The arguments of that, as JSON.")]


class FleetImportance(Document):
    """Which operators with which shapes matter."""

    source: Source
    weighing: Annotated[str, says("What rows are ordered by: `time` or `gpu-hours`.")]
    cluster: Annotated[str | None, says("What makes clusters; null: each trace is one.")]
    traces: Traces
    clusters: Annotated[int, says("Clusters of traces.")]
    total_ns: TotalNs
    held_gpu_hours: Annotated[float, says("Hours for which the traces held their GPUs.")]
    rows: Annotated[list[WeighedOp], says("The weightiest first.")]
    remarks: Remarks
    losses: Losses


DOCUMENT = FleetImportance
