"""`ab --read`: whether a printed table of time by call path can be right."""

from typing import Annotated, Any

from inferometer.reports.schemas.fields import Document, Part, Remarks, Source, says


class FoundWrong(Part):
    """One thing that is wrong."""

    kind: Annotated[str, says("What.")]
    path: Annotated[str | None, says("Where; null where it is of no single path.")]
    words: Annotated[str, says("In words, which may change.")]
    numbers: Annotated[dict[str, Any], says("The evidence, times in ns. Nothing is promised of its keys.")]


class CorrectedRow(Part):
    """A path; times of one call, by arm, ns."""

    path: Annotated[str, says("The whole path.")]
    name: Annotated[str, says("Its last part.")]
    depth: Annotated[int, says("0 for the outermost.")]
    arms: Annotated[dict[str, int | None], says("As corrected, ns.")]
    printed: Annotated[dict[str, int | None], says("As printed, ns.")]
    difference_ns: Annotated[dict[str, int | None], says("By other arm: the first one less that, ns.")]
    difference_share: Annotated[dict[str, float | None], says("That of the first arm's time.")]


class PathTable(Document):
    """The table with what is wrong with it."""

    source: Source
    arms: Annotated[list[str], says("Its runs.")]
    found: Annotated[list[FoundWrong], says("The gravest first; empty where nothing is wrong.")]
    contradicting_rows: Annotated[int, says("Rows that contradict themselves or each other.")]
    is_corrected: Annotated[bool, says("Whether corrected times differ from what is printed.")]
    corrected: list[CorrectedRow]
    remarks: Remarks
    cant_tell: Annotated[list[str], says("What such a table can't tell. These words may change.")]


DOCUMENT = PathTable
