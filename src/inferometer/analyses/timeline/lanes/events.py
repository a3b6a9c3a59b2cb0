"""The model of a time line: lanes, their rows, and the events on them, as columns. Times count from `origin_ns`."""

import msgspec
import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]

NO_TIE = -1
LONGEST_NS = 2**53
"""What a number of a browser holds exactly; 104 days."""

KINDS = ("step", "stream", "device_range", "range", "frame", "op", "call", "system")
"""What a lane holds, in the order in which lanes of one device or thread stand."""


class Lane(msgspec.Struct, frozen=True):
    """One line of the picture: a stream, or what one sort of thing did on a thread.

    Attributes:
        group: The device or thread that it is drawn with.
        kind: One of `KINDS`.
        name: Its name within the group.
        first_row: Number of its first row; the rows of a lane follow each other.
        rows: How many rows it takes for events not to overlap.
        deeper: Events that would need more rows than are drawn: they are on none.
        deeper_ns: Their summed time.
    """

    group: str
    kind: str
    name: str
    first_row: int
    rows: int
    deeper: int = 0
    deeper_ns: int = 0


class Category(msgspec.Struct, frozen=True):
    """A sort of events, such as a family of kernels; `noun` is what one of them is called."""

    name: str
    noun: str
    summed_ns: int = 0


class Samples(msgspec.Struct, frozen=True, eq=False):
    """One counter: `time_ns` from the origin, in order; a value that is no number is left out."""

    group: str
    name: str
    unit: str
    time_ns: Numbers
    value: NDArray[np.float64]


class Lanes(msgspec.Struct, frozen=True, eq=False):
    """All events, by row and start; on one row none overlaps another.

    Attributes:
        origin_ns: The trace's earliest time, on its clock.
        length_ns: From there to its latest end.
        lanes: In the order of the picture.
        row_at: Where the events of each row begin, and behind the last their number. Shape (rows + 1,).
        start_ns: Shape (events,), as the next three; counts from `origin_ns`.
        dur_ns: 0 for an instant.
        name: Places in `names`.
        tie: The event of the host call that queued this one, `NO_TIE` where there is none.
        names: What events are called, and `name_category`, the place of each in `categories`.
        categories: Sorts of events.
        samples: Counters.
    """

    origin_ns: int
    length_ns: int
    lanes: tuple[Lane, ...]
    row_at: Numbers
    start_ns: Numbers
    dur_ns: Numbers
    name: NDArray[np.int32]
    tie: Numbers
    names: tuple[str, ...]
    name_category: NDArray[np.int32]
    categories: tuple[Category, ...]
    samples: tuple[Samples, ...] = msgspec.field(default=())

    @property
    def row_lane(self) -> Numbers:
        """The lane of each row."""
        return np.repeat(np.arange(len(self.lanes)), [lane.rows for lane in self.lanes])

    @property
    def event_row(self) -> Numbers:
        """The row of each event."""
        return np.repeat(np.arange(len(self.row_at) - 1), np.diff(self.row_at))
