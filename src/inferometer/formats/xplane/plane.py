"""One plane: its names, and the values of its stats.

Events and stats carry numbers that the plane's own tables name; two planes use one number for different things. A
text that repeats is stored once, as the *name* of a stat to which a value refers. Stats of an event's description
hold for all events that it describes.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from inferometer.formats.xplane.lines import Events, Numbers
from inferometer.formats.xplane.space import text_of
from inferometer.trace.losses import Losses

Value = int | float | str | bytes | None
_BAD = "\N{REPLACEMENT CHARACTER}"


class Plane:
    """`message` is an XPlane, or an outline, which names no events."""

    def __init__(self, message: Any, losses: Losses) -> None:
        self.name = text_of(message.name)
        self.lines: Sequence[Any] = message.lines
        self._losses = losses
        self._stat_names = {each.key: text_of(each.value.name) for each in message.stat_metadata}
        self._events = {each.key: each.value for each in getattr(message, "event_metadata", ())}
        self._of_events: dict[int, Mapping[str, Value]] = {}
        self.stats = self.values(message.stats)

    def values(self, stats: Iterable[Any]) -> dict[str, Value]:
        """All values by name; the last of each."""
        return {self._stat_names.get(stat.metadata_id, ""): self.value(stat) for stat in stats}

    def value(self, stat: Any) -> Value:
        """What `stat` holds, with a reference followed; None for nothing, or a reference to nothing."""
        which = stat.WhichOneof("value")
        if which is None:
            return None
        value = getattr(stat, which)
        if which == "ref_value":
            return self._stat_names.get(value)
        return text_of(value) if which == "str_value" else value

    def numbers_of(self, name: str) -> frozenset[int]:
        """The numbers of a stat."""
        return frozenset(number for number, each in self._stat_names.items() if each == name)

    def described(self, name_id: int) -> Mapping[str, Value]:
        """Stats of the description of an event."""
        if name_id not in self._of_events:
            event = self._events.get(name_id)
            self._of_events[name_id] = self.values(event.stats) if event is not None else {}
        return self._of_events[name_id]

    def name_of(self, name_id: int, *, prefer_short: bool = False) -> str:
        """The name of an event; `prefer_short`: its display name, where it has one."""
        event = self._events.get(name_id)
        if event is None:
            return f"[string {name_id}]"
        return text_of((event.display_name if prefer_short else b"") or event.name or event.display_name)

    def names(self, name_id: Numbers, *, prefer_short: bool = False) -> pl.Series:
        """The names of events, as categories."""
        known = {each: self.name_of(each, prefer_short=prefer_short) for each in np.unique(name_id).tolist()}
        return pl.Series(name_id, dtype=pl.Int64).replace_strict(known, return_dtype=pl.String).cast(pl.Categorical)

    def count_bad_names(self, name_id: Numbers, table: str) -> None:
        """Count events whose name is not in the file, or not UTF-8."""
        for each, count in zip(*(part.tolist() for part in np.unique(name_id, return_counts=True)), strict=True):
            if each not in self._events:
                self._losses.count("without_string", count, category=table)
            elif _BAD in (name := self.name_of(each)):
                self._losses.count("invalid_utf8", count, category=table, example=name)

    def columns(self, events: Events, wanted: Collection[str]) -> dict[str, list[Value]]:
        """The values of these stats, of each event; its description's where the event has none.

        A stat that no event has isn't there.
        """
        n = len(events.messages)
        ids, places = np.unique(events.name_id, return_inverse=True)
        described = [self.described(name_id) for name_id in ids.tolist()]
        found: dict[str, list[Value]] = {}
        for name in dict.fromkeys(name for each in described for name in each if name in wanted):
            values = [each.get(name) for each in described]
            found[name] = [values[place] for place in places.tolist()]
        columns = {number: found.get(name) or [None] * n for number, name in self._stat_names.items() if name in wanted}
        names = self._stat_names
        for row, event in enumerate(events.messages) if columns else ():
            for stat in event.stats:
                number = stat.metadata_id
                if number in columns:
                    refers = stat.ref_value
                    columns[number][row] = names.get(refers) if refers else stat.uint64_value or self.value(stat)
        return found | {
            names[number]: column for number, column in columns.items() if any(each is not None for each in column)
        }


def whole(value: Value) -> int | None:
    """A whole number, also one written as text (`12`, `$$1`); None for anything else."""
    if isinstance(value, int):
        return value
    if isinstance(value, str):
        digits = value.removeprefix("$$")
        return int(digits) if digits.isdecimal() and len(digits) < 19 else None
    return None


def text(value: Value) -> str | None:
    """A text that says something."""
    return value if isinstance(value, str) and value else None
