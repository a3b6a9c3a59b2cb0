"""From the profiler's clock to the recording's: measured in every window by marks of our own.

Kineto makes ns since 1970 of the processor's counter, by a conversion that it fits anew in each profile. A mark is a
range whose begin and end each lie between two readings of our own clock. Every mark bounds the offset; of several marks
the bounds that all allow are kept. Marks at the begin and at the end of a window give the drift between them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Mark:
    """A range `name`: it began between `before` and `entered`, ended between `leaving` and `after`, ns of our clock.

    `group`: marks of one group are so close together that the offset can't change between them.
    """

    name: str
    group: int
    before: int
    entered: int
    leaving: int
    after: int


@dataclass(frozen=True)
class Alignment:
    """What to add to a time of the profiler: `offset_ns` at `at_ns` (of the profiler), and `drift` ns a ns later.

    `error_ns`: half of the width of the bounds, where they are widest. `how`: `marks`; `calls` of the driver within
    them, where no ranges were recorded; or `window`: from the calls that began and ended the profile, since there was
    neither; then the error is about as long as those calls.
    """

    offset_ns: int
    at_ns: int
    drift: float
    error_ns: int
    how: str

    def apply(self, times: Numbers) -> Numbers:
        """Times of the profiler on our clock."""
        late = np.rint((times - self.at_ns) * self.drift).astype(np.int64)
        moved: Numbers = times + self.offset_ns + late
        return moved


@dataclass(frozen=True)
class _Bounds:
    """The offset that the marks of one group allow, around one time of the profiler."""

    low: int
    high: int
    at_ns: int

    @property
    def middle(self) -> int:
        return (self.low + self.high) // 2

    @property
    def error_ns(self) -> int:
        """Half of the width, and 1 ns that rounding takes; also where the bounds contradict each other."""
        return abs(self.high - self.low) // 2 + 1


def align(marks: Sequence[Mark], recorded: Mapping[str, tuple[int, int]], *, how: str = "marks") -> Alignment | None:
    """The alignment that marks give; None when the profiler recorded none of them.

    Args:
        marks: Of one window.
        recorded: Start and end of each range by its name, on the profiler's clock; of those that it has.
        how: What the marks are, for `Alignment.how`.
    """
    groups: dict[int, list[Mark]] = {}
    for mark in marks:
        if mark.name in recorded:
            groups.setdefault(mark.group, []).append(mark)
    if not groups:
        return None
    bounds = [_bounds(of_group, recorded) for _, of_group in sorted(groups.items())]
    first, last = bounds[0], bounds[-1]
    apart = last.at_ns - first.at_ns
    drift = (last.middle - first.middle) / apart if apart > 0 else 0.0
    return Alignment(first.middle, first.at_ns, drift, max(each.error_ns for each in bounds), how)


def _bounds(marks: Sequence[Mark], recorded: Mapping[str, tuple[int, int]]) -> _Bounds:
    lows, highs, times = [], [], []
    for mark in marks:
        start, end = recorded[mark.name]
        lows += [mark.before - start, mark.leaving - end]
        highs += [mark.entered - start, mark.after - end]
        times += [start, end]
    return _Bounds(max(lows), min(highs), sum(times) // len(times))
