"""The journal of a recording: a store that grows while it is written and can be read at any time.

Rows wait in memory for a second at most. A thread then writes them as Parquet parts and replaces `facts.json`, so that
a process that is killed leaves a whole store without its last second; `close` sorts it and marks it as finished.

A forked child must not write the rows that its parent has: there the journal takes nothing any more. A child that
records makes its own, on the same clock: `Journal(path_of_its_own, clock=parent.clock)`.
"""

import atexit
import copy
import os
import socket
import threading
import warnings
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self
from weakref import WeakSet

import msgspec
import polars as pl

from inferometer.errors import UnknownName
from inferometer.record.clock import Clock
from inferometer.record.journal.batches import Batch
from inferometer.record.journal.remote import RemoteWriter
from inferometer.record.journal.writer import LocalWriter, Writer
from inferometer.trace.facts import Facts
from inferometer.trace.losses import Losses
from inferometer.trace.series import Values
from inferometer.trace.store_writer import StoreFolder, write_manifest
from inferometer.trace.tables import ALL_TABLES, TABLES

FORMAT = "recording"  # `Facts.format` of what we recorded
_LIVE: "WeakSet[Journal]" = WeakSet()


class Journal:
    """A `Sink` that keeps what it gets in the store `path`.

    It never raises into the user's program after it was made. Use it as a context manager, or call `close`.

    Args:
        path: The store to make, `NAME.ifm`. It is there and empty at once.
        clock: Of the recording; one that starts now by default.
        force: Replace a store that is there; nothing else is ever replaced.
        flush_s: How long rows wait in memory: what a kill may lose.
        on_trouble: Called once, from any thread, with a text, when rows can't be written (a full disk, a lost folder).
            They are dropped and counted as `rows_not_written`. By default a warning.

    Raises:
        InputError: No store can be made there.
    """

    _has_lost_polars: ClassVar[bool] = False  # in a forked process, whose threads stayed in its parent

    def __init__(
        self,
        path: Path,
        *,
        clock: Clock | None = None,
        force: bool = False,
        flush_s: float = 1.0,
        on_trouble: Callable[[str], object] | None = None,
    ) -> None:
        self.path = path
        self._clock = clock or Clock.start()
        self._flush_s = flush_s
        self._on_trouble: Callable[[str], object] | None = on_trouble or _warn
        self._pending: deque[Batch] = deque()  # its append needs no lock
        self._losses = Losses(ALL_TABLES)
        self._facts = first_facts(path, self._clock)
        self._is_changed = self._is_over = self._is_closed = self._is_writing = False
        self._telling = threading.RLock()  # a signal's handler may come while its thread holds one
        self._writing = threading.RLock()
        with StoreFolder(path, force=force) as folder:
            write_manifest(folder, self._facts, self._losses, {})
        self._folder = path.absolute()
        self._writer: Writer = (RemoteWriter if self._has_lost_polars else LocalWriter)(self._folder)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="inferometer-journal", daemon=True)
        _LIVE.add(self)
        atexit.register(self.close)
        self._thread.start()

    @property
    def clock(self) -> Clock:
        """The recording's; all times of rows are on it."""
        return self._clock

    def add(self, table: str, rows: int, columns: Mapping[str, Values]) -> None:
        """Rows of one table, as `TraceBuilder.add` takes them, from any thread: a column is a sequence or one value.

        Only the references are kept until the next flush: don't change the columns afterwards. What comes after
        `close`, or in a forked child, is dropped.
        """
        if table not in TABLES:
            raise UnknownName("table", table, TABLES)
        if rows > 0 and not self._is_over:
            self._pending.append(Batch(table, rows, columns))

    def change_facts(self, change: Callable[[Facts], Facts]) -> None:
        """Change what the recording says of itself: a device that was found, a note."""
        if not self._is_over:
            with self._telling:
                self._facts = change(self._facts)
                self._is_changed = True

    def lose(self, name: str, count: int = 1, *, example: str | None = None) -> None:
        """Count what couldn't be recorded, under a name of `trace/losses.py`."""
        if not self._is_over:
            with self._telling:
                self._losses.count(name, count, example=example)
                self._is_changed = True

    def flush(self) -> None:
        """Write what has been added so far; returns when it is on disk."""
        if self._is_over:
            return
        with self._writing:
            if self._is_writing or self._is_over:
                return
            self._is_writing = True
            try:
                self._write_pending()
            finally:
                self._is_writing = False

    def close(self) -> None:
        """Write the rest, sort the store by time and mark it as finished. A second call does nothing.

        In a signal's handler that came in the middle of a write it does nothing either: call it again afterwards.
        """
        if self._is_closed:
            return
        self._stop.set()
        with self._writing:
            if self._is_writing or self._is_closed:  # a signal's handler in the middle of a write
                return
            self._is_writing = self._is_over = True
            try:
                self._write_pending()
                self._guard(lambda: self._writer.finish(*self._facts_and_losses(finished=True)))
                self._is_closed = True
            finally:
                self._is_writing = False
        atexit.unregister(self.close)
        _LIVE.discard(self)
        self._thread.join(1)  # it was asked to stop, and waits for nothing else

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if error is not None:
            note = f"The recording ended with {type(error).__name__}: {error}"[:500]
            self.change_facts(lambda facts: msgspec.structs.replace(facts, notes=(*facts.notes, note)))
        self.close()

    def _run(self) -> None:
        while not self._stop.wait(self._flush_s):
            self.flush()

    def _write_pending(self) -> None:
        batches = [self._pending.popleft() for _ in range(len(self._pending))]
        if batches or self._is_changed:
            rows = sum(batch.rows for batch in batches)
            self._guard(lambda: self._writer.write(batches, *self._facts_and_losses(finished=False)), rows)

    def _guard(self, write: Callable[[], list[str]], rows: int = 0) -> None:
        """Tell of the first trouble, once. A mistake of ours must not end the user's program either."""
        try:
            troubles = write()
        except (Exception, pl.exceptions.PanicException) as error:  # noqa: BLE001
            troubles = [f"rows can't be written: {error!r}"]
            with self._telling:
                self._losses.count("rows_not_written", rows, example=repr(error)[:200])
        if troubles and (report := self._on_trouble):
            self._on_trouble = None
            with suppress(Exception):  # the user's function, or a warning that is an error there
                report(f"{self.path}: {troubles[0]}")

    def _facts_and_losses(self, *, finished: bool) -> tuple[Facts, Losses]:
        with self._telling:
            self._is_changed = False
            recorded = {**self._facts.recorded, "finished": finished}
            return msgspec.structs.replace(self._facts, recorded=recorded), copy.deepcopy(self._losses)

    def _abandon(self) -> None:
        """In a forked child: what is pending is the parent's, and so are the locks."""
        self._is_over = self._is_closed = True
        self._pending = deque()
        self._stop = threading.Event()
        self._writer.abandon()


def first_facts(path: Path, clock: Clock) -> Facts:
    """Facts of a recording that has only begun."""
    from inferometer import __version__

    return Facts(
        FORMAT,
        path.name,
        tool="inferometer",
        tool_version=__version__,
        hosts=(socket.gethostname(),),
        clock_base_ns=clock.base_ns,
        recorded={"finished": False},
    )


def _warn(text: str) -> None:
    warnings.warn(text, RuntimeWarning, stacklevel=2)


def _after_fork() -> None:
    Journal._has_lost_polars = True
    for journal in list(_LIVE):
        journal._abandon()
    _LIVE.clear()


# Not with the first journal: that may be a forked child's.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
