"""Holds a GPU until the host has queued what comes next: spans between events then have no gaps that the host makes.

In eager mode a decoder's step takes the host longer to queue than a fast GPU to do, and a span between two events is
the host's time. So a wait is queued before each stretch of some scopes, twice as long as the host took for the same
stretch in the pass before: while the device waits, the host queues the stretch. A GPU takes about a thousand commands
ahead of time; a stretch is short enough that they all fit.
"""

import time
from math import ceil
from typing import Any

STRETCH = 40
"""Scopes between two waits: of events, marks and kernels, some 12 commands each."""

_CYCLES_A_NS = 2.0  # at most: the wait must not be shorter than asked for
_LEAST_NS, _UNKNOWN_NS, _MOST_NS = 50_000, 5_000_000, 20_000_000
_clock = time.perf_counter_ns


class DeviceHold:
    """The waits of one pass after another, which do the same work.

    Attributes:
        waits: How many were queued since `begin`.
        short: How many were over before the host had queued their stretch: spans in it have gaps.
    """

    def __init__(self, cuda: Any) -> None:
        self._cuda = cuda
        self._host_ns: list[int] = []  # of each stretch, in the pass before
        self._factors: list[int] = []  # of the wait over that
        self._since_ns = 0
        self.begin()

    def begin(self) -> None:
        """A pass begins."""
        self.waits = self.short = 0
        self._scopes = 0  # of the stretch that is open; none is at 0

    def is_due(self) -> bool:
        """Whether a wait belongs before the scope that begins now."""
        if self._scopes % STRETCH == 0:
            return True
        self._scopes += 1
        return False

    def wait(self, last: Any) -> None:
        """Queue a wait for what comes next. `last`: the event that was recorded last, if any."""
        self.end_stretch(last)
        at = self.waits
        self.waits += 1
        if at == len(self._host_ns):
            self._host_ns.append(_UNKNOWN_NS)
            self._factors.append(1)
        wait_ns = min(max(2 * self._host_ns[at] * self._factors[at], _LEAST_NS), _MOST_NS)
        self._cuda._sleep(ceil(wait_ns * _CYCLES_A_NS))
        self._since_ns = _clock()
        self._scopes = 1

    def end_stretch(self, last: Any) -> None:
        """The host has queued a stretch, and the next scope begins one.

        Where the device has done all of it, the host was late: its wait is twice as long from now on. To be called
        before the host waits for the device, after which it would always seem so.
        """
        if not self._scopes:
            return
        self._scopes = 0
        at = self.waits - 1
        self._host_ns[at] = _clock() - self._since_ns
        if last is not None and last.query():
            self.short += 1
            self._factors[at] *= 2
