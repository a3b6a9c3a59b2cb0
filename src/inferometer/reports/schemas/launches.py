"""`launches`: device time by who launched it."""

from typing import Annotated

from inferometer.reports.schemas.fields import (
    Document,
    Kernel,
    Launches,
    Losses,
    Part,
    Remarks,
    Share,
    Source,
    TotalNs,
    says,
)


class SiteKernel(Part):
    """A kernel that was launched there."""

    kernel: Kernel
    count: Launches
    total_ns: TotalNs
    kernel_file: Annotated[str | None, says("The file of a compiled kernel.")]


class LaunchSite(Part):
    """One op, module, frame or range, with all that it launched."""

    key: Annotated[str, says("What `by` says.")]
    count: Launches
    total_ns: TotalNs
    share: Share
    mean_ns: Annotated[float, says("Mean duration of a launch, ns.")]
    kernels: Annotated[list[SiteKernel], says("The longest first.")]


class LaunchSites(Document):
    """Device time by who launched it."""

    source: Source
    by: Annotated[str, says("What keys are: `op`, `module`, `frame`, `user-frame`, `span` or `region`.")]
    layers: Annotated[str, says("`apart`, or `pooled` where all layers are one row.")]
    launches: Launches
    total_ns: TotalNs
    attributed_ns: Annotated[int, says("Of `total_ns` what has a key, ns.")]
    unattributed_ns: Annotated[int, says("And what has none, ns.")]
    by_how: Annotated[dict[str, int], says("ns by how launches were attributed, or why not; adds up to `total_ns`.")]
    rows: list[LaunchSite]
    remarks: Remarks
    losses: Losses


DOCUMENT = LaunchSites
