"""`watch_event`: what `watch --webhook` posts."""

from typing import Annotated

from inferometer.reports.schemas.fields import Document, Source, says
from inferometer.reports.schemas.watch import SlowTime

Date = Annotated[str | None, says("UTC, as in 2026-01-31T12:00:00.250Z; null where the source's clock isn't known.")]


class WatchEvent(Document):
    """Something that happened while a watch went on."""

    event: Annotated[str, says("`alarm`, `worse`, `recovered`, or `cause`: what was found of it.")]
    text: Annotated[str, says("A sentence for people. Its words may change.")]
    source: Source
    host: Annotated[str, says("Name of the machine that watches.")]
    number: Annotated[int, says("Of the slowdown, from 1: events of one have the same.")]
    since: Date
    noticed: Date
    recovered: Annotated[str | None, says("UTC; null where it is slow yet.")]
    slowdown: SlowTime


DOCUMENT = WatchEvent
