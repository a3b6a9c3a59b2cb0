"""Which range stands around a moment: one sort a lane, then columns where all nest, else one stack sweep.

Both are O((n + m) log(n + m)), if what nests isn't deep.

A lane is whatever ranges nest in, a thread of a process as a rule. Ranges hold their start and not their end, so an
empty one holds nothing. Ranges may overlap without nesting, as start/end ranges of NVTX do: the innermost is the one
that began last among those that are still open; of several that began at once the shortest, and of equal ones the
last given.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
_MOST_LEVELS: Final = 2_000  # a pass over columns for each; one sweep is as quick


@dataclass(frozen=True)
class Nested:
    """Ranges of one lane of which no two cross, by start, of equal starts the longest first; shape (n,) each.

    `parent`: the range around each, -1 for the outermost. `levels`: the ranges of each depth, outermost first.
    """

    start_ns: Numbers
    end_ns: Numbers
    parent: Numbers
    levels: tuple[Numbers, ...]

    def innermost(self, time_ns: Numbers) -> Numbers:
        """The innermost range around each time, -1 where there is none."""
        found = (np.searchsorted(self.start_ns, time_ns, side="right") - 1).astype(np.int64)
        rows = np.flatnonzero(found >= 0)
        while len(rows := rows[self.end_ns[found[rows]] <= time_ns[rows]]):
            found[rows] = self.parent[found[rows]]
            rows = rows[found[rows] >= 0]
        return found


def find_nested(start_ns: Numbers, end_ns: Numbers) -> Nested | None:
    """How ranges of one lane nest; None where two cross, one is empty, or they nest too deep for columns.

    As many are open at a start as began before and haven't ended; where all nest, the one around a range is the last
    that began one level above.

    Args:
        start_ns: Sorted; of equal ones the longest first. Shape (n,).
        end_ns: Exclusive.
    """
    if not len(start_ns) or (end_ns <= start_ns).any():
        return None
    depth = np.arange(len(start_ns)) - np.searchsorted(np.sort(end_ns), start_ns, side="right")
    if depth.max() >= _MOST_LEVELS:
        return None
    order = np.argsort(depth, kind="stable")
    levels = np.split(order, np.flatnonzero(np.diff(depth[order])) + 1)
    parent = np.full(len(start_ns), -1, dtype=np.int64)
    for outer, inner in pairwise(levels):
        around = outer[np.searchsorted(outer, inner) - 1]
        if (end_ns[inner] > end_ns[around]).any():
            return None
        parent[inner] = around
    return Nested(start_ns, end_ns, parent, tuple(levels))


def find_innermost(
    range_lane: Numbers, range_start: Numbers, range_end: Numbers, point_lane: Numbers, point_time: Numbers
) -> Numbers:
    """The number of the innermost range around each point, -1 where there is none.

    Args:
        range_lane: Number of each range's lane. Shape (n,), any order, as the next two.
        range_start: Starts in ns.
        range_end: Ends in ns, exclusive.
        point_lane: Number of each point's lane. Shape (m,), any order, as the next one.
        point_time: Times in ns.

    Returns:
        Shape (m,): indices into the ranges, in the points' order.
    """
    found = np.full(len(point_time), -1, dtype=np.int64)
    ranges = np.lexsort((-range_end, range_start, range_lane))
    ranges = ranges[range_end[ranges] > range_start[ranges]]
    points = np.lexsort((point_time, point_lane))
    starts, ends, times = range_start[ranges], range_end[ranges], point_time[points]
    for of_ranges, of_points in shared_lanes(range_lane[ranges], point_lane[points]):
        inner = _innermost(starts[of_ranges], ends[of_ranges], times[of_points])
        found[points[of_points]] = np.where(inner < 0, -1, ranges[of_ranges][inner])
    return found


def _innermost(starts: Numbers, ends: Numbers, times: Numbers) -> Numbers:
    """The number of the innermost range around each time, -1 where there is none; of one lane, everything sorted."""
    if nested := find_nested(starts, ends):
        return nested.innermost(times)
    return np.array(_sweep(starts.tolist(), ends.tolist(), times.tolist()), dtype=np.int64)


def find_enclosed(
    range_lane: Numbers, range_start: Numbers, range_end: Numbers, point_lane: Numbers, point_time: Numbers
) -> tuple[Numbers, Numbers]:
    """The points in each range: those from `first` up to `last` in points sorted by lane and time.

    Points must be sorted so; ranges come in any order. Shape (n,) each; first = last where a range holds none.
    """
    first = np.zeros(len(range_start), dtype=np.int64)
    last = np.zeros(len(range_start), dtype=np.int64)
    ranges = np.argsort(range_lane, kind="stable")
    for of_ranges, of_points in shared_lanes(range_lane[ranges], point_lane):
        some, times = ranges[of_ranges], point_time[of_points]
        first[some] = of_points.start + np.searchsorted(times, range_start[some], side="left")
        last[some] = of_points.start + np.searchsorted(times, range_end[some], side="left")
    return first, np.maximum(first, last)


def shared_lanes(left: Numbers, right: Numbers) -> list[tuple[slice, slice]]:
    """Where each lane that both have stands in the one and in the other; both sorted by lane."""
    lanes = np.intersect1d(left, right)
    bounds = [np.searchsorted(side, lanes, side=end) for side in (left, right) for end in ("left", "right")]
    return [(slice(a, b), slice(c, d)) for a, b, c, d in zip(*(each.tolist() for each in bounds), strict=True)]


def _sweep(starts: list[int], ends: list[int], times: list[int]) -> list[int]:
    """For each time the range around it, -1 for none; everything sorted. Each range is put on the stack once.

    A range below the top may have ended unnoticed: it is dropped when it comes up, and until then it hides nothing.
    """
    found: list[int] = []
    stack: list[int] = []
    begun, n = 0, len(starts)
    for time in times:
        while begun < n and starts[begun] <= time:
            stack.append(begun)
            begun += 1
        while stack and ends[stack[-1]] <= time:
            stack.pop()
        found.append(stack[-1] if stack else -1)
    return found


def extremes_within(values: Numbers, first: Numbers, last: Numbers, *, largest: bool) -> Numbers:
    """The smallest (or largest) of `values[first:last]` for each pair, which must not be empty.

    Doubles the width of precomputed windows step by step: O(m log m + n), whatever the ranges' lengths.
    """
    pick: Any = np.maximum if largest else np.minimum
    answer = np.empty(len(first), dtype=np.int64)
    length = last - first
    best, width = values, 1  # best[i] is the answer for values[i : i + width]
    while len(length) and width <= length.max():
        fits = np.flatnonzero((length >= width) & (length < 2 * width))
        answer[fits] = pick(best[first[fits]], best[last[fits] - width])
        best, width = pick(best[:-width], best[width:]), 2 * width
    return answer
