"""Writes a fleet: each digest, or the reason why there is none, at once and whole; all of them joined at the end.

What is written depends only on the contents and on the names that they were given: not on how many processes made it,
in what order, or how often they were killed. One process at a time writes; others are refused.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec
import polars as pl
from isal import isal_zlib

from inferometer.errors import InputError
from inferometer.file_locks import hold
from inferometer.fleet.files import (
    MARK,
    MARK_FILE,
    TABLES,
    Mark,
    aside_file,
    check_mark,
    content_of,
    digest_file,
    is_fleet,
    list_digests,
)
from inferometer.fleet.joining import join_digests
from inferometer.fleet.tables import SOURCES, TRACE, VERSION
from inferometer.new_files import NewFile, NewFolder
from inferometer.trace.store_writer import check_name


class FleetWriter:
    """A fleet at `path`, new or to be added to, for this process alone until the block ends.

    Raises:
        InputError: Something else is there, it can't be written, or another process writes to it.
        FormatError: It is of another version.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: int | None = None
        self._digests: dict[str, Path] = {}

    def __enter__(self) -> Self:
        check_name(self.path)
        is_empty = self.path.is_dir() and not any(self.path.iterdir())
        if not os.path.lexists(self.path) or is_empty:
            with NewFolder(self.path, ours=lambda _: False, force=is_empty) as new:
                (new / MARK_FILE).write_bytes(msgspec.json.encode(Mark(MARK, VERSION)) + b"\n")
        if self.path.is_dir() and not is_fleet(self.path):
            raise InputError(f"{self.path}: exists and is no fleet; nothing is added to it", hint="Give another name.")
        check_mark(self.path)
        self._lock = _lock(self.path / MARK_FILE)
        for name in ("digests", "aside"):
            (self.path / name).mkdir(exist_ok=True)
        self._digests = list_digests(self.path)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._lock is not None:
            os.close(self._lock)

    def has_digest(self, trace: str) -> bool:
        """Whether the content has a digest."""
        return trace in self._digests

    def reason(self, trace: str) -> str | None:
        """Why the content has none; None where it wasn't set aside."""
        with suppress(OSError, msgspec.DecodeError):
            return msgspec.json.decode(aside_file(self.path, trace).read_bytes(), type=str)
        return None

    def keep(self, trace: str, packed: bytes) -> None:
        """Write its digest, to stay whatever happens from now on."""
        file = digest_file(self.path, trace, isal_zlib.crc32(packed))
        _write(file, packed)
        self._digests[trace] = file
        aside_file(self.path, trace).unlink(missing_ok=True)

    def set_aside(self, trace: str, reason: str) -> None:
        """Write why it has none."""
        _write(aside_file(self.path, trace), msgspec.json.encode(reason))

    def sources(self) -> pl.DataFrame:
        """The paths that former runs were given; none in a new fleet, or one that was never finished."""
        file = self.path / TABLES / f"{SOURCES.name}.parquet"
        return pl.read_parquet(file) if file.is_file() else SOURCES.empty.collect()

    def finish(self, sources: pl.DataFrame) -> None:
        """Join the digests that `sources` name, and drop others, which are of contents that changed since."""
        sources = sources.sort("path")
        traces = sources.filter(pl.col("reason").is_null())[TRACE].drop_nulls().unique().sort().to_list()
        join_digests(self.path, [self._digests[trace] for trace in traces if trace in self._digests], sources)
        self._drop_others({*traces}, {*sources[TRACE].drop_nulls()})

    def _drop_others(self, digests: set[str], known: set[str]) -> None:
        for file in (self.path / "digests").glob("*/*.parquet"):
            if content_of(file) not in digests:
                file.unlink()
        for file in (self.path / "aside").glob("*.json"):
            if file.stem not in known - digests:
                file.unlink()


def _lock(file: Path) -> int:
    """Held until it is closed; it goes with a process that is killed."""
    try:
        return hold(file)
    except OSError as error:
        raise InputError(f"{file.parent}: another process adds to it", hint="Wait until it has ended.") from error


def _write(file: Path, data: bytes) -> None:
    file.parent.mkdir(exist_ok=True)
    with NewFile(file, force=True) as work, work.open("wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


def source_rows(rows: Iterable[dict[str, object]]) -> pl.DataFrame:
    """Rows of `sources`."""
    return pl.DataFrame(list(rows), schema=SOURCES.schema, orient="row")
