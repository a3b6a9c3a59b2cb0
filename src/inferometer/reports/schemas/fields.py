"""The types that several documents share. A description says the unit; times are whole ns where they are counted.

A field that is `UnsetType` too may be absent, one that is `None` too may be null.
"""

from typing import Annotated

from msgspec import Meta, Struct


def says(description: str) -> Meta:
    """What a field holds, and in which unit."""
    return Meta(description=description)


Source = Annotated[str, says("The file, as it was named.")]
Remarks = Annotated[list[str], says("Sentences for people, the most important first. Their words may change.")]
TotalNs = Annotated[int, says("Sum of the durations in ns: what runs at once counts several times.")]
Share = Annotated[float, says("Part of the whole that was selected, 0 to 1.")]
Rank = Annotated[int | None, says("Rank of the process in a distributed run; null where the file doesn't say.")]
DeviceName = Annotated[str | None, says("The device in the trace, such as `gpu:0`; null where the file names none.")]
Launches = Annotated[int, says("Launches: executions of device work.")]
Kernel = Annotated[str, says("The kernel's name.")]
Section = Annotated[int | None, says("Which of the source's printed tables; null where times are of launches.")]
Basis = Annotated[str, says("What rows are made from: `launches`, or `totals` that the source printed.")]


def _without_mark(name: str) -> str:
    """A key that Python keeps for itself has an underscore here: `class_`."""
    return name.removesuffix("_")


class Part(Struct, kw_only=True, forbid_unknown_fields=True, rename=_without_mark):
    """A part of a document."""


class SchemaMark(Part):
    """Which document this is."""

    name: Annotated[str, says("The document's name.")]
    version: Annotated[int, says("Rises when a key goes, is renamed, or changes its type, unit or meaning.")]


class Loss(Part):
    """What could not be read or had to be mended, counted under one name."""

    name: Annotated[str, says("The loss, as the reference of losses has it.")]
    severity: Annotated[str, says("`error`, `warning` or `info`.")]
    count: Annotated[int, says("How often.")]
    dropped: Annotated[bool, says("Whether these events have no row.")]
    category: Annotated[str | None, says("The file's own category of event; null where that isn't known.")]
    example: Annotated[str | None, says("One case.")]


class Matched(Part):
    """What picked the rows."""

    regex: Annotated[str, says("The regular expression, as it was given.")]
    names: Annotated[list[str], says("Which names of a row it was searched in: a row that has any of them is there.")]


Match = Annotated[Matched | None, says("`--match`; null where it wasn't given.")]


class Losses(Part):
    """What of the source is not in the tables that were read."""

    scope: Annotated[list[str], says("The tables that were asked for: the counts are of these.")]
    events: Annotated[dict[str, int], says("Events in the file, by its own category.")]
    entries: Annotated[list[Loss], says("Losses, the gravest first.")]


class Document(Part):
    """A whole document."""

    schema: SchemaMark


class Statistics(Part):
    """Durations of several executions of one thing."""

    share: Share
    total_ns: TotalNs
    count: Annotated[int, says("How many.")]
    mean_ns: Annotated[float, says("Mean duration, ns.")]
    median_ns: Annotated[float, says("Median duration, ns.")]
    min_ns: Annotated[int, says("Shortest duration, ns.")]
    max_ns: Annotated[int, says("Longest duration, ns.")]
    stddev_ns: Annotated[float, says("Standard deviation of the sample (n - 1), ns; 0 for a single one.")]


class PrintedStatistics(Part):
    """As `Statistics`; null is what a source of printed sums doesn't print."""

    share: Share
    total_ns: TotalNs
    count: Annotated[int | None, says("Launches.")]
    mean_ns: Annotated[float | None, says("Mean duration, ns.")]
    median_ns: Annotated[float | None, says("Median duration, ns.")]
    min_ns: Annotated[int | None, says("Shortest duration, ns.")]
    max_ns: Annotated[int | None, says("Longest duration, ns.")]
    stddev_ns: Annotated[float | None, says("Standard deviation of the sample (n - 1), ns; 0 for a single one.")]
