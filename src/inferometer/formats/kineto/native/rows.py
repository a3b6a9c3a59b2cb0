"""A section that the library decoded, added to the tables as if Python had read it: the same rows, order and losses.

Events of categories that the library doesn't know come as text, and are decoded here.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec
import polars as pl

from inferometer.formats.json_text.records import BAD_JSON
from inferometer.formats.kineto.arguments import CollectiveArgs
from inferometer.formats.kineto.dispatch import Sorter
from inferometer.formats.kineto.events import Event, decode_events
from inferometer.formats.kineto.native.columns import TABLE_OF, Decoded, ForeignText, Group, TableNumber
from inferometer.trace.builder import TraceBuilder
from inferometer.trace.private import hold_secrets

_SHARED: Final = ("kernel", "device", "stream", "start_ns")  # by a collective with its launch
_decode_collectives = msgspec.json.Decoder(list[CollectiveArgs], strict=False).decode
Frames = Mapping[TableNumber, pl.DataFrame]


def wanted_tables(out: TraceBuilder) -> list[TableNumber]:
    """Those that must be decoded; a launch may be a collective, too."""
    return [table for table in TableNumber if out.wants(*_titles(table))]


class SectionRows:
    """Adds sections to what was read before them."""

    def __init__(self, out: TraceBuilder, sorter: Sorter) -> None:
        self._out, self._sorter = out, sorter
        self._tables = wanted_tables(out)

    def add(self, section: Decoded) -> bool:
        """Add it; False, with nothing added, where Python must read it: a text looks secret, or an event is broken."""
        tables = [table for table in self._tables if section.rows(table)]
        if hold_secrets(item for table in tables for item in section.texts(table).items()):
            return False
        foreign = section.foreign
        try:
            events = decode_events(b"[" + b",".join(each.text for each in foreign) + b"]")
            frames = {table: section.frame(table) for table in tables}
            collectives = self._collectives(frames)
        except BAD_JSON:
            return False
        if any(event.cat in TABLE_OF for event in events):  # its category is written with escapes
            return False
        self._sorter.take_pairs([event for event in events if event.ph in ("B", "E")])
        told = {table: _told(frame) for table, frame in frames.items()}
        self._add(_by_batch(section.groups(), foreign, events), told)
        self._out.add("collectives", *collectives)
        if TableNumber.CALLS in frames:
            self._sorter.columns.call_processes.update(frames[TableNumber.CALLS]["process"].unique())
        return True

    def _add(self, groups: Iterable[Group | list[Event]], frames: Frames) -> None:
        added, reached = dict.fromkeys(frames, 0), dict.fromkeys(frames, 0)
        for group in groups:
            if isinstance(group, Group):
                table = TABLE_OF[group.category]
                self._sorter.count(group.category, group.events, are_arrows=table is None)
                if table in reached:
                    reached[table] += group.events
            else:
                self._add_rows(frames, added, reached)
                self._sorter.hand_on(group)
        self._add_rows(frames, added, reached)

    def _add_rows(self, frames: Frames, added: dict[TableNumber, int], reached: dict[TableNumber, int]) -> None:
        """Rows up to those reached, so that rows of other events stand between them as in the file."""
        for table, frame in frames.items():
            if reached[table] > added[table]:
                self._out.add_frame(table.title, frame.slice(added[table], reached[table] - added[table]))
                added[table] = reached[table]

    def _collectives(self, frames: Frames) -> tuple[int, dict[str, Any]]:
        """Rows of kernels whose arguments name a collective; their text isn't kept."""
        launches = frames.get(TableNumber.LAUNCHES)
        if launches is None:
            return 0, {}
        named = launches.filter(pl.col("collective").is_not_null())
        launches.drop_in_place("collective")
        args = _decode_collectives(b"[" + ",".join(named["collective"]).encode() + b"]")
        columns: dict[str, Any] = {name: named[name] for name in _SHARED}
        return len(args), columns | {
            name: [getattr(a, name) for a in args] for name in CollectiveArgs.__struct_fields__
        }


def _told(frame: pl.DataFrame) -> pl.DataFrame:
    """The columns that hold any value."""
    return frame.select(each for each in frame if each.null_count() < frame.height)


def _titles(table: TableNumber) -> tuple[str, ...]:
    return ("launches", "collectives") if table is TableNumber.LAUNCHES else (table.title,)


def _by_batch(groups: list[Group], foreign: list[ForeignText], events: list[Event]) -> Iterator[Group | list[Event]]:
    """Events of one category in one batch, in the order in which a `Sorter` hands them on."""
    found: dict[tuple[int, str], tuple[int, list[Event]]] = {}
    for text, event in zip(foreign, events, strict=True):
        found.setdefault((text.batch, event.cat), (text.place, []))[1].append(event)
    ordered: list[tuple[int, int, Group | list[Event]]] = [(group.batch, group.first, group) for group in groups]
    ordered += [(batch, first, of_one) for (batch, _), (first, of_one) in found.items()]
    for *_, each in sorted(ordered, key=lambda each: each[:2]):
        yield each
