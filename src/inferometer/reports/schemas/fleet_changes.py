"""`fleet FLEET changes`: what changed over versions."""

from typing import Annotated

from inferometer.reports.schemas.fields import Document, Losses, Part, Remarks, Source, says
from inferometer.reports.schemas.fleet_outliers import Kind


class FleetChange(Part):
    """A change of the median step between two versions."""

    model: Kind
    gpu: Kind
    engine: Kind
    deployment: Kind
    phase: Kind
    before: Annotated[str, says("The last version before the change.")]
    after: Annotated[str, says("The first one after it.")]
    traces_before: Annotated[int, says("Traces of the part before.")]
    traces_after: Annotated[int, says("Traces of the part after.")]
    before_ns: Annotated[float, says("Their median step, ns.")]
    after_ns: Annotated[float, says("Their median step, ns.")]
    ratio: Annotated[float, says("After over before: above 1, slower since.")]
    low: Annotated[float | None, says("Lower end of its interval of 95 %.")]
    high: Annotated[float | None, says("Upper end.")]
    p_value: Annotated[float, says("Of the series' best place, among permutations of its traces.")]


class FleetChanges(Document):
    """Changes over an engine's versions."""

    source: Source
    series: Annotated[int, says("Series of like traces that were judged.")]
    short: Annotated[int, says("Series with too few traces.")]
    rows: Annotated[list[FleetChange], says("The largest change first.")]
    remarks: Remarks
    losses: Losses


DOCUMENT = FleetChanges
