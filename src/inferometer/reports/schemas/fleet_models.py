"""`fleet FLEET models`: models by the shapes of products."""

from typing import Annotated

from inferometer.reports.schemas.fields import Document, Losses, Part, Remarks, Source, says
from inferometer.reports.schemas.fleet import Traces


class RecognisedModel(Part):
    """Traces with the same answer."""

    models: Annotated[str | None, says("All known models that fit equally well; null where none is named.")]
    tensor_parallel: Annotated[int | None, says("Over how many devices each is split; null where models differ in it.")]
    agree: Annotated[str | None, says("What was seen of its dimensions.")]
    reason: Annotated[str | None, says("Why no model is named; null where one is.")]
    recorded: Annotated[str | None, says("Names that these traces have otherwise; null where they have none.")]
    named: Annotated[int, says("How many of them have such a name.")]
    traces: Annotated[int, says("Traces.")]
    held_gpu_hours: Annotated[float, says("Hours for which they held their GPUs.")]
    op_ns: Annotated[int, says("Time of their ops, ns.")]
    example: Annotated[str | None, says("The first of them by path.")]


class FleetModels(Document):
    """Which models the traces are of, inferred from shapes."""

    source: Source
    traces: Traces
    rows: Annotated[list[RecognisedModel], says("Those that held GPUs longest first.")]
    remarks: Remarks
    losses: Losses


DOCUMENT = FleetModels
