"""On which row of its lane each event is drawn: what is open meanwhile stands above it, and nothing overlaps."""

from heapq import heappop, heappush

import numpy as np

from inferometer.analyses.numbering import order_by
from inferometer.analyses.timeline.lanes.events import Numbers

MOST_ROWS = 256
"""Rows of one lane. What is nested deeper is counted, not drawn."""


def stack_rows(start_ns: Numbers, dur_ns: Numbers) -> Numbers:
    """The row of each event of one lane, from 0. An instant takes its row for 1 ns.

    Where events nest, it is the number of those around each. Where some overlap without nesting, each takes the first
    row that is free.

    Args:
        start_ns: Starts in order; of equal ones the longest first. Shape (n,).
        dur_ns: How long each takes.
    """
    end_ns = start_ns + np.maximum(dur_ns, 1)
    if (start_ns[1:] >= np.maximum.accumulate(end_ns)[:-1]).all():
        return np.zeros(len(start_ns), dtype=np.int64)
    depth = np.arange(len(start_ns)) - np.searchsorted(np.sort(end_ns), start_ns, side="right")
    order = order_by(depth)
    is_same_row = np.diff(depth[order]) == 0
    if (start_ns[order][1:] >= end_ns[order][:-1])[is_same_row].all():
        return depth
    return _first_free(start_ns.tolist(), end_ns.tolist())


def _first_free(starts: list[int], ends: list[int]) -> Numbers:
    taken: list[tuple[int, int]] = []
    free: list[int] = []
    found = np.empty(len(starts), dtype=np.int64)
    for i, start in enumerate(starts):
        while taken and taken[0][0] <= start:
            heappush(free, heappop(taken)[1])
        row = heappop(free) if free else len(taken)
        found[i] = row
        heappush(taken, (ends[i], row))
    return found
