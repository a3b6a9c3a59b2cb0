"""Events of a line as columns: names and whole nanoseconds; events without a usable time are counted.

A start is the line's time in ns and the event's offset in ps, added apart: together in ps they would overflow. Starts
are rounded down to whole ns and durations to the nearest; how many weren't whole, and by how much their sum changes,
is counted. A line with Unix times is moved to the start of the profile, where the file says when that was.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inferometer.formats.xplane.space import text_of
from inferometer.trace.builder import TraceBuilder
from inferometer.trace.losses import Losses

Numbers = NDArray[np.int64]

_PS = 1_000  # in a ns
_LONGEST_NS = 2**53  # 104 days
_FURTHEST_NS = 2**62  # ±146 years
_UNIX_NS = 2**59  # 1988: no time since the start of a profile is as large


@dataclass(frozen=True)
class Events:
    """Events with a usable time, in the file's order: `messages`, and their columns. Shape (n,) each."""

    messages: Sequence[Any]
    name_id: Numbers
    start_ns: Numbers
    dur_ns: Numbers


@dataclass(frozen=True)
class Clock:
    """`base_ns`: when the profile began, Unix ns; None: the file doesn't say, and times stay as they are."""

    base_ns: int | None

    def origin(self, timestamp_ns: int) -> int:
        """The line's time on the trace's clock."""
        return timestamp_ns - self.base_ns if self.base_ns is not None and is_unix(timestamp_ns) else timestamp_ns


def is_unix(timestamp_ns: int) -> bool:
    """Whether a line's time counts from 1970, not from the start of the profile."""
    return timestamp_ns >= _UNIX_NS


class LineReader:
    """Reads lines, and counts what is wrong with their events where the question needs the table."""

    def __init__(self, clock: Clock, out: TraceBuilder) -> None:
        self._clock = clock
        self._out = out
        self._rounded: dict[str, tuple[int, int]] = {}

    def read(self, line: Any, table: str, messages: Sequence[Any] | None = None) -> Events:
        """The events of `line`, all or `messages` of them, that have a time and a duration, for `table`.

        Aggregates (`num_occurrences`) have none: they stand for several events, which may be in the file too, or not.
        """
        losses = self._out.losses if self._out.wants(table) else Losses()
        messages = list(line.events) if messages is None else messages
        n = len(messages)
        losses.see(table, n)
        offset_ps, dur_ps, name_id, stand_for = (
            np.fromiter(map(attrgetter(name), messages), np.int64, n)
            for name in ("offset_ps", "duration_ps", "metadata_id", "num_occurrences")
        )
        origin_ns, offset_ns = self._clock.origin(line.timestamp_ns), offset_ps // _PS
        is_far = np.abs(offset_ns.astype(float) + origin_ns) > _FURTHEST_NS
        reasons = {
            "aggregate_event": stand_for != 0,
            "negative_duration": dur_ps < 0,
            "time_out_of_range": is_far | (dur_ps > _LONGEST_NS * _PS),
        }
        kept = np.ones(n, dtype=np.bool_)
        for name, is_bad in reasons.items():
            losses.count(name, int((is_bad & kept).sum()), category=table)
            kept &= ~is_bad
        rows = np.flatnonzero(kept)
        if len(rows) < n:
            messages = [messages[row] for row in rows.tolist()]
            offset_ps, offset_ns, dur_ps, name_id = (each[rows] for each in (offset_ps, offset_ns, dur_ps, name_id))
        dur_ns = (dur_ps + _PS // 2) // _PS
        self._note_rounding(table, (offset_ps % _PS != 0) | (dur_ps % _PS != 0), int((dur_ns * _PS - dur_ps).sum()))
        return Events(messages, name_id, offset_ns + origin_ns, dur_ns)

    def peek(self, line: Any) -> Events:
        """The same events, when they are counted elsewhere."""
        return LineReader(self._clock, TraceBuilder(())).read(line, "spans")

    def count_rounded(self) -> None:
        """Count the times that weren't whole nanoseconds, when all is read."""
        for table, (count, gained_ps) in self._rounded.items():
            example = f"the sum of durations changes by {gained_ps:+,} ps"
            self._out.losses.count("below_a_nanosecond", count, category=table, example=example)

    def _note_rounding(self, table: str, is_rounded: NDArray[np.bool_], gained_ps: int) -> None:
        if is_rounded.any() and self._out.wants(table):
            count, gained = self._rounded.get(table, (0, 0))
            self._rounded[table] = count + int(is_rounded.sum()), gained + gained_ps


def line_name(line: Any) -> str:
    """What the line is called."""
    return text_of(line.name or line.display_name)


def count_line(line: Any, name: str, loss: str, out: TraceBuilder) -> None:
    """Count events of a line that have no row."""
    if out.wants("launches"):
        out.losses.see(name, len(line.events))
        out.losses.count(loss, len(line.events), category=name)
