"""What writes a journal's batches into its folder; `remote` has the one for forked processes."""

import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec
import polars as pl

from inferometer.record.journal.batches import Batch, join_batches
from inferometer.record.journal.parts import Parts
from inferometer.trace.facts import Facts
from inferometer.trace.losses import Losses

T = TypeVar("T")


class Writer(Protocol):
    """Takes batches; what went wrong comes back as text, and never as an exception."""

    def write(self, batches: Sequence[Batch], facts: Facts, losses: Losses) -> list[str]:
        """Put them into the store, with what the recording says of itself by now."""

    def finish(self, facts: Facts, losses: Losses) -> list[str]:
        """Sort the store and write it for the last time."""

    def abandon(self) -> None:
        """Leave the store to the process that this one was forked from."""


class LocalWriter:
    """Writes in this process."""

    def __init__(self, folder: Path) -> None:
        self._parts = Parts(folder)
        self._lost = Losses()

    def write(self, batches: Sequence[Batch], facts: Facts, losses: Losses) -> list[str]:
        """Rows that can't be written are counted and dropped: memory must not fill up because a disk did."""
        troubles: list[str] = []
        for table, frame in _unbroken(lambda: join_batches(batches, self._lost, troubles.append)).items():
            try:
                _unbroken(partial(self._parts.add, table, frame))
            except (OSError, pl.exceptions.PolarsError) as error:
                self._lost.count("rows_not_written", frame.height, example=f"{table}: {error}"[:200])
                troubles.append(f"rows can't be written: {error}")
        self._try(troubles, lambda: self._publish(facts, losses))
        self._try(troubles, lambda: self._merge(facts, losses))
        return troubles

    def finish(self, facts: Facts, losses: Losses) -> list[str]:
        """Where there is no room to sort, the store stays as it is, and is finished."""
        troubles: list[str] = []
        unfinished = msgspec.structs.replace(facts, recorded={**facts.recorded, "finished": False})
        for table in self._parts.tables:
            self._try(troubles, partial(self._sort, table, unfinished, losses))
        self._try(troubles, lambda: self._publish(facts, losses, clean=True))
        return troubles

    def abandon(self) -> None:
        """Nothing is open between two writes."""

    def _publish(self, facts: Facts, losses: Losses, *, clean: bool = False) -> None:
        together = Losses(losses.scope)
        together.add(losses)
        together.add(self._lost)
        self._parts.publish(facts, together)
        if clean:
            self._parts.clean()

    def _merge(self, facts: Facts, losses: Losses) -> None:
        if self._parts.merge_small():
            self._publish(facts, losses, clean=True)

    def _sort(self, table: str, facts: Facts, losses: Losses) -> None:
        """One table after the other, so that the disk holds one of them twice at most."""
        self._parts.sort(table)
        self._publish(facts, losses, clean=True)

    @staticmethod
    def _try(troubles: list[str], work: Callable[[], None]) -> None:
        try:
            _unbroken(work)
        except (OSError, pl.exceptions.PolarsError) as error:
            troubles.append(f"the store can't be written: {error}")


def _unbroken(work: Callable[[], T]) -> T:
    """Do `work`, once more where Ctrl-C broke it off: Polars raises it in whatever thread it works for.

    The program hears of the interrupt in its main thread all the same, and ends the recording from there.
    """
    try:
        return work()
    except KeyboardInterrupt:
        if threading.current_thread() is threading.main_thread():
            raise
        return work()
