"""The time line of a trace: from its tables to lanes."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from inferometer.analyses.correlation import CALL_KEY, NO_CALL, find_calls
from inferometer.analyses.nesting import order_ranges
from inferometer.analyses.numbering import order_by, sum_by
from inferometer.analyses.timeline.lanes.events import LONGEST_NS, NO_TIE, Category, Lane, Lanes, Numbers, Samples
from inferometer.analyses.timeline.lanes.rows import MOST_ROWS, stack_rows
from inferometer.analyses.timeline.lanes.samples import find_samples
from inferometer.analyses.timeline.lanes.sources import Piece, Place, find_pieces
from inferometer.trace.trace import Trace

_Number = TypeVar("_Number", np.int64, np.int32)
_Named = tuple[tuple[str, ...], NDArray[np.int32], tuple[Category, ...], NDArray[np.int32]]


def find_lanes(trace: Trace, steps: pl.DataFrame | None = None) -> Lanes | None:
    """All that the trace says of when what ran; None where nothing has a time, or times lie `LONGEST_NS` apart.

    Args:
        trace: The recording. Tables that were not read have no lanes.
        steps: `step`, `phase`, `start_ns` and `wall_ns` of its steps, on the trace's clock.
    """
    pieces = [*find_pieces(trace, steps)]
    bounds = [*map(_bounds, pieces)]
    samples = find_samples(trace, 0)
    bounds += [(int(each.time_ns[0]), int(each.time_ns[-1])) for each in samples]
    window = trace.window()
    if not bounds or window is None:
        return None
    first_ns, last_ns = min(first for first, _ in bounds), max(last for _, last in bounds)
    origin_ns = min(window[0], first_ns)
    if last_ns - origin_ns >= LONGEST_NS:
        return None
    moved = tuple(replace(each, time_ns=each.time_ns - origin_ns) for each in samples)
    return _arranged(trace, pieces, (origin_ns, last_ns - origin_ns), moved)


def _bounds(piece: Piece) -> tuple[int, int]:
    """Its first start and a time that no end is behind, as whole numbers of any size."""
    first, last = int(piece.start_ns.min()), int(piece.start_ns.max())
    longest = int(piece.dur_ns.max())
    exact = last + longest < 2**62
    return first, int((piece.start_ns + piece.dur_ns).max()) if exact else last + longest


def _arranged(trace: Trace, pieces: Sequence[Piece], span: tuple[int, int], samples: tuple[Samples, ...]) -> Lanes:
    origin_ns, length_ns = span
    places = [place for piece in pieces for place in piece.places]
    rank_of = np.empty(len(places), dtype=np.int64)
    in_order = sorted(range(len(places)), key=lambda i: places[i].order)
    rank_of[in_order] = np.arange(len(places))
    offsets = np.cumsum([0, *(len(piece.places) for piece in pieces)])
    rank_of = rank_of.astype(np.int32)
    lane = _joined([rank_of[piece.lane + offset] for piece, offset in zip(pieces, offsets, strict=False)])
    start = _joined([piece.start_ns for piece in pieces]) - origin_ns
    dur = _joined([piece.dur_ns for piece in pieces])
    dur = dur if (dur >= 0).all() else np.maximum(dur, 0)
    names, category_of, categories, name = _names(pieces, dur)

    order = order_ranges(lane, start, start + dur)
    lanes, row, is_drawn = _rows([places[i] for i in in_order], lane[order], start[order], dur[order])
    if not is_drawn.all():
        order, row = order[is_drawn], row[is_drawn]
    if not (row[1:] >= row[:-1]).all():
        by_row = order_by(row)
        order, row = order[by_row], row[by_row]
    rows = sum(each.rows for each in lanes)
    return Lanes(
        origin_ns=origin_ns,
        length_ns=length_ns,
        lanes=tuple(lanes),
        row_at=np.searchsorted(row, np.arange(rows + 1)),
        start_ns=start[order],
        dur_ns=dur[order],
        name=name[order],
        tie=_ties(trace, pieces, order),
        names=names,
        name_category=category_of,
        categories=categories,
        samples=samples,
    )


def _rows(
    places: Sequence[Place], lane: Numbers, start: Numbers, dur: Numbers
) -> tuple[list[Lane], Numbers, NDArray[np.bool_]]:
    """The lanes with their rows, the row of each event over all lanes, and whether it has one."""
    edges = np.searchsorted(lane, np.arange(len(places) + 1))
    row = np.empty(len(lane), dtype=np.int64)
    is_drawn = np.ones(len(lane), dtype=bool)
    lanes: list[Lane] = []
    first_row = 0
    for place, begin, end in zip(places, edges[:-1], edges[1:], strict=True):
        own = stack_rows(start[begin:end], dur[begin:end])
        is_deep = own >= MOST_ROWS
        rows = min(int(own.max()) + 1, MOST_ROWS)
        deeper_ns = int(dur[begin:end][is_deep].sum())
        lanes.append(Lane(place.group, place.kind, place.name, first_row, rows, int(is_deep.sum()), deeper_ns))
        row[begin:end] = own + first_row
        is_drawn[begin:end] = ~is_deep
        first_row += rows
    return lanes, row, is_drawn


def _names(pieces: Sequence[Piece], dur: Numbers) -> "_Named":
    """Names, the category of each, categories with their time, and the name of each event."""
    sorts = sorted({sort for piece in pieces for sort in piece.sorts})
    number = {sort: i for i, sort in enumerate(sorts)}
    names = tuple(name for piece in pieces for name in piece.names)
    category_of = np.array([number[sort] for piece in pieces for sort in piece.sorts], dtype=np.int32)
    offsets = np.cumsum([0, *(len(piece.names) for piece in pieces)])
    name = _joined([(piece.code + offset).astype(np.int32) for piece, offset in zip(pieces, offsets, strict=False)])
    sums = sum_by(category_of[name], dur, len(sorts)).tolist()
    return names, category_of, tuple(Category(*sort, ns) for sort, ns in zip(sorts, sums, strict=True)), name


def _ties(trace: Trace, pieces: Sequence[Piece], order: Numbers) -> Numbers:
    """The place of the host call that queued each event, in the order of the events."""
    tie = np.full(len(order), NO_TIE, dtype=np.int64)
    begin = dict(zip([piece.table for piece in pieces], np.cumsum([0, *(len(p.lane) for p in pieces)]), strict=False))
    if "launches" not in begin or "calls" not in begin:
        return tie
    launches = trace.launches.select(CALL_KEY).collect()
    calls = trace.calls.select(*CALL_KEY, "start_ns").collect()
    called = find_calls(launches, calls)
    size = max(int(order.max()) + 1, begin["calls"] + calls.height, begin["launches"] + launches.height)
    place = np.full(size, NO_TIE, dtype=np.int64)
    place[order] = np.arange(len(order))
    known = np.flatnonzero(called != NO_CALL)
    of = place[begin["launches"] + known]
    to = place[begin["calls"] + called[known]]
    both = (of != NO_TIE) & (to != NO_TIE)
    tie[of[both]] = to[both]
    return tie


def _joined(parts: Sequence[NDArray[_Number]]) -> NDArray[_Number]:
    if not parts:  # a trace of counters alone
        return np.zeros(0, dtype=np.int64)
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
