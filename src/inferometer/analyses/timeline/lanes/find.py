"""The time line of a trace: from its tables to lanes."""

from collections.abc import Sequence

import msgspec
import numpy as np
import polars as pl
from msgspec.structs import replace
from numpy.typing import NDArray

from inferometer.analyses.batches import batches
from inferometer.analyses.correlation import NO_CALL, calls_of_launches
from inferometer.analyses.timeline.lanes.drawn import Drawn, bounds_of, draw
from inferometer.analyses.timeline.lanes.events import LONGEST_NS, NO_TIE, Category, Lane, Lanes, Numbers, Samples
from inferometer.analyses.timeline.lanes.samples import find_samples
from inferometer.analyses.timeline.lanes.sources import find_pieces
from inferometer.trace.trace import Trace

_TIED = ("launches", "calls")


class _Layout(msgspec.Struct, frozen=True, eq=False):
    """The lanes of all pieces in the order of the picture, where its rows begin, and where each piece's lanes go."""

    lanes: tuple[Lane, ...]
    row_at: Numbers
    to: Sequence[Sequence[slice]]


def find_lanes(trace: Trace, steps: pl.DataFrame | None = None) -> Lanes | None:
    """All that the trace says of when what ran; None where nothing has a time, or times lie `LONGEST_NS` apart.

    Args:
        trace: The recording. Tables that were not read have no lanes.
        steps: `step`, `phase`, `start_ns` and `wall_ns` of its steps, on the trace's clock.
    """
    pieces = []
    for piece in find_pieces(trace, steps):
        first_ns, last_ns = bounds_of(piece)
        if last_ns - first_ns >= LONGEST_NS:
            return None
        pieces.append(draw(piece))
    samples = find_samples(trace, 0)
    bounds = [piece.bounds_ns for piece in pieces]
    bounds += [(int(each.time_ns[0]), int(each.time_ns[-1])) for each in samples]
    window = trace.window()
    if not bounds or window is None:
        return None
    first_ns, last_ns = min(first for first, _ in bounds), max(last for _, last in bounds)
    origin_ns = min(window[0], first_ns)
    if last_ns - origin_ns >= LONGEST_NS:
        return None
    moved = tuple(replace(each, time_ns=each.time_ns - origin_ns) for each in samples)
    return _joined(trace, pieces, (origin_ns, last_ns - origin_ns), moved)


def _joined(trace: Trace, pieces: list[Drawn], span: tuple[int, int], samples: tuple[Samples, ...]) -> Lanes:
    """The lanes of all pieces; `pieces` is empty then, since both have no room in memory where they are large."""
    origin_ns, length_ns = span
    layout, (category_of, categories) = _laid_out(pieces), _categories(pieces)
    names = tuple(name for piece in pieces for name in piece.names)
    count = int(layout.row_at[-1])
    start, dur, name = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int32)
    places: dict[str, Numbers] = {}
    first_name = 0
    for slices in layout.to:
        piece = pieces.pop(0)
        place = np.full(piece.rows, NO_TIE) if piece.table in _TIED else None
        for lane, to in zip(piece.lanes, slices, strict=True):
            np.subtract(piece.start_ns[lane.at], origin_ns - piece.base_ns, out=start[to])
            dur[to] = piece.dur_ns[lane.at]
            np.add(piece.name[lane.at], first_name, out=name[to])
            if place is not None:
                place[piece.row[lane.at]] = np.arange(to.start, to.stop)
                places[piece.table] = place
        first_name += len(piece.names)
    return Lanes(
        origin_ns=origin_ns,
        length_ns=length_ns,
        lanes=layout.lanes,
        row_at=layout.row_at,
        start_ns=start,
        dur_ns=dur,
        name=name,
        tie=_ties(trace, places, count),
        names=names,
        name_category=category_of,
        categories=categories,
        samples=samples,
    )


def _laid_out(pieces: Sequence[Drawn]) -> _Layout:
    every = [(lane.place.order, number, lane) for number, piece in enumerate(pieces) for lane in piece.lanes]
    lanes, counts, to = [], [np.zeros(1, dtype=np.int64)], [[slice(0)] * len(piece.lanes) for piece in pieces]
    first_row = begin = 0
    for _, number, drawn in sorted(every, key=lambda each: each[0]):
        lanes.append(replace(drawn.lane, first_row=first_row))
        counts.append(drawn.counts)
        end = begin + drawn.at.stop - drawn.at.start
        to[number][drawn.number] = slice(begin, end)
        first_row, begin = first_row + drawn.lane.rows, end
    return _Layout(tuple(lanes), np.cumsum(np.concatenate(counts)), to)


def _categories(pieces: Sequence[Drawn]) -> tuple[NDArray[np.int32], tuple[Category, ...]]:
    """The category of each name, and categories with their time."""
    sorts = sorted({sort for piece in pieces for sort in piece.sorts})
    number = {sort: i for i, sort in enumerate(sorts)}
    summed = dict.fromkeys(sorts, 0)
    for piece in pieces:
        for sort, ns in zip(piece.sorts, piece.summed_ns.tolist(), strict=True):
            summed[sort] += ns
    category_of = np.array([number[sort] for piece in pieces for sort in piece.sorts], dtype=np.int32)
    return category_of, tuple(Category(*sort, ns) for sort, ns in summed.items())


def _ties(trace: Trace, places: dict[str, Numbers], count: int) -> Numbers:
    """The place of the host call that queued each of `count` events.

    Args:
        trace: Of which these are events.
        places: Of each row of launches and calls, which event it is, `NO_TIE` where it isn't drawn.
        count: How many events there are.
    """
    tie = np.full(count, NO_TIE)
    if len(places) < len(_TIED):
        return tie
    called = calls_of_launches(trace)
    for batch in batches(len(called)):
        call, of = called[batch], places["launches"][batch]
        known = (call != NO_CALL) & (of != NO_TIE)
        tie[of[known]] = places["calls"][call[known]]
    return tie
