"""The state of one interception: its lanes, one per thread, and how their rows go to the sink.

A lane's rows are handed over by its own thread about twice a second, between two ops; those of a thread that has come
to rest by a thread of ours, so that what a killed process has lost is half a second's.
"""

import threading
import time
from typing import Any

import numpy as np

from inferometer.record.cupti_threads import remember_thread
from inferometer.record.interception.handover import Handover
from inferometer.record.interception.lanes import OP_FIELDS, RANGE_FIELDS, ThreadRows, take
from inferometer.record.interception.signatures import Signature
from inferometer.record.sink import Sink

FLUSH_NS = 500_000_000
FLUSH_ROWS = 4_096
_OWN_COST = "about 2 µs"  # an `aten::relu` of four numbers is recorded with 2.5 µs, by the observer with 1
_clock = time.perf_counter_ns


class Recording:
    """Lanes of one interception, and the way of their rows. `mode` is set by who makes it."""

    mode: Any

    def __init__(self, sink: Sink, *, stacks: bool, cpu_launches: bool) -> None:
        self.sink = sink
        self.stacks = stacks
        self.cpu_launches = cpu_launches
        self.is_active = False
        self.is_seeing = False  # not between `pause` and `resume`
        self.local = threading.local()
        self._lanes: list[ThreadRows] = []
        self._lock = threading.RLock()
        self._rows = Handover(sink, _OWN_COST)

    def lane(self) -> ThreadRows:
        """This thread's."""
        try:
            return self.local.lane  # type: ignore[no-any-return]
        except AttributeError:
            lane = self.local.lane = ThreadRows(remember_thread())
            lane.due_ns = lane.split_ns = _clock() + FLUSH_NS
            with self._lock:
                self._lanes.append(lane)
            return lane

    def at_rest(self, lane: ThreadRows, now_ns: int) -> None:
        """No module is open on this thread: long ranges of functions around may be cut here, and handed over."""
        lane.close_frames()
        lane.split_ns = now_ns + FLUSH_NS

    def cut(self) -> None:
        """A step begins or ends on this thread: functions around it get a range on either side."""
        lane: ThreadRows | None = getattr(self.local, "lane", None)
        if lane is not None and not lane.levels:
            lane.close_frames()

    def end_region(self, signature: Signature, start_ns: int, *, is_on_cpu: bool) -> None:
        """What ran on this thread from `start_ns` on, which is no op: device work where no op ran in it, on a CPU."""
        lane = self.lane()
        is_leaf = lane.last_ns < start_ns
        lane.last_ns = end_ns = _clock()
        lane.ops += (start_ns, end_ns, signature, is_leaf and is_on_cpu and self.cpu_launches)

    def flush(self, lane: ThreadRows) -> None:
        """Hand over what a lane has."""
        with lane.lock:
            lane.due_ns = _clock() + FLUSH_NS
            try:
                self._hand_over(lane)
            except Exception as error:  # noqa: BLE001  # the user's program goes on, whatever became of the rows
                self.sink.lose("unreadable_row", 1, example=f"{type(error).__name__}: {error}")

    def flush_here(self, lane: ThreadRows) -> None:
        """Hand over what this thread has, between two ops of its."""
        if not lane.levels:
            lane.close_frames()
        self.flush(lane)

    def flush_idle(self) -> None:
        """Hand over what threads have left that run no ops now."""
        for lane in self.lanes():
            if lane.due_ns < _clock() and lane.rows():
                self.flush(lane)

    def lanes(self) -> list[ThreadRows]:
        """All of them, as they are now."""
        with self._lock:
            return list(self._lanes)

    def finish_thread(self) -> None:
        """This thread ends: close and hand over what it has."""
        lane: ThreadRows | None = getattr(self.local, "lane", None)
        if lane is not None:
            self.finish(lane)
            del self.local.lane

    def finish(self, lane: ThreadRows) -> None:
        """Close what is open on a lane, and forget it."""
        while lane.levels:
            lane.leave(_clock())
        lane.close_frames()
        self.flush(lane)
        with self._lock:
            self._lanes = [each for each in self._lanes if each is not lane]

    def forget(self) -> None:
        """In a forked child: what waits is the parent's."""
        self.local = threading.local()
        self._lock = threading.RLock()
        self._lanes = []
        self._rows.forget_lock()

    def _hand_over(self, lane: ThreadRows) -> None:
        starts, ends, signatures, works = take(lane.ops, OP_FIELDS)
        if starts:
            place: dict[Any, int] = {}
            rows = [place.setdefault(each, len(place)) for each in signatures]
            self._rows.add_ops(lane.thread, (starts, ends), list(place), rows, np.array(works, dtype=np.bool_))
        names, *times = take(lane.frames, RANGE_FIELDS)
        self._rows.add_frames(lane.thread, names, (times[0], times[1]))
        texts, *times = take(lane.modules, RANGE_FIELDS)
        self._rows.add_modules(lane.thread, texts, (times[0], times[1]))
