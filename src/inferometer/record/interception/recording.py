"""The state of one interception: its lanes, one per thread, and how their rows go to the sink.

A lane's rows are handed over by its own thread about twice a second, between two ops; those of a thread that has come
to rest by a thread of ours, so that what a killed process has lost is half a second's.
"""

import os
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import polars as pl

from inferometer.record.interception.lanes import OP_FIELDS, RANGE_FIELDS, ThreadRows, take
from inferometer.record.interception.signatures import Texts
from inferometer.record.sink import Sink
from inferometer.trace.facts import Facts

FLUSH_NS = 500_000_000
FLUSH_ROWS = 4_096
DOMAIN = "modules"
CPU_NOTE = (
    "Ops that compute on the CPU count as launches of the device `cpu`: no kernel below them was recorded, and their "
    "times are those of the op, with about 2 µs of the interception in each."
)
_clock = time.perf_counter_ns


class Recording:
    """Lanes of one interception, and the way of their rows. `mode` is set by who makes it."""

    mode: Any

    def __init__(self, sink: Sink, *, stacks: bool, cpu_launches: bool) -> None:
        self.sink = sink
        self.stacks = stacks
        self.cpu_launches = cpu_launches
        self.is_active = False
        self.local = threading.local()
        self._lanes: list[ThreadRows] = []
        self._lock = threading.RLock()
        self._next_id = 1
        self._host = socket.gethostname()
        self._is_noted = False

    def lane(self) -> ThreadRows:
        """This thread's."""
        try:
            return self.local.lane  # type: ignore[no-any-return]
        except AttributeError:
            lane = self.local.lane = ThreadRows(threading.get_native_id())
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

    def _hand_over(self, lane: ThreadRows) -> None:
        where = {"process": os.getpid(), "thread": lane.thread}
        ops, frames, modules = (
            take(lane.ops, OP_FIELDS),
            take(lane.frames, RANGE_FIELDS),
            take(lane.modules, RANGE_FIELDS),
        )
        if ops[0]:
            self._hand_over_ops(ops, where)
        for table, name, of, (texts, starts, ends) in (
            ("frames", "frame", {}, frames),
            ("spans", "span", {"domain": DOMAIN}, modules),
        ):
            if texts:
                columns = {name: pl.Series(texts, dtype=pl.String), **of, **where, **self._times(starts, ends)}
                self.sink.add(table, len(texts), columns)

    def _hand_over_ops(self, ops: list[list[Any]], where: dict[str, int]) -> None:
        starts, ends, signatures, works = ops
        place: dict[Any, int] = {}
        rows = pl.Series([place.setdefault(each, len(place)) for each in signatures], dtype=pl.UInt32)
        names = pl.Series([each.overload.op for each in place], dtype=pl.String).gather(rows)
        texts = zip(*(each.texts for each in place), strict=True)
        arguments = {
            column: pl.Series(of, dtype=pl.String).gather(rows) for column, of in zip(Texts._fields, texts, strict=True)
        }
        with self._lock:
            first, self._next_id = self._next_id, self._next_id + len(starts)
        ids = np.arange(first, first + len(starts), dtype=np.int64)
        times = self._times(starts, ends)
        self.sink.add("ops", len(starts), {"op": names, **where, **times, "external_id": ids, **arguments})
        if any(works):
            self._launch(np.flatnonzero(np.array(works, dtype=np.bool_)), names, ids, where, times)

    def _launch(self, rows: Any, names: pl.Series, ids: Any, where: dict[str, int], times: dict[str, Any]) -> None:
        self.sink.add(
            "launches",
            len(rows),
            {
                "kind": "kernel",
                "kernel": names.gather(rows),
                "device": "cpu",
                "stream": where["thread"],
                "host": self._host,
                "process": where["process"],
                "external_id": ids[rows],
                **{name: of[rows] for name, of in times.items()},
            },
        )
        if not self._is_noted:
            self._is_noted = True
            self.sink.tell(with_note(CPU_NOTE))

    def _times(self, starts: list[int], ends: list[int]) -> dict[str, Any]:
        start_ns, end_ns = np.array(starts, dtype=np.int64), np.array(ends, dtype=np.int64)
        return {"start_ns": start_ns - self.sink.clock.origin_ns, "dur_ns": end_ns - start_ns}


def with_note(note: str) -> Callable[[Facts], Facts]:
    """A change of facts: this note, where it isn't there yet."""
    return lambda facts: facts if note in facts.notes else msgspec.structs.replace(facts, notes=(*facts.notes, note))
