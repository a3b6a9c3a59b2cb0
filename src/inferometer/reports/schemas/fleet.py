"""`fleet FLEET`: what a fleet is."""

from typing import Annotated

from msgspec import UNSET, UnsetType

from inferometer.reports.schemas.fields import Document, Losses, Part, Remarks, Source, says
from inferometer.reports.schemas.mine import SetAside
from inferometer.reports.schemas.report import Page

Group = Annotated[str | None, says("The value of `by`; null where traces don't say, or all are one group.")]
By = Annotated[str | None, says("What traces are grouped by.")]
Traces = Annotated[int, says("Traces that were asked about.")]


class FleetGroup(Part):
    """Sums over the traces of a group."""

    group: Group
    traces: Annotated[int, says("Traces.")]
    held_ns: Annotated[int, says("Time for which they held their GPUs: first launch to last end of each, ns.")]
    busy_ns: Annotated[int, says("Time in which these ran something, ns.")]
    kernel_ns: Annotated[int, says("Time of all kernels, as `kernels` sums it, ns.")]
    op_ns: Annotated[int, says("Time of all rows of `roofline`, ns.")]
    modelled_ns: Annotated[int, says("That part of it which has a bound on a known device, ns.")]
    stepped_ns: Annotated[int, says("Windows of the steps whose launch-bound time is known, ns.")]
    launch_bound_ns: Annotated[int, says("Launch-bound time of these, ns.")]
    bound_ns: Annotated[float | None, says("The bounds, ns; null where no device is known.")]
    above_ns: Annotated[float | None, says("Time above the bounds, ns; null where no device is known.")]
    findings: Annotated[int, says("Findings of severity high or medium.")]
    held_gpu_hours: Annotated[float, says("`held_ns` in hours.")]
    above_gpu_hours: Annotated[float | None, says("`above_ns` in hours.")]
    busy_share: Annotated[float | None, says("Part of `held_ns`, 0 to 1.")]
    above_share: Annotated[float | None, says("`above_ns` as a part of `modelled_ns`, 0 to 1.")]
    launch_bound_share: Annotated[float | None, says("Part of `stepped_ns`, 0 to 1.")]


class Fleet(Document):
    """What a fleet is."""

    source: Source
    by: By
    traces: Traces
    paths: Annotated[int, says("Paths in the fleet.")]
    rows: Annotated[list[FleetGroup], says("Those that held GPUs longest first.")]
    aside: Annotated[list[SetAside], says("Paths that were set aside.")]
    remarks: Remarks
    losses: Losses
    page: Annotated[Page | UnsetType, says("With `-o`: the page that was written.")] = UNSET


DOCUMENT = Fleet
