"""The files of a journal: Parquet parts that are whole before `facts.json` names them, merged as they pile up.

At any moment the folder is a store: a part is written and synced, then `facts.json` is replaced by one that names it,
then files that it no longer names are removed. What a killed process left behind is named nowhere and read by nobody.
"""

import os
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from io import BytesIO
from pathlib import Path

import polars as pl
from isal import isal_zlib

from inferometer.record.journal.time_order import sort_by_time
from inferometer.trace.builder import PART_BYTES
from inferometer.trace.facts import Facts
from inferometer.trace.losses import Losses
from inferometer.trace.store_writer import MOST_FILES, StoredTable, encode_manifest, replace_manifest
from inferometer.trace.tables import TABLES

MOST_SMALL = 60  # small parts of one level: at one per second, a merge per minute, and another of those per hour
_GOOD = 4  # a part that has one of so many parts of the largest size isn't small: it is merged only at the end
_LEVEL = 3  # of zstd: 1.44 million rows of counters take 0.3 s; level 9 saves 3 % more in twice the time
_OWN_FILE = re.compile(r"[a-z_]+-[0-9]{5}\.parquet|facts\.json\.new")


@dataclass(frozen=True)
class JournalPart:
    """A whole file of one table.

    `bytes`: of its rows in memory. `first_ns`: its earliest time, None without one. `level`: how often its rows were
    merged; parts of one level are merged with each other, so a row is copied a few times only, however long it takes.
    """

    table: str
    name: str
    rows: int
    crc32: int
    bytes: int
    first_ns: int | None
    level: int = 0


@dataclass
class Parts:
    """The parts of all tables in one folder, which must stay the folder that it was when this began.

    `part_bytes`: of a part in memory, at most.
    """

    folder: Path
    tables: dict[str, list[JournalPart]] = field(default_factory=dict)
    part_bytes: int = PART_BYTES
    _last: dict[str, int] = field(default_factory=dict)
    _identity: tuple[int, int] = (0, 0)

    def __post_init__(self) -> None:
        self._identity = _identity(self.folder)

    def add(self, table: str, frame: pl.DataFrame) -> None:
        """Write `frame` as a part of `table`. Raises `OSError`; then nothing is left of it."""
        part = self._write(table, frame)
        self.tables.setdefault(table, []).append(part)

    def exchange(self, part: JournalPart, frame: pl.DataFrame, *, level: int) -> JournalPart:
        """Replace `part` by `frame`; its file stays until `clean`."""
        some = self.tables[part.table]
        at, whole = some.index(part), replace(self._write(part.table, frame), level=level)
        some[at] = whole
        return whole

    def drop(self, part: JournalPart) -> None:
        """Forget it; its file stays until `clean`."""
        self.tables[part.table].remove(part)

    def publish(self, facts: Facts, losses: Losses) -> None:
        """Replace `facts.json` by one that names the parts as they are now."""
        self._check()
        stored = {
            table: StoredTable(
                sum(part.rows for part in parts), [part.name for part in parts], [p.crc32 for p in parts]
            )
            for table, parts in self.tables.items()
            if parts
        }
        replace_manifest(self.folder, encode_manifest(facts, losses, stored))
        _sync_folder(self.folder)

    def merge_small(self) -> bool:
        """Merge the oldest small parts of each table that has too many; whether there were any."""
        merged = False
        for table, parts in self.tables.items():
            if run := _too_many(parts, self.part_bytes):
                some = parts[run.start : run.stop]
                if len(some) > 1:
                    whole = self._write(table, pl.concat([self.read(part) for part in some], rechunk=True))
                    merged = True
                else:
                    whole = some[0]
                parts[run.start : run.stop] = [replace(whole, level=some[0].level + 1)]
        return merged

    def sort(self, table: str) -> None:
        """Rewrite `table` in the order of time, in parts of a good size; `publish` then makes them the store."""
        parts = [(part.first_ns, partial(self.read, part)) for part in self.tables[table]]
        self.tables[table] = [self._write(table, frame) for frame in sort_by_time(table, parts)]

    def clean(self) -> None:
        """Remove what `facts.json` doesn't name; only after `publish`."""
        self._check()
        named = {part.name for parts in self.tables.values() for part in parts}
        for file in self.folder.iterdir():
            if _OWN_FILE.fullmatch(file.name) and file.name not in named:
                with suppress(OSError):
                    file.unlink()

    def read(self, part: JournalPart) -> pl.DataFrame:
        """Its rows."""
        return pl.read_parquet((self.folder / part.name).read_bytes())

    def _write(self, table: str, frame: pl.DataFrame) -> JournalPart:
        """A part under a number that no file has: it is written to memory, then to disk, which may be full."""
        self._check()
        buffer = BytesIO()
        frame.write_parquet(buffer, compression="zstd", compression_level=_LEVEL)
        data = buffer.getbuffer()
        file = self._free_name(table)
        try:
            with file.open("xb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
        except BaseException:
            with suppress(OSError):
                file.unlink()
            raise
        time = TABLES[table].time
        first = frame[time].min() if time else None
        crc32 = isal_zlib.crc32(data)
        return JournalPart(
            table,
            file.name,
            frame.height,
            crc32,
            int(frame.estimated_size()),
            first if isinstance(first, int) else None,
        )

    def _free_name(self, table: str) -> Path:
        """Numbers begin anew after the last: a recording of days has used them all."""
        for _ in range(MOST_FILES):
            self._last[table] = (self._last.get(table, -1) + 1) % MOST_FILES
            file = self.folder / f"{table}-{self._last[table]:05}.parquet"
            if not file.exists():
                return file
        raise OSError(f"{self.folder}: no name is free for a file of the table {table}")

    def _check(self) -> None:
        if _identity(self.folder) != self._identity:
            raise FileNotFoundError(f"{self.folder}: another folder has taken the recording's place")


def _too_many(parts: Sequence[JournalPart], most: int) -> range:
    """The oldest small parts of a level that has more than `MOST_SMALL` of them, at most `most` bytes; else nothing.

    They follow each other, so that the rows keep their order when they are merged.
    """
    good = most // _GOOD
    small = Counter(part.level for part in parts if part.bytes < good)
    for level, count in small.items():
        if count > MOST_SMALL:
            start = next(i for i, part in enumerate(parts) if part.level == level and part.bytes < good)
            return range(start, start + _run_length(parts[start:], most))
    return range(0)


def _run_length(parts: Sequence[JournalPart], most: int) -> int:
    """Parts of the first one's level that follow each other and make at most `most` bytes."""
    total = 0
    for i, part in enumerate(parts):
        total += part.bytes
        if part.level != parts[0].level or part.bytes >= most // _GOOD or total > most:
            return i
    return len(parts)


def _identity(folder: Path) -> tuple[int, int]:
    found = folder.stat()
    return found.st_dev, found.st_ino


def _sync_folder(folder: Path) -> None:
    """Names reach the disk too, where the system lets a folder be opened."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
