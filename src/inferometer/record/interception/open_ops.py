"""Which intercepted op was open on a thread at a moment: what ties a launch to it, without a look at the disk.

The interception adds its ops in batches; of each thread the latest are kept, at most `MOST`, which at 25,000 ops a
second is 10 s. Ops nest on their thread, so the innermost open one is the one that began last.
"""

import threading
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from inferometer.analyses.nesting import find_innermost

MOST = 1 << 18  # of one thread; 6 MiB
NONE = -1

Numbers = NDArray[np.int64]


@dataclass
class _Lane:
    """The latest ops of one thread, in batches: starts, ends, ids."""

    batches: deque[tuple[Numbers, Numbers, Numbers]] = field(default_factory=deque)
    held: int = 0


class OpenOps:
    """The ops of the last seconds by thread. Times are ns on the recording's clock.

    Args:
        settle: Called before an answer: it adds what the interception still holds back. It may be set later.
    """

    def __init__(self, settle: Callable[[], None] | None = None) -> None:
        self.settle = settle
        self._lanes: defaultdict[int, _Lane] = defaultdict(_Lane)
        self._lock = threading.Lock()

    def add(self, thread: int, starts: ArrayLike, ends: ArrayLike, ids: ArrayLike) -> None:
        """Ops of one thread that have ended, in any order: when each began and ended, and its `external_id`."""
        batch = tuple(np.array(each, dtype=np.int64) for each in (starts, ends, ids))
        with self._lock:
            lane = self._lanes[thread]
            lane.batches.append((batch[0], batch[1], batch[2]))
            lane.held += len(batch[0])
            while lane.held > MOST and len(lane.batches) > 1:
                lane.held -= len(lane.batches.popleft()[0])

    def find(self, threads: ArrayLike, times: ArrayLike) -> Numbers:
        """The id of the innermost op open at each moment on its thread; `NONE` where there was none. Shape (n,)."""
        self._settle()
        at_threads, at_times = np.asarray(threads, dtype=np.int64), np.asarray(times, dtype=np.int64)
        lanes, starts, ends, ids = self._all(np.unique(at_threads))
        if not len(starts):
            return np.full(len(at_times), NONE, dtype=np.int64)
        found = find_innermost(lanes, starts, ends, at_threads, at_times)
        return np.where(found < 0, NONE, ids[found])

    def overlaps(self, threads: ArrayLike, starts: ArrayLike, ends: ArrayLike) -> NDArray[np.bool_]:
        """Whether any op was open on the thread between start and end: such work was intercepted. Shape (n,)."""
        self._settle()
        on, begins, stops = (np.asarray(each, dtype=np.int64) for each in (threads, starts, ends))
        answer = np.zeros(len(on), dtype=np.bool_)
        for thread in np.unique(on).tolist():
            rows = np.flatnonzero(on == thread)
            _, op_starts, op_ends, _ = self._all(np.array([thread]))
            order = np.argsort(op_starts)
            latest_end = np.maximum.accumulate(op_ends[order])
            before = np.searchsorted(op_starts[order], stops[rows], side="left") - 1
            had = before >= 0
            answer[rows[had]] = latest_end[before[had]] > begins[rows[had]]
        return answer

    def _settle(self) -> None:
        if self.settle is not None:
            self.settle()

    def _all(self, threads: Numbers) -> tuple[Numbers, Numbers, Numbers, Numbers]:
        """Thread, start, end and id of every op held of these threads."""
        parts: list[tuple[Numbers, ...]] = []
        with self._lock:
            for thread in threads.tolist():
                for starts, ends, ids in self._lanes[thread].batches if thread in self._lanes else ():
                    parts.append((np.full(len(starts), thread, dtype=np.int64), starts, ends, ids))
        nothing = np.empty(0, dtype=np.int64)
        columns = [np.concatenate(each) for each in zip(*parts, strict=True)] if parts else [nothing] * 4
        return columns[0], columns[1], columns[2], columns[3]
