"""What of a time line has room in a page: all single events, or where they are too many, slices for the shortest.

Room is shared out by what readers look at first: streams get half of it, then host calls, ops, frames, ranges. What a
sort of lane doesn't need goes to the others. A sort that is too large then has the finest level that fits its share,
by the bytes that it really takes.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from inferometer.analyses.batches import batches
from inferometer.analyses.timeline.lanes.events import Lanes
from inferometer.analyses.timeline.lanes.levels import MOST_LEVEL, Level, Slices, coarsen, least_level
from inferometer.analyses.timeline.lanes.window import Excerpt
from inferometer.reports.page.sampling import keep_extremes
from inferometer.reports.page.time_line.pack import packed_size

MOST_SAMPLES: Final = 100_000
"""Samples of all counters together."""

_LEAST_SAMPLES: Final = 500  # of one counter

_SHARES: Final[Mapping[str, float]] = {
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


def fit_excerpt(line: Lanes, most_bytes: int) -> Excerpt:
    """The finest excerpt of all lanes that takes about `most_bytes` packed; at most every second level is tried."""
    every = np.arange(len(line.start_ns))
    if len(every) * _SURE <= most_bytes:
        return Excerpt(line, np.zeros(len(line.lanes), dtype=np.int64), every, Slices.none())
    kinds = dict.fromkeys(lane.kind for lane in line.lanes)
    whole = {kind: Level(0, every[_is_of(line, kind)], Slices.none()) for kind in kinds}
    sizes = {
        kind: sum(_size(line, Level(0, level.single[batch], level.slices)) for batch in batches(len(level.single)))
        for kind, level in whole.items()
    }
    shares = _share_out(sizes, most_bytes)
    return _joined(line, {kind: _finest(line, whole.pop(kind), sizes[kind], shares[kind]) for kind in kinds})


def _finest(line: Lanes, level: Level, size: int, share: float) -> Level:
    """The finest level of some lanes that takes no more than its share, of one that is too large or not."""
    event_bytes = size / max(1, len(level.single))
    for coarser in range(level.level + _STEP, MOST_LEVEL + 1, _STEP):
        if size <= share:
            break
        if coarser + _STEP <= MOST_LEVEL and _about(event_bytes, *least_level(line, level, coarser)) > share:
            continue
        level = coarsen(line, level, coarser)
        size = _about(event_bytes, len(level.single), len(level.slices.row))
        if size <= share:  # else it would not fit
            size = _size(line, level)
    return level


def _about(event_bytes: float, events: int, slices: int) -> int:
    """The size of so many, by what an event takes on average."""
    return round(event_bytes * events + _SLICE * slices)


def _share_out(whole: Mapping[str, int], most_bytes: int) -> dict[str, float]:
    """Room for each kind of lane: in proportion, but none gets more than it needs."""
    room, weight = float(most_bytes), sum(_SHARES[kind] for kind in whole)
    shares = {}
    for kind in sorted(whole, key=lambda kind: whole[kind] / _SHARES[kind]):
        shares[kind] = min(float(whole[kind]), room * _SHARES[kind] / weight)
        room -= shares[kind]
        weight -= _SHARES[kind]
    return shares


def _is_of(line: Lanes, kind: str) -> Mask:
    """Whether each event is on a lane of this kind."""
    rows = np.repeat([lane.kind == kind for lane in line.lanes], [lane.rows for lane in line.lanes])
    return np.repeat(rows, np.diff(line.row_at))


def _size(line: Lanes, level: Level) -> int:
    return packed_size(Excerpt(line, np.full(len(line.lanes), level.level), level.single, level.slices))


def _joined(line: Lanes, chosen: Mapping[str, Level]) -> Excerpt:
    at = np.array([chosen[lane.kind].level for lane in line.lanes], dtype=np.int64)
    single = np.sort(np.concatenate([level.single for level in chosen.values()]))
    columns = zip(*(level.slices.columns() for level in chosen.values()), strict=True)
    slices = Slices(*(np.concatenate(column) for column in columns))
    return Excerpt(line, at, single, slices.take(np.argsort(slices.row, kind="stable")))


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
