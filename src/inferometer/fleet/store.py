"""Writes a fleet: each digest, or the reason why there is none, at once and whole; all of them joined at the end.

What is written depends only on the contents and on the names that they were given: not on how many processes made it,
in what order, or how often they were killed. One process at a time writes; others are refused.
"""

import os
import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self

import msgspec
import polars as pl
from isal import isal_zlib

from inferometer.errors import InputError
from inferometer.fleet.digest import unpack
from inferometer.fleet.files import (
    MANIFEST,
    MARK,
    MARK_FILE,
    TABLES,
    JoinedTable,
    Manifest,
    Mark,
    aside_file,
    check_digest,
    check_mark,
    content_of,
    digest_file,
    is_fleet,
    list_digests,
)
from inferometer.fleet.joined import JOINED, join_sources, with_labels
from inferometer.fleet.tables import ABOUT, DIGEST, SOURCES, TRACE, VERSION
from inferometer.new_files import NewFile, NewFolder
from inferometer.trace.store_writer import check_name, checksum_of
from inferometer.trace.tables import Table

_ROWS_AT_ONCE: Final = 100_000  # in a row group
_DIGESTS_AT_ONCE: Final = 1_000  # in memory, when they are joined
_PARTS: Final = "parts"


class FleetWriter:
    """A fleet at `path`, new or to be added to, for this process alone until the block ends.

    Raises:
        InputError: Something else is there, it can't be written, or another process writes to it.
        FormatError: It is of another version.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: IO[bytes] | None = None
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
            self._lock.close()

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
        files = [self._digests[trace] for trace in traces if trace in self._digests]
        with NewFolder(self.path / TABLES, ours=_is_ours, force=True) as folder:
            (parts := folder / _PARTS).mkdir()
            _unpack_to(parts, files)
            joined = {SOURCES.name: _save(folder, SOURCES, sources.lazy())}
            for name, table in DIGEST.items():
                rows = _rows(parts, table)
                if name == ABOUT.name:
                    rows = with_labels(join_sources(rows.collect(), sources)).lazy()
                joined[name] = _save(folder, JOINED[name], rows)
            shutil.rmtree(parts)
            (folder / MANIFEST).write_bytes(msgspec.json.encode(Manifest(joined), order="deterministic") + b"\n")
        self._drop_others({*traces}, {*sources[TRACE].drop_nulls()})

    def _drop_others(self, digests: set[str], known: set[str]) -> None:
        for file in (self.path / "digests").glob("*/*.parquet"):
            if content_of(file) not in digests:
                file.unlink()
        for file in (self.path / "aside").glob("*.json"):
            if file.stem not in known - digests:
                file.unlink()


def _lock(file: Path) -> IO[bytes]:
    """Held until it is closed; it goes with a process that is killed."""
    import fcntl

    opened = file.open("rb")
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        opened.close()
        raise InputError(f"{file.parent}: another process adds to it", hint="Wait until it has ended.") from error
    return opened


def _write(file: Path, data: bytes) -> None:
    file.parent.mkdir(exist_ok=True)
    with NewFile(file, force=True) as work, work.open("wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


def _unpack_to(parts: Path, files: Sequence[Path]) -> None:
    """Write a part of each table for each thousand digests, which are in the order of their contents.

    Each file is opened once for all tables, and memory doesn't grow with their number.
    """
    for start in range(0, len(files), _DIGESTS_AT_ONCE):
        some = list(files[start : start + _DIGESTS_AT_ONCE])
        for file in some:
            check_digest(file)
        scanned = pl.scan_parquet(some, glob=False, include_file_paths=TRACE)
        trace = pl.col(TRACE).str.extract(r"([0-9a-f]{64})\.[0-9a-f]{8}\.parquet$")
        packed = scanned.with_columns(trace).collect().lazy()
        for name, table in DIGEST.items():
            rows = unpack(packed, table).collect().sort(TRACE, maintain_order=True)
            rows.write_parquet(parts / f"{name}.{start:09}.parquet", compression="lz4", statistics=False)


def _rows(parts: Path, table: Table) -> pl.LazyFrame:
    files = sorted(parts.glob(f"{table.name}.*.parquet"))
    if not files:
        return pl.LazyFrame(schema={TRACE: pl.String, **table.schema})
    return pl.scan_parquet(files, glob=False)


def _save(folder: Path, table: Table, rows: pl.LazyFrame) -> JoinedTable:
    file = folder / f"{table.name}.parquet"
    ordered = rows.select(list(table.schema))
    ordered.sink_parquet(file, compression="zstd", row_group_size=_ROWS_AT_ONCE, maintain_order=True)
    return JoinedTable(pl.scan_parquet(file, glob=False).select(pl.len()).collect().item(), checksum_of(file))


def _is_ours(name: str) -> bool:
    return name in {MANIFEST, *(f"{table}.parquet" for table in (SOURCES.name, *JOINED))}


def source_rows(rows: Iterable[dict[str, object]]) -> pl.DataFrame:
    """Rows of `sources`."""
    return pl.DataFrame(list(rows), schema=SOURCES.schema, orient="row")
