"""Begin and end events (B, E) to complete ones: matched as a stack on each thread, in time order.

They are held back until the whole file was read, since files need not be sorted. At one time stamp the file's order
decides.
"""

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
from msgspec import Raw

from inferometer.formats.kineto.decimals import OUT_OF_RANGE, UNREADABLE
from inferometer.formats.kineto.events import Event
from inferometer.formats.kineto.numbers import parse_ns
from inferometer.trace.losses import Losses


class Pairs(msgspec.Struct):
    """Collects B and E events of a file: all of them, since an E needn't say what it ends.

    Losses are counted only in the categories that `reads` says are read.
    """

    losses: Losses
    reads: Callable[[str], bool] = msgspec.field(default=lambda category: True)
    events: list[Event] = msgspec.field(default_factory=list)

    def add(self, events: list[Event]) -> None:
        """Take events of phase B or E, in the file's order."""
        self.events += events

    def complete(self) -> list[Event]:
        """Complete events (X) in order of their beginnings; those without a partner are counted."""
        if not self.events:
            return []
        events, self.events = self.events, []
        starts_ns, states = parse_ns([event.ts for event in events])
        self._count_untimed(events, states)
        open_by_thread: dict[tuple[Any, Any], list[int]] = {}
        done: list[tuple[int, Event]] = []
        for i in np.argsort(starts_ns, kind="stable").tolist():
            event = events[i]
            if states[i]:
                continue
            stack = open_by_thread.setdefault((event.pid, event.tid), [])
            if event.ph == "B":
                stack.append(i)
            elif stack:
                begin = stack.pop()
                self._count("end_event", event)
                done.append((begin, _joined(events[begin], int(starts_ns[i] - starts_ns[begin]))))
            else:
                self._count("end_without_begin", event)
        for stack in open_by_thread.values():
            for i in stack:
                self._count("begin_without_end", events[i])
        return [event for _, event in sorted(done, key=lambda pair: pair[0])]

    def _count_untimed(self, events: list[Event], states: np.ndarray[Any, Any]) -> None:
        for i in np.flatnonzero(states).tolist():
            name = {UNREADABLE: "without_timestamp", OUT_OF_RANGE: "time_out_of_range"}[int(states[i])]
            self._count(name, events[i])

    def _count(self, name: str, event: Event) -> None:
        if self.reads(event.cat):
            self.losses.count(name, category=event.category, example=event.name)


def _joined(begin: Event, dur_ns: int) -> Event:
    text = f"{dur_ns // 1000}.{dur_ns % 1000:03}".encode()
    return Event("X", begin.cat, begin.name, begin.pid, begin.tid, begin.ts, Raw(text), begin.args)
