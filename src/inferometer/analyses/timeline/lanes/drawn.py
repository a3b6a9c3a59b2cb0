"""The events of one table as they are drawn: by lane, row and start."""

from collections.abc import Sequence
from typing import TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from inferometer.analyses.nesting import order_ranges
from inferometer.analyses.numbering import order_by, sum_by
from inferometer.analyses.timeline.lanes.categories import Sort
from inferometer.analyses.timeline.lanes.events import Lane, Numbers
from inferometer.analyses.timeline.lanes.rows import MOST_ROWS, stack_rows
from inferometer.analyses.timeline.lanes.sources import Piece, Place

_Number = TypeVar("_Number", np.int64, np.int32)
_LARGE_NS = 2**62  # sums of smaller times are exact


class DrawnLane(msgspec.Struct, frozen=True, eq=False):
    """One lane of a piece.

    Attributes:
        number: Which one.
        place: Where it is.
        lane: The same as a line of the picture whose first row is 0.
        counts: How many events each row has.
        at: Which of the piece's events are its.
    """

    number: int
    place: Place
    lane: Lane
    counts: Numbers
    at: slice


class Drawn(msgspec.Struct, frozen=True, eq=False):
    """A piece's events by lane, row and start, but for those that lie too deep.

    Attributes:
        table: What they are rows of,
        rows: and how many there are.
        names: What they are called.
        sorts: Of each name.
        summed_ns: Time of all events of each name, whether they are drawn or not.
        bounds_ns: Of `bounds_of`.
        lanes: One for each place.
        row: The table's row of each event. Shape (n,), as the next three.
        base_ns: What starts count from, on the trace's clock.
        start_ns: From there.
        dur_ns: At least 0.
        name: A place in `names`.
    """

    table: str
    rows: int
    names: Sequence[str]
    sorts: Sequence[Sort]
    summed_ns: Numbers
    bounds_ns: tuple[int, int]
    lanes: Sequence[DrawnLane]
    row: Numbers
    base_ns: int
    start_ns: Numbers
    dur_ns: Numbers
    name: NDArray[np.int32]


def draw(piece: Piece) -> Drawn:
    """Order the events of a piece, which has at least one, and is shorter than `LONGEST_NS`."""
    bounds = bounds_of(piece)
    base_ns = bounds[0] if bounds[1] >= _LARGE_NS else 0
    starts = piece.start_ns - base_ns if base_ns else piece.start_ns
    dur = piece.dur_ns if (piece.dur_ns >= 0).all() else np.maximum(piece.dur_ns, 0)
    order = order_ranges(piece.lane, starts, starts + dur)
    edges = np.searchsorted(piece.lane[order], np.arange(len(piece.places) + 1)).tolist()
    start, dur_in_order = _take(starts, order), _take(dur, order)
    lanes, kept, count = [], [], 0
    for number, place in enumerate(piece.places):
        begin, end = edges[number : number + 2]
        row = stack_rows(start[begin:end], dur_in_order[begin:end])
        rows = min(int(row.max()) + 1, MOST_ROWS)
        counts = np.bincount(row, minlength=rows)
        deeper, deeper_ns = int(counts[rows:].sum()), int(dur_in_order[begin:end][row >= rows].sum())
        by_row = np.arange(end - begin) if len(counts) == 1 else order_by(row)[: end - begin - deeper]
        kept.append(begin + by_row)
        lane = Lane(place.group, place.kind, place.name, 0, rows, deeper, deeper_ns)
        lanes.append(DrawnLane(number, place, lane, counts[:rows], slice(count, count := count + len(by_row))))
    order = _take(order, np.concatenate(kept))
    return Drawn(
        table=piece.table,
        rows=len(piece.lane),
        names=piece.names,
        sorts=piece.sorts,
        summed_ns=sum_by(piece.code, dur, len(piece.names)),
        bounds_ns=bounds,
        lanes=lanes,
        row=order,
        base_ns=base_ns,
        start_ns=_take(starts, order),
        dur_ns=_take(dur, order),
        name=_take(piece.code.astype(np.int32), order),
    )


def bounds_of(piece: Piece) -> tuple[int, int]:
    """Its first start, and a time that no end is behind; whole numbers of any size."""
    first, last = int(piece.start_ns.min()), int(piece.start_ns.max())
    longest = int(piece.dur_ns.max())
    exact = last + longest < _LARGE_NS
    return first, int((piece.start_ns + piece.dur_ns).max()) if exact else last + longest


def _take(values: NDArray[_Number], places: Numbers) -> NDArray[_Number]:
    """The values at these places, all of them as they are where that is what it comes to."""
    is_same = len(values) == len(places) and bool((places[1:] > places[:-1]).all())
    return values if is_same else values[places]
