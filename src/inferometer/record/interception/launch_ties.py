"""Ties the profiler's launches to intercepted ops: it sees the ops' rows on their way to the journals."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from inferometer.record.clock import Clock
from inferometer.record.interception.open_ops import OpenOps

if TYPE_CHECKING:
    from inferometer.trace.builder import Values
    from inferometer.trace.facts import Facts


class OpsSeen:
    """A sink that remembers when which op ran, and drops everything else."""

    def __init__(self, clock: Clock, settle: Callable[[], None] | None) -> None:
        self.clock = clock
        self.open_ops = OpenOps(settle)

    def add(self, table: str, rows: int, columns: "Mapping[str, Values]") -> None:
        """Ops of one thread, as the interception adds them."""
        if table == "ops":
            starts = np.asarray(columns["start_ns"], dtype=np.int64)
            thread = columns["thread"]
            if isinstance(thread, int):
                ends = starts + np.asarray(columns["dur_ns"], dtype=np.int64)
                self.open_ops.add(thread, starts, ends, np.asarray(columns["external_id"], dtype=np.int64))

    def change_facts(self, change: "Callable[[Facts], Facts]") -> None:
        """Dropped."""

    def lose(self, name: str, count: int = 1, *, example: str | None = None) -> None:
        """Nothing to lose."""
