"""In which order a table's times may have been put down, and the shifts that each order allows.

Whoever writes columns of times side by side and joins them by position has a list of each run in an order of its own:
that of the rows, that in which paths were first called, or first completed (callees before their callers). A table
that is sorted by name no longer shows the latter two. So siblings may come in any order: a walk backwards from the
last path, which is blank, tries those that fit best.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from inferometer.analyses.path_table.fit import MOST, align
from inferometer.analyses.path_table.rows import PathRows, Times

_KEPT = 12  # shifts of each kind that are judged in full
_WIDTH = 32
_BRANCHES = 6
_MOST_WALKED, _KEPT_OF_MANY = 1_000, 3  # rows; and of more rows, shifts of each kind
_HOPELESS = 2 * MOST  # a walk that fits so much worse than the best one is given up
ORPHAN = 1.5
"""What a time without a path counts as: else any odd one would be explained so."""

Kind = Literal["lacks", "extra"]


@dataclass(frozen=True)
class Shift:
    """Times of one arm that are at other paths than their own.

    `chain` are the rows from the root's or the last side on. With `lacks`, the time of `chain[i]` stands at `chain[i
    + 1]`, `chain[0]` is blank and the last one is the path that the run hasn't. With `extra`, the time of `chain[i +
    1]` stands at `chain[i]`, the first one's time is lost, and what is at the last one is of a path that the
    table hasn't.
    """

    arm: int
    kind: Kind
    chain: tuple[int, ...]

    @property
    def missing(self) -> int:
        """The row without a time of its own (`lacks`), or the one at which the foreign time stands (`extra`)."""
        return self.chain[-1]

    @property
    def lost(self) -> tuple[int, int] | None:
        """The cell whose time isn't in the table."""
        return (self.arm, self.chain[0]) if self.kind == "extra" else None

    def apply(self, times: Times) -> Times:
        """The times by the paths that they are of."""
        column = list(times[self.arm])
        for row in self.chain:
            column[row] = None
        for first, second in zip(self.chain, self.chain[1:], strict=False):
            held, owner = (second, first) if self.kind == "lacks" else (first, second)
            column[owner] = times[self.arm][held]
        return [column if arm == self.arm else each for arm, each in enumerate(times)]


def find_shifts(rows: PathRows, times: Times, offsets: NDArray[np.float64]) -> list[Shift]:
    """Those that fit best, of every arm, kind and order, each once; by a quick measure, so judge them in full.

    Args:
        rows: The tree.
        times: As printed.
        offsets: What the runs differ by in most rows (`find_offsets`): of times in their places, as far as known.
    """
    found: dict[Shift, None] = {}
    for arm in range(len(rows.arms)):
        fits, kinds = Fits(times, arm, offsets), _kinds(times, arm)
        for order in _orders(rows):
            found |= dict.fromkeys(_in_order(fits, order, kinds))
        if len(rows.paths) <= _MOST_WALKED:
            found |= dict.fromkeys(each for kind in kinds for each in _walked(rows, fits, kind))
    return list(found)


def _kinds(times: Times, arm: int) -> Sequence[Kind]:
    """A run with a path more than the one whose paths are printed leaves no cell blank; nor does that one."""
    is_full = [None not in column for column in times]
    has_owner = any(full for other, full in enumerate(is_full) if other != arm)
    return ["extra"] if is_full[arm] and has_owner else [] if is_full[arm] else ["lacks"]


class Fits:
    """How ill a time of one arm fits a path: `wanted` is what the other arms have there, a logarithm. All by row."""

    def __init__(self, times: Times, arm: int, offsets: NDArray[np.float64]) -> None:
        aligned = align(times, offsets)
        others = np.delete(aligned, arm, axis=0)
        known = ~np.isnan(others)
        self.arm = arm
        self.offsets = offsets
        self.is_blank = [time is None for time in times[arm]]
        self.own = aligned[arm]
        self.wanted = np.where(known.any(axis=0), np.nansum(others, axis=0) / np.maximum(known.sum(axis=0), 1), np.nan)
        self.here = self.of(self.own, self.wanted)

    @staticmethod
    def of(held: NDArray[np.float64], wanted: NDArray[np.float64]) -> NDArray[np.float64]:
        """0 where either isn't known."""
        ill: NDArray[np.float64] = np.minimum(np.nan_to_num(np.abs(held - wanted)), MOST)
        return ill


def _orders(rows: PathRows) -> Iterator[Sequence[int]]:
    """First to last: as printed, the other way round, and callees first with siblings either way round."""
    printed = range(len(rows.paths))
    yield printed
    yield printed[::-1]
    for step in (1, -1):
        done: list[int] = []
        open_: list[int] = [*rows.roots[::step]]  # taken from its end: callers first, siblings backwards
        while open_:
            done.append(open_.pop())
            open_ += rows.children[done[-1]][::step]
        yield done[::-1]


def _in_order(fits: Fits, order: Sequence[int], kinds: Sequence[Kind]) -> Iterator[Shift]:
    """The best shifts along this order."""
    at = np.array(order, dtype=np.int64)
    if at.size < 2:
        return
    own, wanted, here = fits.own[at], fits.wanted[at], fits.here[at]
    kept = _KEPT if at.size <= _MOST_WALKED else _KEPT_OF_MANY
    before = np.concatenate([[0.0], np.cumsum(here)])
    if "lacks" in kinds and fits.is_blank[order[-1]]:
        moved = np.cumsum(fits.of(own[:-1], wanted[1:])[::-1])[::-1]
        for first in np.argsort(before[:-2] + moved, kind="stable")[:kept]:
            yield Shift(fits.arm, "lacks", tuple(at[first:][::-1].tolist()))
    if "extra" not in kinds:
        return
    moved = np.concatenate([np.cumsum(fits.of(own[1:], wanted[:-1])[::-1])[::-1], [0.0]])
    for first in np.argsort(before[:-1] + moved, kind="stable")[:kept]:
        if first < at.size - 2:  # one time moved and one lost says nothing
            yield Shift(fits.arm, "extra", tuple(at[first:][::-1].tolist()))


@dataclass(frozen=True)
class _Walk:
    """Rows from the last one backwards. `levels` are siblings that are still to come, the innermost last."""

    gain: float
    row: int
    before: "_Walk | None"
    levels: "_Levels"

    def chain(self) -> tuple[int, ...]:
        found, walk = [self.row], self
        while walk.before is not None:
            walk = walk.before
            found.append(walk.row)
        return tuple(found[::-1])


_Levels = tuple[tuple[int, ...], ...]
_Next = tuple[Sequence[int], Callable[[int], _Levels]]
"""Rows that may come next, and what is still to come after the one of that index."""


def _walked(rows: PathRows, fits: Fits, kind: Kind) -> Iterator[Shift]:
    """Shifts along orders with siblings in any order: the walks that fit best."""
    roots = [row for row in rows.roots if (kind == "lacks") == fits.is_blank[row]]
    completed = [_Walk(0.0, row, None, (_without(rows.roots, row),)) for row in roots]
    yield from _best_walks(fits, kind, completed, lambda walk: _completed_before(rows, walk))
    if kind == "lacks":
        blank = [row for row, children in enumerate(rows.children) if fits.is_blank[row] and not children]
        called = [_Walk(0.0, row, None, _levels_above(rows, row)) for row in blank[:_WIDTH]]
        yield from _best_walks(fits, kind, called, lambda walk: _called_before(rows, walk))


def _best_walks(
    fits: Fits, kind: Kind, starts: Sequence[_Walk], find_next: Callable[[_Walk], _Next]
) -> Iterator[Shift]:
    beam = list(starts[:_WIDTH])
    ended: list[tuple[float, int, _Walk]] = []
    best = 0.0
    while beam:
        longer = [each for walk in beam for each in _longer(fits, walk, kind, find_next(walk))]
        beam = nsmallest(_WIDTH, (walk for walk in longer if walk.gain < best + _HOPELESS), key=lambda walk: walk.gain)
        for walk in beam:
            end = walk.gain if kind == "lacks" else walk.gain - fits.here[walk.row] + ORPHAN
            ended.append((end, len(ended), walk))
            best = min(best, end)
    for _, _, walk in nsmallest(_KEPT, ended):
        chain = walk.chain()
        if kind == "lacks" or len(chain) > 2:
            yield Shift(fits.arm, kind, chain)


def _longer(fits: Fits, walk: _Walk, kind: Kind, after: _Next) -> Iterator[_Walk]:
    """The walk with one more row, the few that fit best."""
    rows, levels_after = after
    if not rows:
        return
    next_ = np.array(rows, dtype=np.int64)
    if kind == "lacks":
        gains = fits.of(fits.own[next_], fits.wanted[walk.row]) - fits.here[next_]
    else:
        gains = fits.of(fits.own[walk.row], fits.wanted[next_]) - fits.here[walk.row]
    for at in np.argsort(gains, kind="stable")[:_BRANCHES].tolist():
        yield _Walk(walk.gain + float(gains[at]), int(next_[at]), walk, levels_after(at))


def _completed_before(rows: PathRows, walk: _Walk) -> _Next:
    """Who completed last before this row: one of its callees, else a sibling of it or of a caller."""
    levels = walk.levels
    if rows.children[walk.row]:
        levels = (*levels, tuple(rows.children[walk.row]))
    while levels and not levels[-1]:
        levels = levels[:-1]
    if not levels:
        return [], lambda _: ()
    return levels[-1], lambda at: (*levels[:-1], levels[-1][:at] + levels[-1][at + 1 :])


def _called_before(rows: PathRows, walk: _Walk) -> _Next:
    """Who was called last before this row: what a sibling called last, else the caller."""
    levels, parent = walk.levels, rows.parents[walk.row]
    if not levels[-1]:
        return ([] if parent is None else [parent]), lambda _: levels[:-1]
    below = [(sibling, leaf) for sibling in levels[-1] for leaf in rows.leaves[sibling]]

    def levels_after(at: int) -> _Levels:
        sibling, leaf = below[at]
        above = _levels_above(rows, leaf)
        return (*levels[:-1], _without(levels[-1], sibling), *above[len(levels) :])

    return [leaf for _, leaf in below], levels_after


def _levels_above(rows: PathRows, row: int) -> _Levels:
    """Siblings of the row's callers and of itself, the outermost first."""
    levels: list[tuple[int, ...]] = []
    at: int | None = row
    while at is not None:
        parent = rows.parents[at]
        levels.append(_without(rows.roots if parent is None else rows.children[parent], at))
        at = parent
    return tuple(levels[::-1])


def _without(rows: Sequence[int], row: int) -> tuple[int, ...]:
    return tuple(each for each in rows if each != row)
