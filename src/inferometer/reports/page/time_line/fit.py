"""What of a time line has room in a page: all single events, or where they are too many, slices for the shortest.

Room is shared out by what readers look at first: streams get half of it, then host calls, ops, frames, ranges. What a
sort of lane doesn't need goes to the others. A sort that is too large then has the finest level that fits its share,
by the bytes that it really takes.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from inferometer.analyses.timeline.lanes.events import Lanes, Numbers
from inferometer.analyses.timeline.lanes.levels import MOST_LEVEL, Level, Levels, Slices
from inferometer.analyses.timeline.lanes.window import Excerpt
from inferometer.reports.page.sampling import keep_extremes
from inferometer.reports.page.time_line.pack import packed_size

MOST_SAMPLES: Final = 100_000
"""Of all counters together."""

_LEAST_SAMPLES: Final = 500  # of one counter

_SHARES: Final[Mapping[str, float]] = {  # measured on a page of each: see docs/guide/report.md
    "stream": 0.5,
    "call": 0.16,
    "op": 0.12,
    "frame": 0.1,
    "range": 0.04,
    "device_range": 0.03,
    "step": 0.03,
    "system": 0.02,
}
_SURE: Final = 16  # bytes that an event never takes
_STEP: Final = 2  # levels: each is four times as coarse
_SLICE: Final = 3  # bytes that a slice takes, about

Mask = NDArray[np.bool_]


def fit_excerpt(levels: Levels, most_bytes: int) -> Excerpt:
    """The finest excerpt of all lanes that takes about `most_bytes` packed."""
    line = levels.lanes
    kinds = [kind for kind in _SHARES if any(lane.kind == kind for lane in line.lanes)]
    rows = {kind: np.array([line.lanes[lane].kind == kind for lane in line.row_lane], dtype=bool) for kind in kinds}
    chosen = dict.fromkeys(kinds, 0)
    if len(line.start_ns) * _SURE > most_bytes:
        sizes = {kind: _size(levels, rows[kind], 0) for kind in kinds}
        room, waiting = float(most_bytes), sorted(kinds, key=lambda kind: sizes[kind] / _SHARES[kind])
        for kind in waiting:
            rest = sum(_SHARES[each] for each in waiting[waiting.index(kind) :])
            share = room * _SHARES[kind] / rest
            if sizes[kind] > share:
                chosen[kind], sizes[kind] = _finest(levels, rows[kind], share, sizes[kind])
            room -= sizes[kind]
    return _joined(levels, rows, chosen)


def _finest(levels: Levels, rows: Mask, share: float, whole_bytes: int) -> tuple[int, int]:
    """The finest level of these rows, of every second one, that takes no more than its share, and its bytes."""
    line = levels.lanes
    event_bytes = whole_bytes / max(1, len(_of_rows(levels.at(0), rows, line.row_at)[0]))
    for level in range(_STEP, MOST_LEVEL, _STEP):
        single, slices = _of_rows(levels.at(level), rows, line.row_at)
        if event_bytes * len(single) + _SLICE * len(slices.row) <= share:  # else it would not fit
            size = _size(levels, rows, level)
            if size <= share:
                return level, size
    return MOST_LEVEL, _size(levels, rows, MOST_LEVEL)


def _size(levels: Levels, rows: Mask, level: int) -> int:
    line = levels.lanes
    part = _of_rows(levels.at(level), rows, line.row_at)
    return packed_size(Excerpt(line, np.full(len(line.lanes), level), *part))


def _of_rows(level: Level, rows: Mask, row_at: Numbers) -> tuple[Numbers, Slices]:
    row = np.searchsorted(row_at, level.single, side="right") - 1
    return level.single[rows[row]], level.slices.take(rows[level.slices.row])


def _joined(levels: Levels, rows: Mapping[str, Mask], chosen: Mapping[str, int]) -> Excerpt:
    line = levels.lanes
    at = np.array([chosen[lane.kind] for lane in line.lanes], dtype=np.int64)
    parts = [_of_rows(levels.at(level), rows[kind], line.row_at) for kind, level in chosen.items()]
    single = np.sort(np.concatenate([single for single, _ in parts] or [np.zeros(0, np.int64)]))
    slices = Slices(
        *(np.concatenate(c) for c in zip(*(some.columns() for _, some in parts), strict=True))
        if parts
        else Slices.none().columns()
    )
    order = np.lexsort((slices.category, slices.at, slices.row))
    return Excerpt(line, at, single, slices.take(order))


def thin_samples(lanes: Lanes) -> Lanes:
    """With at most `MOST_SAMPLES` of all counters together: the lowest and highest of equal parts."""
    if sum(len(each.value) for each in lanes.samples) <= MOST_SAMPLES:
        return lanes
    most = max(_LEAST_SAMPLES, MOST_SAMPLES // len(lanes.samples))
    thinned = []
    for each in lanes.samples[: MOST_SAMPLES // _LEAST_SAMPLES]:
        kept = keep_extremes(each.value, most)
        thinned.append(replace(each, time_ns=each.time_ns[kept], value=each.value[kept]))
    return replace(lanes, samples=tuple(thinned))
