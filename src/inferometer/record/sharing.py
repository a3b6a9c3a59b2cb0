"""Several recordings in one process: each has its journal, but ops can be intercepted only once.

So what exists once (the interception, the profiler) writes to a `FanOut`, which hands every row to the journal of each
recording that joined. A recording that begins while another runs takes over its clock, or the rows would have two
times.
"""

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from inferometer.record.clock import Clock

if TYPE_CHECKING:
    from inferometer.record.sink import Sink
    from inferometer.trace.builder import Values
    from inferometer.trace.facts import Facts

    class Journalled(Sink, Protocol):
        """A sink that must be closed."""

        def close(self) -> object:
            """Write what is left."""


Make = Callable[["Sink"], "Recorder"]


class Recorder(Protocol):
    """A part of a recording: the interception, the profiler, the sampler of counters."""

    def start(self) -> object:
        """Begin; raises when it can't."""

    def stop(self) -> object:
        """End and write what is left; twice is no error."""


class FanOut:
    """A sink that hands rows to those that joined; without any they are dropped."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.sinks: tuple[Sink, ...] = ()
        self.watchers: tuple[Sink, ...] = ()  # see the rows, and don't keep the recorder running

    def add(self, table: str, rows: int, columns: "Mapping[str, Values]") -> None:
        """To each."""
        for sink in (*self.watchers, *self.sinks):
            sink.add(table, rows, columns)

    def change_facts(self, change: "Callable[[Facts], Facts]") -> None:
        """To each."""
        for sink in self.sinks:
            sink.change_facts(change)

    def lose(self, name: str, count: int = 1, *, example: str | None = None) -> None:
        """To each."""
        for sink in self.sinks:
            sink.lose(name, count, example=example)


class Shared:
    """What exists once in a process: started for the first recording that joins, stopped with the last."""

    def __init__(self) -> None:
        self.recorder: Recorder | None = None
        self._fan: FanOut | None = None
        self._make: Make | None = None
        self._lock = threading.Lock()

    def join(self, sink: "Sink", make: Make) -> None:
        """Rows go to `sink` too; the first starts what `make` gives. Raises when that can't start."""
        with self._lock:
            if self._fan is not None:
                self._flush()  # what was before isn't for the newcomer
                self._fan.sinks += (sink,)
                return
            fan = FanOut(sink.clock)
            fan.sinks = (sink,)
            recorder = make(fan)
            recorder.start()
            self.recorder, self._fan, self._make = recorder, fan, make

    def leave(self, sink: "Sink") -> None:
        """No more rows to `sink`, once what was recorded for it is written."""
        with self._lock:
            if self._fan is None or sink not in self._fan.sinks:
                return
            others = tuple(each for each in self._fan.sinks if each is not sink)
            if others:
                self._flush()
                self._fan.sinks = others
                return
            recorder, self.recorder = self.recorder, None
            fan, self._fan = self._fan, None
            try:
                if recorder is not None:
                    recorder.stop()
            finally:
                fan.sinks = ()

    def _flush(self) -> None:
        flush = getattr(self.recorder, "flush", None)
        if callable(flush):
            flush()

    def watch(self, watchers: "tuple[Sink, ...]") -> None:
        """Show all rows to these, too."""
        if self._fan is not None:
            self._fan.watchers = watchers

    def abandon(self) -> None:
        """In a forked child: what the parent's half made goes nowhere, and it is not used any more."""
        self._lock = threading.Lock()  # another thread of the parent may have had it
        if self._fan is not None:
            self._fan.sinks = self._fan.watchers = ()
        abandon = getattr(self.recorder, "abandon", None)
        if callable(abandon):
            abandon()
        keep(self.recorder)
        self.recorder = self._fan = None

    def begin_anew(self) -> None:
        """In a forked child: the same for the same sinks, made and started anew."""
        fan, make = self._fan, self._make
        sinks = () if fan is None else fan.sinks
        self.abandon()
        if sinks and make is not None:
            self.join(sinks[0], make)
            for sink in sinks[1:]:
                self.join(sink, make)


class LateSink:
    """A sink that makes its journal at the first row: a forked worker that records nothing leaves no file.

    It can be pointed at a new journal (`renew`), which a forked child must: the parent goes on writing to the old one.
    """

    def __init__(self, clock: Clock, make: "Callable[[], Journalled]") -> None:
        self.clock = clock
        self._make = make
        self._journal: Journalled | None = None
        self._closed = False
        self.ops = 0  # rows of the table so far
        self._lock = threading.RLock()

    def open(self) -> "Journalled | None":
        """The journal; None once it was closed."""
        if self._journal is None and not self._closed:
            with self._lock:
                self._make_once()
        return self._journal

    def _make_once(self) -> None:
        if self._journal is None and not self._closed:
            self._journal = self._make()

    def add(self, table: str, rows: int, columns: "Mapping[str, Values]") -> None:
        """As `Sink.add`; rows that come after the end are dropped."""
        if rows and (journal := self.open()) is not None:
            journal.add(table, rows, columns)
            self.ops += rows if table == "ops" else 0

    def change_facts(self, change: "Callable[[Facts], Facts]") -> None:
        """As `Sink.change_facts`."""
        if (journal := self._journal) is not None:
            journal.change_facts(change)

    def lose(self, name: str, count: int = 1, *, example: str | None = None) -> None:
        """As `Sink.lose`."""
        if (journal := self._journal) is not None:
            journal.lose(name, count, example=example)

    def renew(self, make: "Callable[[], Journalled]") -> None:
        """Forget the journal without closing it, and make another one at the next row."""
        keep(self._journal)
        self.ops = 0
        self._journal, self._make, self._lock = None, make, threading.RLock()

    def close(self) -> bool:
        """Close the journal, if any row came; whether one was made."""
        with self._lock:
            self._closed = True
            journal, self._journal = self._journal, None
        if journal is not None:
            journal.close()
        return journal is not None


def keep(abandoned: object) -> None:
    """In a forked child: hold on to something of the parent's that must not be ended here."""
    _ABANDONED.append(abandoned)


_ABANDONED: list[object] = []  # kept, so that no finalizer of the parent's objects runs in a child
