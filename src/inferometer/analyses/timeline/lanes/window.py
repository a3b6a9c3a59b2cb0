"""What a picture of some pixels needs of a time line: wide events one by one, slices of the others."""

from collections.abc import Collection

import msgspec
import numpy as np

from inferometer.analyses.timeline.lanes.events import Lanes, Numbers
from inferometer.analyses.timeline.lanes.levels import MOST_LEVEL, Levels, Slices


class Excerpt(msgspec.Struct, frozen=True, eq=False):
    """Part of a time line: the events `single`, by place in `lanes`, and slices of what is too short.

    `levels` has, for each lane, the level of its slices: everything that takes 2^level ns or more is single there.
    """

    lanes: Lanes
    levels: Numbers
    single: Numbers
    slices: Slices


def level_of(width_ns: int, pixels: int) -> int:
    """The finest level whose slices are at least a pixel wide, 0 where a pixel is no longer than 1 ns."""
    return min(max(0, (max(1, -(-width_ns // max(1, pixels))) - 1).bit_length()), MOST_LEVEL)


def cut_window(
    levels: Levels, start_ns: int, end_ns: int, pixels: int, lanes: Collection[int] | None = None
) -> Excerpt:
    """What there is to see from `start_ns` to `end_ns`, both from the origin, on so many pixels.

    Pure: the same question has the same answer. What reaches into the window from outside is in it, whole. Of each row
    there are at most 2 events and 1 slice a category for each pixel.

    Args:
        levels: The time line.
        start_ns: Begin of the window.
        end_ns: Its end, exclusive.
        pixels: How wide the picture is.
        lanes: The lanes in sight; None: all.
    """
    line = levels.lanes
    level = levels.at(level_of(end_ns - start_ns, pixels))
    rows = np.ones(len(line.row_at) - 1, dtype=bool) if lanes is None else np.isin(line.row_lane, [*lanes])
    wanted = np.flatnonzero(rows)
    single = _overlapping(line, level.single, wanted, start_ns, end_ns)
    slices = level.slices
    first = np.searchsorted(slices.row, wanted, side="left")
    last = np.searchsorted(slices.row, wanted, side="right")
    places = [
        np.arange(
            *(begin + np.searchsorted(slices.at[begin:end], (start_ns >> level.level, -(-end_ns >> level.level))))
        )
        for begin, end in zip(first, last, strict=True)
        if end > begin
    ]
    chosen = slices.take(np.concatenate(places)) if places else Slices.none()
    return Excerpt(line, np.full(len(line.lanes), level.level), single, chosen)


def _overlapping(line: Lanes, single: Numbers, rows: Numbers, start_ns: int, end_ns: int) -> Numbers:
    """The events of these rows that reach into the window; on one row ends are in order as starts are."""
    found = []
    for first, last in zip(line.row_at[rows].tolist(), line.row_at[rows + 1].tolist(), strict=True):
        low, high = first + np.searchsorted(line.start_ns[first:last], (start_ns, end_ns))
        begin, end = np.searchsorted(single, (low, high))
        if begin and single[begin - 1] >= first:
            before = single[begin - 1]
            begin -= int(line.start_ns[before] + line.dur_ns[before] > start_ns)
        found.append(single[begin:end])
    return np.concatenate(found) if found else np.zeros(0, dtype=np.int64)
