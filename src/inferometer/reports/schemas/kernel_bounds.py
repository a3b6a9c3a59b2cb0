"""`kernels --roofline`: time by kernel, with the bound of the ops that launched it."""

from typing import Annotated

from inferometer.reports.schemas.fields import (
    Document,
    Kernel,
    Launches,
    Losses,
    Match,
    Part,
    Remarks,
    Share,
    Source,
    TotalNs,
    says,
)
from inferometer.reports.schemas.roofline import Hardware


class KernelBound(Part):
    """A kernel. A call's bound is shared among the kernels that it launches as their times are."""

    kernel: Kernel
    short: Annotated[str, says("Its short name.")]
    launches: Launches
    total_ns: TotalNs
    modelled_ns: Annotated[int, says("Of that, time of launches whose op is modelled, ns.")]
    bound_ns: Annotated[float | None, says("Their bounds, ns.")]
    above_ns: Annotated[float | None, says("Their time above the bounds, ns.")]
    fraction: Annotated[float | None, says("Bound over the modelled time; null where none is modelled.")]
    share: Share


class KernelBounds(Document):
    """Time by kernel with bounds."""

    source: Source
    hardware: Hardware
    total_ns: TotalNs
    match: Match
    rows: Annotated[list[KernelBound], says("The most time first.")]
    remarks: Remarks
    losses: Losses


DOCUMENT = KernelBounds
