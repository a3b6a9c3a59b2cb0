"""What the times of packets mean: each is on a clock, and snapshots say what other clocks showed at the same time.

Source: Perfetto's documentation, "Synchronization of multiple clock domains". Clocks 64 to 127 belong to a sequence of
packets; one of them may count from packet to packet, in units of its own. Times are converted by the latest snapshot
before them in the file; drift between two snapshots stays in them.
"""

from dataclasses import dataclass
from typing import Any

_REALTIME, _BOOTTIME = 1, 6
_OF_SEQUENCE = range(64, 128)


@dataclass
class OwnClock:
    """A clock of a sequence. `now_ns`: its last time, which the next one adds to where it is incremental."""

    now_ns: int
    unit_ns: int
    is_incremental: bool
    offset_ns: int | None


class Clocks:
    """Times of packets on the trace's clock. `coarsest_ns`: the largest unit of a clock of the file."""

    def __init__(self) -> None:
        self.base_ns: int | None = None
        self.coarsest_ns = 1
        self._trace: int | None = None
        self._offsets: dict[int, int] = {}

    def take(self, snapshot: Any, own: dict[int, OwnClock]) -> None:
        """A snapshot; `own` are the clocks of the sequence that it is of."""
        if self._trace is None:
            self._trace = snapshot.primary_trace_clock or _BOOTTIME
            self._offsets[self._trace] = 0
        times = {each.clock_id: each.timestamp * (each.unit_multiplier_ns or 1) for each in snapshot.clocks}
        now = self._now(times, own)
        for each in snapshot.clocks:
            offset = None if now is None else now - times[each.clock_id]
            if each.clock_id in _OF_SEQUENCE:
                unit = each.unit_multiplier_ns or 1
                own[each.clock_id] = OwnClock(times[each.clock_id], unit, each.is_incremental, offset)
                self.coarsest_ns = max(self.coarsest_ns, unit)
            elif offset is not None and each.clock_id != self._trace:
                self._offsets[each.clock_id] = offset
        if self.base_ns is None and now is not None and _REALTIME in times:
            self.base_ns = times[_REALTIME] - now

    def _now(self, times: dict[int, int], own: dict[int, OwnClock]) -> int | None:
        """When the snapshot was taken, by whichever of its clocks is known."""
        if self._trace in times:
            return times[self._trace]
        known = (times[clock] + self._offsets[clock] for clock in times if clock in self._offsets)
        mine = (
            times[clock] + each.offset_ns
            for clock, each in own.items()
            if clock in times and each.offset_ns is not None and not each.is_incremental
        )
        return next(known, next(mine, None))

    def time(self, timestamp: int, clock: int, own: dict[int, OwnClock]) -> int | None:
        """A packet's time; None on a clock that no snapshot ties to the trace's."""
        if clock in _OF_SEQUENCE:
            mine = own.get(clock)
            if mine is None:
                return None
            ns = timestamp * mine.unit_ns
            if mine.is_incremental:
                ns = mine.now_ns = mine.now_ns + ns
            return None if mine.offset_ns is None else ns + mine.offset_ns
        clock = clock or _BOOTTIME
        if self._trace is None:
            self._trace = clock
            self._offsets[clock] = 0
        offset = self._offsets.get(clock)
        return None if offset is None else timestamp + offset
