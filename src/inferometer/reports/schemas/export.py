"""`export`: the files that were written."""

from typing import Annotated

from inferometer.reports.schemas.fields import Document, Losses, Part, says


class ExportedFile(Part):
    """One file."""

    path: Annotated[str, says("Where it is.")]
    rows: Annotated[dict[str, int], says("Its rows, by table.")]
    bytes: Annotated[int, says("Its size.")]


class Export(Document):
    """The files that were written."""

    to: Annotated[str, says("`perfetto`, `chrome`, `parquet` or `csv`.")]
    files: list[ExportedFile]
    left_out: Annotated[dict[str, int], says("Rows that the form has no place for, by table.")]
    redacted: Annotated[dict[str, int] | None, says("With `--redact`: different texts that were blanked, by kind.")]
    losses: Losses


DOCUMENT = Export
