"""A store of bounded size that is written for days, by a watch: it goes on where the one before was killed.

As in a journal, rows wait in memory, here for ten seconds, then a thread writes them as a part and replaces
`facts.json`: the folder is a store at any time. Beyond its size the oldest counters lose detail (`thinning.py`). It is
not sorted at the end: rows come in the order of time already, but for parts of a second.

Times go on, too: a store that is opened again keeps its clock, and what is added is later than all that is there, even
if the machine's date was set back.
"""

import copy
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec
import polars as pl

from inferometer.errors import InputError
from inferometer.file_locks import hold
from inferometer.record.clock import Clock, monotonic_ns
from inferometer.record.journal.batches import Batch, join_batches
from inferometer.record.journal.journal import first_facts
from inferometer.record.journal.parts import JournalPart, Parts
from inferometer.record.journal.thinning import Thinning
from inferometer.trace.facts import Facts
from inferometer.trace.losses import Losses
from inferometer.trace.series import Values
from inferometer.trace.store import read_manifest, read_store
from inferometer.trace.store_writer import StoreFolder, is_store, write_manifest
from inferometer.trace.tables import ALL_TABLES, TABLES

MOST_BYTES = 190_000_000
"""Size of a store, by default."""

FLUSH_S = 10.0
_ANOTHER = "Give another name."
_PART_BYTES = 12 << 20  # in memory: what is thinned or merged at once
_TEXT_BYTES, _NUMBER_BYTES = 16, 8  # of a value in memory, about
_PENDING_ROWS = 200_000  # while the disk is full, what waits is dropped beyond that


class RollingStore:
    """A `Sink` that writes the store `path`, goes on with one that a watch left there, and keeps it below a size.

    Args:
        path: `NAME.ifm`.
        most_bytes: Of its tables.
        growing: Metrics that only grow, so that a mean of theirs says nothing.
        flush_s: How long rows wait in memory: what a kill may lose.
        on_trouble: Called once, from any thread, when rows can't be written; they are dropped and counted.

    Raises:
        InputError: Something else is there, or no store can be made there.
    """

    def __init__(
        self,
        path: Path,
        *,
        most_bytes: int = MOST_BYTES,
        growing: frozenset[str] = frozenset(),
        flush_s: float = FLUSH_S,
        on_trouble: Callable[[str], object] | None = None,
    ) -> None:
        self.path, self._flush_s, self._on_trouble = path, flush_s, on_trouble
        self._pending: deque[Batch] = deque()
        self._waiting = 0
        self._telling, self._writing = threading.Lock(), threading.Lock()
        self._thinning = Thinning(most_bytes, growing)
        self.goes_on = os.path.lexists(path)
        self._lock: int | None = None
        if self.goes_on:
            self._lock = _locked(path)
            self._facts, self._losses, tables, self._clock = _reopened(path)
        else:
            self._clock = Clock.start()
            self._losses, tables = Losses(ALL_TABLES), {}
            self._facts = msgspec.structs.replace(
                first_facts(path, self._clock), recorded={"finished": False, "rolling": True}
            )
            with StoreFolder(path) as folder:
                write_manifest(folder, self._facts, self._losses, {})
        self._parts = Parts(path.absolute(), tables, part_bytes=_PART_BYTES)
        self._lock = self._lock or _locked(path)
        self._is_changed = self._is_closed = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="inferometer-rolling-store", daemon=True)
        self._thread.start()

    @property
    def clock(self) -> Clock:
        """The clock that all rows are on."""
        return self._clock

    @property
    def losses(self) -> Losses:
        """What was lost so far."""
        with self._telling:
            return copy.deepcopy(self._losses)

    def add(self, table: str, rows: int, columns: Mapping[str, Values]) -> None:
        """As `Sink.add`, from any thread. What comes after `close` is dropped."""
        if rows <= 0 or self._is_closed:
            return
        if self._waiting > _PENDING_ROWS:
            self.lose("rows_not_written", rows)
            return
        self._waiting += rows
        self._pending.append(Batch(table, rows, columns))

    def change_facts(self, change: Callable[[Facts], Facts]) -> None:
        """As `Sink.change_facts`."""
        with self._telling:
            self._facts, self._is_changed = change(self._facts), True

    def lose(self, name: str, count: int = 1, *, example: str | None = None) -> None:
        """As `Sink.lose`."""
        with self._telling:
            self._losses.count(name, count, example=example)
            self._is_changed = True

    def flush(self) -> None:
        """Write what has been added so far; returns when it is on disk."""
        with self._writing:
            if not self._is_closed:
                self._write(finished=False)

    def close(self) -> None:
        """Write the rest, and mark the store as finished. A second call does nothing."""
        self._stop.set()
        with self._writing:
            if self._is_closed:
                return
            self._is_closed = self._is_changed = True
            self._write(finished=True)
            if self._lock is not None:
                os.close(self._lock)
        if self._thread is not threading.current_thread():
            self._thread.join(1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def _run(self) -> None:
        while not self._stop.wait(self._flush_s):
            self.flush()

    def _write(self, *, finished: bool) -> None:
        batches = [self._pending.popleft() for _ in range(len(self._pending))]
        self._waiting = 0
        if not batches and not self._is_changed:
            return
        for table, frame in join_batches(batches, self._losses, self._say).items():
            try:
                self._parts.add(table, frame)
            except (OSError, pl.exceptions.PolarsError) as error:
                self.lose("rows_not_written", frame.height, example=f"{table}: {error}"[:200])
                self._say(f"rows can't be written: {error}")
        try:
            self._publish(finished=finished)
            self._make_room(finished=finished)
        except (OSError, pl.exceptions.PolarsError) as error:
            self._say(f"the store can't be written: {error}")

    def _make_room(self, *, finished: bool) -> None:
        merged = self._parts.merge_small()
        lost = dict(zip(("samples_averaged", "rows_not_kept"), self._thinning.keep(self._parts), strict=True))
        for name, count in lost.items():
            if count:
                self.lose(name, count)
        if merged or any(lost.values()):
            self._publish(finished=finished)
            self._parts.clean()

    def _publish(self, *, finished: bool) -> None:
        with self._telling:
            self._is_changed = False
            recorded = {**self._facts.recorded, "finished": finished}
            facts, losses = msgspec.structs.replace(self._facts, recorded=recorded), copy.deepcopy(self._losses)
        self._parts.publish(facts, losses)

    def _say(self, text: str) -> None:
        say, self._on_trouble = self._on_trouble, None
        if say:
            say(f"{self.path}: {text}")


def _locked(path: Path) -> int | None:
    """Holds a store as long as this process has it open; None where that can't be.

    Raises:
        InputError: Another process has it.
    """
    if sys.platform == "win32" or path.is_symlink() or not path.is_dir():
        return None
    try:
        return hold(path)
    except BlockingIOError:
        raise InputError(f"{path}: another watch is writing it", hint="End that one, or give another name.") from None
    except OSError:  # a file system without locks
        return None


def _reopened(path: Path) -> tuple[Facts, Losses, dict[str, list[JournalPart]], Clock]:
    """What a store holds, and a clock on which now is later than all of it.

    Raises:
        InputError: It isn't one that a watch has made.
        FormatError: It is damaged.
    """
    if path.is_symlink() or not is_store(path):
        raise InputError(f"{path}: already exists, and is no store; it is not replaced", hint=_ANOTHER)
    read_store(path).close()  # raises where it is damaged
    manifest = read_manifest(path)
    base_ns = manifest.facts.clock_base_ns
    if manifest.facts.recorded.get("rolling") is not True or base_ns is None:
        raise InputError(f"{path}: already exists, and no watch has made it; it is not replaced", hint=_ANOTHER)
    tables, last_ns = {}, 0
    for table, stored in manifest.tables.items():
        found = [_part(path, table, name, crc32) for name, crc32 in zip(stored.files, stored.crc32, strict=True)]
        tables[table] = [part for part, _ in found]
        last_ns = max(last_ns, *(latest_ns for _, latest_ns in found))
    now_ns = max(time.time_ns() - base_ns, last_ns + 1)
    losses = Losses.from_dict(msgspec.to_builtins(manifest.losses))
    losses.scope = ALL_TABLES
    return manifest.facts, losses, tables, Clock(monotonic_ns() - now_ns, base_ns)


def _part(path: Path, table: str, name: str, crc32: int) -> tuple[JournalPart, int]:
    """A part that is there, and its latest time."""
    time_name, schema = TABLES[table].time, TABLES[table].schema
    rows = pl.scan_parquet(path / name, glob=False)
    at = pl.col(time_name) if time_name else pl.lit(None, dtype=pl.Int64)
    count, first, last = rows.select(pl.len(), at.min().alias("first"), at.max().alias("last")).collect().row(0)
    bytes_in_memory = count * sum(_TEXT_BYTES if kind == pl.String else _NUMBER_BYTES for kind in schema.values())
    return JournalPart(table, name, count, crc32, bytes_in_memory, first), last or 0
