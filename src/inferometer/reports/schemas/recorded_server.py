"""`record --server`: what was recorded of a running server."""

from typing import Annotated

from inferometer.reports.schemas.fields import Document, says


class RecordedServer(Document):
    """What was recorded of a running server."""

    store: Annotated[str, says("Where it is.")]
    engine: Annotated[str, says("`sglang` or `vllm`.")]
    version: Annotated[str | None, says("Its version; null where it doesn't tell.")]
    model: Annotated[str | None, says("Its model; null where it doesn't tell.")]
    began_ns: Annotated[int, says("When its profiler ran, ns since 1970.")]
    ended_ns: Annotated[int, says("When it was asked to stop, or had done its steps, ns since 1970.")]
    files: Annotated[list[tuple[int, str]], says("Rank and name of each trace that was read.")]
    kept: Annotated[str | None, says("Folder with traces that were not joined, or that the user named.")]
    missing: Annotated[list[str], says("What couldn't be recorded. Their words may change.")]


DOCUMENT = RecordedServer
