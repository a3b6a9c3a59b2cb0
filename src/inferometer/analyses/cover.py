"""Sets of times: which nanoseconds are covered by at least one interval, and how many of them lie in a window."""

from typing import Self

import msgspec
import numpy as np

from inferometer.analyses.intervals import Times, merge


class Cover(msgspec.Struct, frozen=True):
    """Disjoint intervals in order of time, ends exclusive. Those that touch are one."""

    start_ns: Times
    end_ns: Times

    @classmethod
    def of(cls, start_ns: Times, end_ns: Times) -> Self:
        """The union of intervals given in any order. Shape (n,) each; an empty interval covers nothing."""
        is_real = end_ns > start_ns
        if is_real.all() and (start_ns[1:] >= start_ns[:-1]).all():
            return cls(*merge(start_ns, end_ns))
        real = np.flatnonzero(is_real)
        order = real[np.argsort(start_ns[real], kind="stable")]
        return cls(*merge(start_ns[order], end_ns[order]))

    def before(self, time_ns: Times) -> Times:
        """Covered time before each moment, ns."""
        last = np.searchsorted(self.start_ns, time_ns, side="right") - 1  # the interval begun last
        if not len(self.start_ns):
            return np.zeros(len(last), dtype=np.int64)
        covered = self.end_ns - self.start_ns
        np.cumsum(covered, out=covered)
        left = np.maximum(self.end_ns[last] - time_ns, 0)  # what it still has to go
        return np.where(last >= 0, covered[last] - left, 0)

    def within(self, first_ns: Times, last_ns: Times) -> Times:
        """Covered time in each window [first, last), ns."""
        return self.before(last_ns) - self.before(first_ns)
