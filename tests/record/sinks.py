"""A sink that keeps rows in memory."""

import threading
from collections.abc import Callable, Mapping

import polars as pl

from inferometer.record.clock import Clock
from inferometer.trace.builder import TraceBuilder, Values
from inferometer.trace.facts import Facts
from inferometer.trace.trace import Trace


class MemorySink:
    """Keeps all rows; `lost` has what was said, in order."""

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock = Clock.start() if clock is None else clock
        self.facts = Facts(format="recording", source="run", clock_base_ns=self.clock.base_ns)
        self.lost: list[tuple[str, str | None]] = []
        self._builder = TraceBuilder()
        self._lock = threading.Lock()

    def add(self, table: str, rows: int, columns: Mapping[str, Values]) -> None:
        with self._lock:
            self._builder.add(table, rows, columns)

    def change_facts(self, change: Callable[[Facts], Facts]) -> None:
        with self._lock:
            self.facts = change(self.facts)

    def lose(self, name: str, count: int = 1, *, example: str | None = None) -> None:
        with self._lock:
            self.lost.append((name, example))

    def rows(self, table: str) -> pl.DataFrame:
        """A table, in the order in which it was written."""
        return self._builder.frame(table).collect()

    def trace(self) -> Trace:
        return self._builder.finish(self.facts)
