"""The one clock of a recording: ns since its origin, on the clock that all processes of a machine share.

`time.perf_counter_ns` is CLOCK_MONOTONIC on Linux: it never jumps, and it is the same in every process. The origin's
time since 1970 is stored once (`Facts.clock_base_ns`), so that recordings of several machines can be laid together.
"""

import time
from dataclasses import dataclass

monotonic_ns = time.perf_counter_ns


@dataclass(frozen=True)
class Clock:
    """A recording's clock: `origin_ns` on the monotonic clock is 0, and `base_ns` since 1970."""

    origin_ns: int
    base_ns: int

    @classmethod
    def start(cls) -> "Clock":
        """A clock that begins now; of several readings the closest pair ties it to the time since 1970."""
        pairs = [(time.perf_counter_ns(), time.time_ns(), time.perf_counter_ns()) for _ in range(5)]
        before, base, after = min(pairs, key=lambda pair: pair[2] - pair[0])
        return cls((before + after) // 2, base)

    def now(self) -> int:
        """Ns since the origin."""
        return monotonic_ns() - self.origin_ns

    def at(self, monotonic: int) -> int:
        """A reading of the monotonic clock on this one."""
        return monotonic - self.origin_ns
