"""The chain of ranges around each moment of a thread, into a tree: one sort, then columns or a stack sweep, O(n log n).

Where all ranges of a thread nest, as they nearly always do, they are taken level by level, else one by one.

Calls (ops, Python frames) nest as a call stack does, but recorded times are rounded and may cross. Of two that cross,
the later was called by the earlier if most of it lies inside, and follows it otherwise. Named ranges may cross in
earnest, as start/end ranges of NVTX do: one holds what lies between its own times.
"""

from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from inferometer.analyses.launched_by.chain_tree import ROOT, CallTree
from inferometer.analyses.nesting import (
    Nested,
    Numbers,
    SortedPoints,
    find_nested,
    order_ranges,
    shared_lanes,
)
from inferometer.analyses.numbering import number_keys

_DEEPEST = 2_000  # Python stops at 1,000 frames; what a broken file nests deeper is left out of the chains
_NEVER = int(np.iinfo(np.int64).max)


class Ranges(msgspec.Struct, frozen=True):
    """Columns of ranges, any order. Shape (n,) each.

    `label` numbers `CallTree.labels`. `is_loose`: a named range, which may cross others. `rank` orders equal times,
    outermost first.
    """

    lane: Numbers
    start_ns: Numbers
    end_ns: Numbers
    label: Numbers
    is_loose: NDArray[np.bool_]
    rank: Numbers

    def take(self, rows: Numbers) -> "Ranges":
        """These rows."""
        return Ranges(*(getattr(self, name)[rows] for name in self.__struct_fields__))


def find_chains(tree: CallTree, ranges: Ranges, moments: SortedPoints, *, root: int = ROOT) -> Numbers:
    """The node of the chain of ranges around each moment, `root` where there is none; the tree grows by them.

    Args:
        tree: Its labels are those of `ranges`.
        ranges: Starts are inside, ends are not.
        moments: Thread and time of each, as `sort_points` has them; m of them.
        root: The node that chains hang below.

    Returns:
        In the order in which the moments were given. Shape (m,).
    """
    points, lanes, times = moments
    found = np.full(len(times), root, dtype=np.int64)
    if not len(ranges.lane):
        return found
    order = order_ranges(ranges.lane, ranges.start_ns, ranges.end_ns, ranges.rank)
    ranges = ranges.take(order)
    for some, of_lane in shared_lanes(ranges.lane, lanes):
        found[of_lane if points is None else points[of_lane]] = _nodes(tree, root, ranges, some, times[of_lane])
    return found


def _nodes(tree: CallTree, root: int, ranges: Ranges, some: slice, times: Numbers) -> Numbers:
    """The node at each of the sorted times of one thread; some of the sorted ranges are that thread's."""
    end = some.start + int(np.searchsorted(ranges.start_ns[some], times[-1], side="right"))
    begun = slice(some.start, end)
    starts, ends, labels = ranges.start_ns[begun], ranges.end_ns[begun], ranges.label[begun]
    nested = find_nested(starts, ends)
    if nested is not None and len(nested.levels) <= _DEEPEST:
        nodes = np.append(_grow(tree, root, nested, labels), root)
        return nodes[nested.innermost(times)]  # -1, in none, is the last
    first = _first_between(np.concatenate((starts, ends)), times)
    rows = zip(*(column.tolist() for column in (starts, ends, labels, ranges.is_loose[begun])), strict=True)
    swept = np.array(_Sweep(tree, root).run(list(rows), times[first].tolist()), dtype=np.int64)
    return np.repeat(swept, np.diff(np.append(first, len(times))))


def _grow(tree: CallTree, root: int, nested: Nested, labels: Numbers) -> Numbers:
    """The node of each range.

    Ranges of one label get one number if those around them have one, level by level. Then numbers become nodes, in the
    order in which ranges begin: the tree is the same as of a sweep.
    """
    number, firsts, count, above = np.zeros(len(labels), dtype=np.int64), [], 0, 0
    for depth, level in enumerate(nested.levels):
        around = number[nested.parent[level]] - above if depth else 0
        first, same = number_keys(around * (labels.max() + 1) + labels[level])
        number[level], above = count + same, count
        firsts.append(level[first])
        count += len(first)
    nodes = np.full(count, root, dtype=np.int64)
    new = np.sort(np.concatenate(firsts))
    around = nested.parent[new]
    if root == len(tree) - 1:  # nothing hangs below it yet
        nodes[number[new]] = np.arange(len(tree), len(tree) + count)
        tree.extend(np.where(around < 0, root, nodes[number[around]]).tolist(), labels[new].tolist())
        return nodes[number]
    for of, outer, label in zip(
        number[new].tolist(), np.where(around < 0, -1, number[around]).tolist(), labels[new].tolist(), strict=True
    ):
        nodes[of] = tree.child(root if outer < 0 else int(nodes[outer]), label)
    return nodes[number]


def _first_between(bounds: Numbers, times: Numbers) -> Numbers:
    """The first of the sorted times in each stretch in which no range begins or ends: all in it have one chain."""
    at = np.searchsorted(times, bounds)  # a stretch begins with its bound
    begins = np.zeros(len(times) + 1, dtype=np.bool_)
    begins[at] = True
    begins[0] = True
    return np.flatnonzero(begins[:-1])


class _Open(NamedTuple):
    """A range on the stack. `lowest`: the earliest end here or below."""

    end: int
    label: int
    is_loose: bool
    node: int
    lowest: int


class _Sweep:
    """The stack of one thread's open ranges, outermost first."""

    def __init__(self, tree: CallTree, root: int) -> None:
        self._child = tree.child
        self._root = root
        self._stack: list[_Open] = []

    def run(self, ranges: list[tuple[int, int, int, bool]], times: list[int]) -> list[int]:
        """The node at each time; ranges are start, end, label and looseness; everything sorted."""
        stack, begun, n = self._stack, 0, len(ranges)
        found: list[int] = []
        for time in times:
            while begun < n and ranges[begun][0] <= time:
                start, end, label, is_loose = ranges[begun]
                self._leave(start)
                if not is_loose:
                    self._settle(start, end)
                self._enter(end, label, is_loose)
                begun += 1
            self._leave(time)
            found.append(stack[-1].node if stack else self._root)
        return found

    def _leave(self, time: int) -> None:
        stack = self._stack
        while stack and stack[-1].end <= time:
            stack.pop()
        if stack and stack[-1].lowest <= time:  # one ended under others
            kept = [each for each in stack if each.end > time]
            stack.clear()
            for each in kept:
                self._enter(each.end, each.label, each.is_loose)

    def _enter(self, end: int, label: int, is_loose: bool) -> None:
        stack = self._stack
        if len(stack) >= _DEEPEST:
            return
        node, lowest = (stack[-1].node, stack[-1].lowest) if stack else (self._root, _NEVER)
        stack.append(_Open(end, label, is_loose, self._child(node, label), min(lowest, end)))

    def _settle(self, start: int, end: int) -> None:
        """Before a call that crosses the one open: that one is over, or was cut short by rounding."""
        stack = self._stack
        while stack and not stack[-1].is_loose and stack[-1].end < end:
            if (stack[-1].end - start) * 2 >= end - start:
                self._lengthen(end)
                return
            stack.pop()

    def _lengthen(self, end: int) -> None:
        """Let the calls that are open last until `end`, down to a range that may end before."""
        stack, first = self._stack, len(self._stack)
        while first and not stack[first - 1].is_loose and stack[first - 1].end < end:
            first -= 1
        lowest = stack[first - 1].lowest if first else _NEVER
        stack[first:] = [each._replace(end=end, lowest=min(lowest, end)) for each in stack[first:]]
