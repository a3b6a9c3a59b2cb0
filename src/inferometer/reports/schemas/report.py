"""`report`: the page that was written."""

from typing import Annotated

from inferometer.reports.schemas.fields import Part, SchemaMark, says


class Page(Part):
    """A page that was written."""

    path: Annotated[str, says("Where it is.")]
    to: Annotated[str, says("`html` or `markdown`.")]
    bytes: Annotated[int, says("Its size.")]
    left_out: Annotated[list[str], says("Charts that the page had no room for.")]


class Report(Page):
    """The page that was written."""

    schema: SchemaMark
    sections: Annotated[list[str], says("Sections that it has.")]
    lacking: Annotated[dict[str, str], says("Sections that it lacks, and what for. These words may change.")]


DOCUMENT = Report
