"""Which range stands around a moment: one sort and one stack sweep a lane, O((n + m) log(n + m)).

A lane is whatever ranges nest in, a thread of a process as a rule. Ranges hold their start and not their end, so an
empty one holds nothing. Ranges may overlap without nesting, as start/end ranges of NVTX do: the innermost is the one
that began last among those that are still open; of several that began at once the shortest, and of equal ones the
last given.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]


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
    points = np.lexsort((point_time, point_lane))
    starts, ends, times = range_start[ranges], range_end[ranges], point_time[points]
    for of_ranges, of_points in shared_lanes(range_lane[ranges], point_lane[points]):
        place = _sweep(starts[of_ranges].tolist(), ends[of_ranges].tolist(), times[of_points].tolist())
        inner = np.array(place, dtype=np.int64)
        found[points[of_points]] = np.where(inner < 0, -1, ranges[of_ranges][inner])
    return found


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
