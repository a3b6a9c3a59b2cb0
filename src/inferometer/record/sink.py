"""What the parts of a recording write to: batches of columns of the trace's tables, from any thread."""

from collections.abc import Callable, Mapping
from typing import Protocol

from inferometer.record.clock import Clock
from inferometer.trace.builder import Values
from inferometer.trace.facts import Facts


class Sink(Protocol):
    """Takes rows as they are made; `Journal` keeps them on disk, so that little is lost whatever happens."""

    @property
    def clock(self) -> Clock:
        """The recording's; all times of rows are on it."""

    def add(self, table: str, rows: int, columns: Mapping[str, Values]) -> None:
        """Rows of one table, as `TraceBuilder.add` takes them: a column is a sequence, or one value for all rows."""

    def change_facts(self, change: Callable[[Facts], Facts]) -> None:
        """Change what the recording says of itself: a device that was found, a note."""

    def lose(self, name: str, count: int = 1, *, example: str | None = None) -> None:
        """Count what couldn't be recorded, under a name of `trace/losses.py`."""
