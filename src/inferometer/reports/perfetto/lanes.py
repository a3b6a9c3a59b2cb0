"""Lanes for slices that must nest: on one track, a slice lies inside another or next to it, never across its end."""

from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
_NESTING = 8  # lanes of a track on which slices may nest; further ones hold one slice at a time


def assign_lanes(starts: Integers, ends: Integers) -> Integers:
    """The lane of each slice of a track: 0 where it nests, the next one where it would cross another's end.

    Args:
        starts: Starts in ns, in order; of two that start at once, the outer one first.
        ends: Ends in ns, exclusive, after the start.
    """
    if (starts[1:] >= ends[:-1]).all():
        return np.zeros(len(starts), np.int64)
    further = _Further()
    lanes: list[int] = []
    open_ends: list[int] = []
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        while open_ends and open_ends[-1] <= start:
            open_ends.pop()
        if not open_ends or open_ends[-1] >= end:
            open_ends.append(end)
            lanes.append(0)
        else:
            lanes.append(further.assign(start, end))
    return np.array(lanes, np.int64)


class _Further:
    """The lanes after the first: a few that nest, then as many as needed that don't.

    So n slices take n log n steps, however they overlap.
    """

    def __init__(self) -> None:
        self._nesting: list[list[int]] = []  # the ends open on each, the innermost last
        self._single: list[tuple[int, int]] = []  # a heap: until when each is taken, and its number

    def assign(self, start: int, end: int) -> int:
        for lane, ends in enumerate(self._nesting, 1):
            while ends and ends[-1] <= start:
                ends.pop()
            if not ends or ends[-1] >= end:
                ends.append(end)
                return lane
        if len(self._nesting) + 1 < _NESTING:
            self._nesting.append([end])
            return len(self._nesting)
        is_free = self._single and self._single[0][0] <= start
        lane = heappop(self._single)[1] if is_free else _NESTING + len(self._single)
        heappush(self._single, (end, lane))
        return lane
