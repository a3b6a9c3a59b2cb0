"""What is shorter than 2^k ns, merged into slices of 2^k ns: so a picture of any scale has few things to draw.

Slices lie on a fixed grid from the origin. An event that reaches from one slice into the next has its time in both, and
counts in the one where it begins. So of each row, lane and category, the count and the summed time of single events
and slices together are the same at every level, to the nanosecond.
"""

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from inferometer.analyses.batches import batches
from inferometer.analyses.timeline.lanes.events import Lanes, Numbers

MOST_LEVEL = 53


class Slices(msgspec.Struct, frozen=True, eq=False):
    """One row per row of the picture, slice and category of what was merged there; sorted by these three.

    Attributes:
        row: The row of the picture. Shape (n,), as all.
        at: Number of the slice: it begins `at << level` ns from the origin.
        category: What was merged.
        ns: Its time within the slice.
        count: How many of it begin in the slice.
        name: The name of the longest of it that touches the slice, of equal ones any,
        longest_ns: and how long that takes in all.
    """

    row: Numbers
    at: Numbers
    category: Numbers
    ns: Numbers
    count: Numbers
    name: Numbers
    longest_ns: Numbers

    @classmethod
    def none(cls) -> "Slices":
        """No slices."""
        return cls(*(np.zeros(0, dtype=np.int64) for _ in range(7)))

    def columns(self) -> tuple[Numbers, ...]:
        """All, in the order of their declaration."""
        return (self.row, self.at, self.category, self.ns, self.count, self.name, self.longest_ns)

    def take(self, places: NDArray[np.bool_] | Numbers | slice) -> "Slices":
        """Those at these places."""
        return Slices(*(column[places] for column in self.columns()))


class Level(msgspec.Struct, frozen=True, eq=False):
    """A time line at one scale: the places of events that take 2^level ns or more, and slices of all others."""

    level: int
    single: Numbers
    slices: Slices


class Levels:
    """The levels of a time line, each made of the next finer one that was asked for before, and kept."""

    def __init__(self, lanes: Lanes) -> None:
        self.lanes = lanes
        self._known = {0: Level(0, np.arange(len(lanes.start_ns)), Slices.none())}

    def at(self, level: int) -> Level:
        """The level at which everything shorter than 2^level ns is merged; at 0 nothing is."""
        level = min(max(level, 0), MOST_LEVEL)
        if level not in self._known:
            finer = self._known[max(known for known in self._known if known < level)]
            self._known[level] = coarsen(self.lanes, finer, level)
        return self._known[level]


def coarsen(lanes: Lanes, finer: Level, level: int) -> Level:
    """A coarser level of a finer one."""
    is_short = lanes.dur_ns[finer.single] < 1 << level
    if not is_short.any() and not len(finer.slices.row):
        return Level(level, finer.single, Slices.none())
    old, events = finer.slices, finer.single[is_short]
    parts = [Slices(old.row, old.at >> (level - finer.level), *old.columns()[2:])]
    parts += [_grouped(cut_slices(lanes, events[batch], level)) for batch in batches(len(events))]
    return Level(level, finer.single[~is_short], _grouped(_joined(parts)))


def least_level(lanes: Lanes, finer: Level, level: int) -> tuple[int, int]:
    """How many single events `coarsen` leaves, and how many slices it makes at least: those that events begin in."""
    is_short = lanes.dur_ns[finer.single] < 1 << level
    events = finer.single[is_short]
    slices = 0
    for batch in batches(len(events)):
        row, at = _row_of(lanes, events[batch]), lanes.start_ns[events[batch]] >> level
        slices += int(np.count_nonzero((np.diff(row) != 0) | (np.diff(at) != 0)))  # the first may be the last batch's
    return len(finer.single) - len(events), slices


def cut_slices(lanes: Lanes, events: Numbers, level: int) -> Slices:
    """Each of these events, all shorter than 2^level ns, as one or two slices; not yet grouped."""
    start, dur = lanes.start_ns[events], lanes.dur_ns[events]
    row = _row_of(lanes, events)
    name = lanes.name[events].astype(np.int64)
    category = lanes.name_category[name].astype(np.int64)
    at = start >> level
    first_ns = np.minimum(start + dur, (at + 1) << level) - start
    on = np.flatnonzero(dur > first_ns)
    parts = (row, at, category, first_ns, np.ones(len(events), dtype=np.int64), name, dur)
    over = (row[on], at[on] + 1, category[on], (dur - first_ns)[on], np.zeros(len(on), np.int64), name[on], dur[on])
    return Slices(*(np.concatenate(pair) for pair in zip(parts, over, strict=True)))


def _row_of(lanes: Lanes, events: Numbers) -> Numbers:
    return np.searchsorted(lanes.row_at, events, side="right") - 1


def _joined(parts: Sequence[Slices]) -> Slices:
    return Slices(*(np.concatenate(columns) for columns in zip(*(part.columns() for part in parts), strict=True)))


def _grouped(some: Slices) -> Slices:
    """One of each row, slice and category."""
    order = _order(some.row, some.at, some.category)
    row, at, category, ns, count, name, longest = (column[order] for column in some.columns())
    is_new = (np.diff(row) != 0) | (np.diff(at) != 0) | (np.diff(category) != 0)
    first = np.flatnonzero(np.concatenate(([True], is_new)))
    most = np.maximum.reduceat(longest, first)
    is_longest = longest == np.repeat(most, np.diff(first, append=len(row)))
    called = np.minimum.reduceat(np.where(is_longest, np.arange(len(row)), len(row)), first)
    ns, count = np.add.reduceat(ns, first), np.add.reduceat(count, first)
    return Slices(row[first], at[first], category[first], ns, count, name[called], most)


def _order(row: Numbers, at: Numbers, category: Numbers) -> Numbers:
    """What sorts by these three: of one number made of them where it has room, which is quick, nearly in order."""
    slices, categories = int(at.max()) + 1, int(category.max()) + 1
    if (int(row.max()) + 1) * slices * categories < 2**63:
        return np.argsort((row * slices + at) * categories + category, kind="stable")
    return np.lexsort((category, at, row))
