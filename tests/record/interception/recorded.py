"""A sink for tests of the interception: the rows as a trace."""

import threading
from collections.abc import Callable, Mapping

import polars as pl

from inferometer.record.clock import Clock
from inferometer.trace.builder import TraceBuilder, Values
from inferometer.trace.facts import Facts
from inferometer.trace.trace import Trace


class Recorded:
    """Takes what a recording writes."""

    def __init__(self) -> None:
        self.clock = Clock.start()
        self.facts = Facts(format="recording", source="test")
        self.lost: list[tuple[str, str | None]] = []
        self._builder = TraceBuilder()
        self._lock = threading.Lock()

    def add(self, table: str, rows: int, columns: Mapping[str, Values]) -> None:
        with self._lock:
            self._builder.add(table, rows, columns)

    def tell(self, change: Callable[[Facts], Facts]) -> None:
        with self._lock:
            self.facts = change(self.facts)

    def lose(self, name: str, count: int = 1, *, example: str | None = None) -> None:
        self.lost.append((name, example))

    def rows(self, table: str) -> pl.DataFrame:
        """A table in order of time."""
        return self._builder.frame(table).collect().sort("start_ns", maintain_order=True)

    def ops(self) -> list[str]:
        """Names of the ops in order of time."""
        return self.rows("ops")["op"].to_list()

    def trace(self) -> Trace:
        return self._builder.finish(self.facts)
