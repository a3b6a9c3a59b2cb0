"""The next event of a time line whose name has some words, and how many there are."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from inferometer.analyses.timeline.lanes.events import Lanes
from inferometer.names import decode

_BLOCK = 1 << 16  # events that are looked at at once: the next one is mostly near

Mask = NDArray[np.bool_]


def find_names(lanes: Lanes, words: str) -> Mask:
    """Which names have all words, in themselves or in what they are called in short."""
    wanted = words.lower().split()
    return np.array([all(word in text for word in wanted) for text in _texts(lanes)], dtype=bool)


def find_next(lanes: Lanes, names: Mask, at_ns: int, row: int, by: int) -> int | None:
    """The place of the first event with such a name after this start and row, or before it where `by` is below 0.

    Behind the last one comes the first. Events are in the order of their starts, of equal ones in that of their rows.
    """
    for at, own_row in ((at_ns, row), (-1, -1) if by > 0 else (lanes.length_ns + 1, len(lanes.row_at))):
        found = [
            (int(lanes.start_ns[place]), each, place)
            for each in range(len(lanes.row_at) - 1)
            if (place := _in_row(lanes, names, each, at, own_row, by)) is not None
        ]
        if found:
            return (min(found) if by > 0 else max(found))[2]
    return None


def _in_row(lanes: Lanes, names: Mask, row: int, at_ns: int, own_row: int, by: int) -> int | None:
    first, last = int(lanes.row_at[row]), int(lanes.row_at[row + 1])
    starts = lanes.start_ns[first:last]
    if by > 0:
        begin = first + int(np.searchsorted(starts, at_ns, side="left" if row > own_row else "right"))
        blocks = ((low, min(low + _BLOCK, last)) for low in range(begin, last, _BLOCK))
    else:
        end = first + int(np.searchsorted(starts, at_ns, side="right" if row < own_row else "left"))
        blocks = ((max(high - _BLOCK, first), high) for high in range(end, first, -_BLOCK))
    for low, high in blocks:
        hits = np.flatnonzero(names[lanes.name[low:high]])
        if len(hits):
            return low + int(hits[0 if by > 0 else -1])
    return None


def _texts(lanes: Lanes) -> Sequence[str]:
    nouns = [lanes.categories[category].noun for category in lanes.name_category.tolist()]
    return [
        f"{name} {decode(name).short_name or ''}".lower() if noun == "kernel" else name.lower()
        for name, noun in zip(lanes.names, nouns, strict=True)
    ]
