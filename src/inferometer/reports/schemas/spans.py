"""`spans`: device time by named range."""

from typing import Annotated

from inferometer.reports.schemas.fields import Document, Launches, Losses, Part, Remarks, Share, Source, says

SummedNs = Annotated[int, says("Sum of the durations of its launches, ns.")]
BusyNs = Annotated[int, says("Time in which any of them ran, ns: a union of intervals.")]


class Range(Part):
    """All ranges of one name and domain."""

    span: Annotated[str, says("The name.")]
    domain: Annotated[str | None, says("Who marked it, as the source has it.")]
    share: Share
    busy_ns: BusyNs
    summed_ns: SummedNs
    projected_ns: Annotated[int, says("From its first launch to the end of its last one, over all instances, ns.")]
    launches: Launches
    own_launches: Annotated[int, says("Launches of which it is the innermost range.")]
    own_summed_ns: Annotated[int, says("Sum of the durations of these, ns.")]
    instances: Annotated[int, says("How often it was open.")]
    host_total_ns: Annotated[int, says("Time on the host, all instances, ns.")]
    host_mean_ns: Annotated[float, says("Mean of an instance on the host, ns.")]


class Rest(Part):
    """Launches outside of the rows."""

    launches: Launches
    summed_ns: SummedNs
    busy_ns: BusyNs


class Spans(Document):
    """Device time by named range. Own launches of all ranges and both rests add up to all launches."""

    source: Source
    ranges: Annotated[int, says("Rows before `--top` and `--match`.")]
    launches: Launches
    summed_ns: SummedNs
    rows: list[Range]
    in_no_range: Annotated[Rest, says("Launches that no range holds.")]
    without_call: Annotated[Rest, says("Launches whose call is not in the file.")]
    spans_on_devices: Annotated[int, says("Ranges on a device's track, which are left out.")]
    marks: Annotated[int, says("Marks without duration, which are left out.")]
    remarks: Remarks
    losses: Losses


DOCUMENT = Spans
