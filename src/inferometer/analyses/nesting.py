"""Which range stands around a moment: one sort a lane, then columns where all nest, else one stack sweep.

Both are O((n + m) log(n + m)), if what nests isn't deep.

A lane is whatever ranges nest in, a thread of a process as a rule. Ranges hold their start and not their end, so an
empty one holds nothing. Ranges may overlap without nesting, as start/end ranges of NVTX do: the innermost is the one
that began last among those that are still open; of several that began at once the shortest, and of equal ones the
last given.
"""

from itertools import pairwise
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from inferometer.analyses.batches import batches
from inferometer.analyses.numbering import order_by, order_in_time

Numbers = NDArray[np.int64]
SortedPoints = tuple[Numbers | None, Numbers, Numbers]
"""The places of points by lane and time, None where they come so; their lanes and times in this order."""
_NEVER: Final = int(np.iinfo(np.int64).max)
_MOST_LEVELS: Final = 2_000  # a pass over columns for each; one sweep is as quick


class Nested(msgspec.Struct, frozen=True):
    """Ranges of one lane of which no two cross, by start, of equal starts the longest first; shape (n,) each.

    `parent`: the range around each, -1 for the outermost. `levels`: the ranges of each depth, outermost first.
    """

    start_ns: Numbers
    end_ns: Numbers
    parent: Numbers
    levels: tuple[Numbers, ...]

    def innermost(self, time_ns: Numbers) -> Numbers:
        """The innermost range around each time, -1 where there is none."""
        found = np.empty(len(time_ns), dtype=np.int64)
        for part in batches(len(time_ns)):
            found[part] = self._innermost(time_ns[part])
        return found

    def _innermost(self, time_ns: Numbers) -> Numbers:
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
    order = order_by(depth)
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
    ranges = order_ranges(range_lane, range_start, range_end)
    ranges = ranges[range_end[ranges] > range_start[ranges]]
    points, lanes, times = sort_points(point_lane, point_time)
    starts, ends = range_start[ranges], range_end[ranges]
    for of_ranges, of_points in shared_lanes(range_lane[ranges], lanes):
        inner = _innermost(starts[of_ranges], ends[of_ranges], times[of_points])
        found[of_points if points is None else points[of_points]] = np.where(inner < 0, -1, ranges[of_ranges][inner])
    return found


def _innermost(starts: Numbers, ends: Numbers, times: Numbers) -> Numbers:
    """The number of the innermost range around each time, -1 where there is none; of one lane, everything sorted."""
    if nested := find_nested(starts, ends):
        return nested.innermost(times)
    return np.array(_sweep(starts.tolist(), ends.tolist(), times.tolist()), dtype=np.int64)


def order_points(lane: Numbers, time_ns: Numbers) -> Numbers:
    """The order by lane and time, equal ones as they are."""
    order = order_in_time(lane, time_ns)
    return np.arange(len(lane)) if order is None else order


def sort_points(lane: Numbers, time_ns: Numbers) -> SortedPoints:
    """Points in order. Most come so: nothing is copied then."""
    order = order_in_time(lane, time_ns)
    return (None, lane, time_ns) if order is None else (order, lane[order], time_ns[order])


def order_ranges(lane: Numbers, start_ns: Numbers, end_ns: Numbers, rank: Numbers | None = None) -> Numbers:
    """The order by lane and start, of equal starts the longest first, of equal ranges by `rank`, then as they are."""
    order = order_points(lane, start_ns)
    lanes, starts, ends = lane[order], start_ns[order], end_ns[order]
    is_tied = (lanes[1:] == lanes[:-1]) & (starts[1:] == starts[:-1])
    at = np.flatnonzero(is_tied)
    if (ends[at + 1] > ends[at]).any() or (rank is not None and (ends[at + 1] == ends[at]).any()):
        tied = np.union1d(at, at + 1)
        some = order[tied]
        keys = (-end_ns[some], start_ns[some], lane[some])
        order[tied] = some[np.lexsort(keys if rank is None else (rank[some], *keys))]
    return order


def find_enclosed(
    range_lane: Numbers, range_start: Numbers, range_end: Numbers, point_lane: Numbers, point_time: Numbers
) -> tuple[Numbers, Numbers]:
    """The points in each range: those from `first` up to `last` in points sorted by lane and time.

    Points must be sorted so; ranges come in any order. Shape (n,) each; first = last where a range holds none.
    """
    first = np.zeros(len(range_start), dtype=np.int64)
    last = np.zeros(len(range_start), dtype=np.int64)
    for some, of_points in _with_points(range_lane, point_lane):
        times = point_time[of_points]
        first[some] = of_points.start + np.searchsorted(times, range_start[some], side="left")
        last[some] = of_points.start + np.searchsorted(times, range_end[some], side="left")
    return first, np.maximum(first, last)


def holds_any(
    range_lane: Numbers, range_start: Numbers, range_end: Numbers, point_lane: Numbers, point_time: Numbers
) -> NDArray[np.bool_]:
    """Whether each range holds any of the points, which are sorted by lane and time; ranges come in any order."""
    found = np.zeros(len(range_start), dtype=np.bool_)
    for some, of_points in _with_points(range_lane, point_lane):
        times = np.append(point_time[of_points], _NEVER)
        found[some] = times[np.searchsorted(times[:-1], range_start[some], side="left")] < range_end[some]
    return found


def _with_points(range_lane: Numbers, point_lane: Numbers) -> list[tuple[Numbers | slice, slice]]:
    """The ranges and the points of each lane that has both; points are sorted by lane."""
    if len(range_lane) and range_lane.min() == range_lane.max():
        own = shared_lanes(range_lane[:1], point_lane)
        return [(slice(None), of_points) for _, of_points in own]
    ranges = order_by(range_lane)
    return [(ranges[own], of_points) for own, of_points in shared_lanes(range_lane[ranges], point_lane)]


def shared_lanes(left: Numbers, right: Numbers) -> list[tuple[slice, slice]]:
    """Where each lane that both have stands in the one and in the other; both sorted by lane."""
    lanes = np.intersect1d(*(side[np.append(side[:1] == side[:1], side[1:] != side[:-1])] for side in (left, right)))
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
