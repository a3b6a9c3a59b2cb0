"""`sql`: the rows of a question about a trace's tables."""

from typing import Annotated, Any

from inferometer.reports.schemas.fields import Document, Losses, Part, Source, says


class QueryColumn(Part):
    """A column of the answer."""

    name: Annotated[str, says("Its name: of the table, or as the question has it.")]
    type: Annotated[str, says("Its type, as Polars names it.")]


class Query(Document):
    """The rows of the answer."""

    source: Source
    query: Annotated[str, says("The question.")]
    columns: list[QueryColumn]
    rows: Annotated[
        list[dict[str, Any]],
        says("By the columns' names: numbers, text, truth values and lists of these; what else there is as text."),
    ]
    more: Annotated[bool, says("Whether there are further rows, which `--top` left out.")]
    losses: Losses


DOCUMENT = Query
