"""Device memory of an allocator's snapshot: the peak of each device and what held it."""

from typing import Final

import polars as pl

from inferometer.analyses.memory.use import memory_use
from inferometer.reports.page.blocks import Block, Grid, Part, Words
from inferometer.reports.page.look import RunData
from inferometer.reports.page.section import RunSection
from inferometer.reports.views.view import remarks_of, sections_of

_TOP: Final = 50
_TABLES: Final = ("memory_blocks", "memory_events")


def build(run: RunData) -> Block | None:
    """What `inferometer memory` shows; no place on the page of another run."""
    if not any(run.trace.tables[table].select(pl.len()).collect().item() for table in _TABLES):
        return None
    found = memory_use(run.trace, top=_TOP)
    parts: list[Part] = [Words(text, "note") for text in remarks_of(found)]
    return Block("memory", "Device memory", [*parts, *map(Grid, sections_of(found))])


SECTION = RunSection("memory", build, after="losses")
