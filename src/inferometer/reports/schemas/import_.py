"""`import`: the store that was made."""

from typing import Annotated

from inferometer.reports.schemas.fields import Document, Losses, says


class Import(Document):
    """The store that was made."""

    store: Annotated[str, says("Its folder.")]
    rows: Annotated[dict[str, int], says("Rows of each table.")]
    losses: Losses


DOCUMENT = Import
