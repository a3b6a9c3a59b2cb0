"""`record`: how the recorded program ended, and what is in the store. One line, after what the program wrote."""

from typing import Annotated

from inferometer.reports.schemas.fields import Document, says


class Record(Document):
    """How the recorded program ended, and what is in the store."""

    store: Annotated[str | None, says("Its folder; null where nothing could be kept.")]
    exit_code: Annotated[int, says("The program's.")]
    seconds: Annotated[float, says("How long it ran, s.")]
    bytes: Annotated[int, says("Size of the store.")]
    rows: Annotated[dict[str, int], says("Rows of each table.")]
    remarks: Annotated[list[str], says("Sentences for people. Their words may change.")]
    overhead: Annotated[list[str], says("What recording cost, in sentences that may change.")]


DOCUMENT = Record
