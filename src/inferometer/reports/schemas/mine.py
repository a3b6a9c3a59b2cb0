"""`mine`: what was made, and what was set aside."""

from typing import Annotated

from inferometer.reports.schemas.fields import Document, Part, says


class SetAside(Part):
    """A path that has no digest."""

    path: Annotated[str, says("The path, as it was given or found.")]
    reason: Annotated[str, says("Why. Its words may change.")]


class Mine(Document):
    """A fleet that was made or added to."""

    fleet: Annotated[str, says("The fleet, as it was named.")]
    traces: Annotated[int, says("Contents that have a digest.")]
    paths: Annotated[int, says("Paths in the fleet, those that were set aside among them.")]
    made: Annotated[int, says("Digests that are new.")]
    aside: Annotated[list[SetAside], says("All paths that were set aside, in this run or before.")]


DOCUMENT = Mine
