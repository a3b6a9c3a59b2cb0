"""`fleet FLEET outliers`: traces out of line."""

from typing import Annotated

from inferometer.reports.schemas.fields import Document, Losses, Part, Remarks, Source, says

Kind = Annotated[str | None, says("What like traces have in common; null where they don't say.")]


class Outlier(Part):
    """A phase of a trace that is out of line."""

    path: Annotated[str, says("The trace.")]
    model: Kind
    gpu: Kind
    engine: Kind
    deployment: Kind
    phase: Kind
    version: Annotated[str | None, says("The engine's version.")]
    alike: Annotated[int, says("Traces alike, itself among them.")]
    step_ns: Annotated[float, says("Its median step, ns.")]
    usual_ns: Annotated[float, says("The median of those, ns.")]
    ratio: Annotated[float, says("The one over the other.")]
    distance: Annotated[float | None, says("In deviations, on a logarithmic scale; null where all others are equal.")]


class FleetOutliers(Document):
    """Traces that are out of line with those like them."""

    source: Source
    compared: Annotated[int, says("Phases of traces with enough others like them.")]
    alone: Annotated[int, says("Those without.")]
    unknown: Annotated[int, says("Of the compared, those of which neither a model nor shapes are known.")]
    rows: Annotated[list[Outlier], says("The furthest first.")]
    remarks: Remarks
    losses: Losses


DOCUMENT = FleetOutliers
