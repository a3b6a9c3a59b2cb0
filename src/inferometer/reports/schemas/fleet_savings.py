"""`fleet FLEET savings`: what quicker kernels would save."""

from typing import Annotated

from inferometer.reports.schemas.fields import Document, Kernel, Losses, Part, Remarks, Source, TotalNs, says
from inferometer.reports.schemas.fleet import Traces


class Saving(Part):
    """What one kernel would save at most."""

    kernel: Kernel
    short: Annotated[str, says("What the name tells, in short.")]
    family: Annotated[str, says("The family of its name.")]
    traces: Annotated[int, says("Traces that have it.")]
    total_ns: TotalNs
    saved_ns: Annotated[float, says("What it would take less, ns.")]
    saved_gpu_hours: Annotated[float, says("The same in hours.")]
    share: Annotated[float | None, says("Part of the time for which GPUs were held, 0 to 1.")]
    low: Annotated[float | None, says("Lower end of its interval of 95 %; null with a single cluster.")]
    high: Annotated[float | None, says("Upper end of the same.")]


class FleetSavings(Document):
    """What each kernel would save if it were faster."""

    source: Source
    faster: Annotated[float, says("By how much: 0.2 is 20 %.")]
    cluster: Annotated[str | None, says("What makes clusters; null: each trace is one.")]
    traces: Traces
    clusters: Annotated[int, says("Clusters of traces.")]
    held_gpu_hours: Annotated[float, says("Hours for which the traces held their GPUs.")]
    rows: Annotated[list[Saving], says("The most to save first.")]
    remarks: Remarks
    losses: Losses


DOCUMENT = FleetSavings
