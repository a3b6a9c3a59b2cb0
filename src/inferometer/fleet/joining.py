"""Joins digests into the tables of a fleet: rows of the last time stay, only new digests are unpacked.

The tables hang on the digests and the paths alone, byte by byte: not on what was joined before, or how much at once.
"""

import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec
import polars as pl

from inferometer.errors import FormatError
from inferometer.fleet.digest import unpack
from inferometer.fleet.files import MANIFEST, TABLES, JoinedTable, Manifest, check_digest, content_of
from inferometer.fleet.joined import DIGESTS, FILE, JOINED, join_sources, with_labels
from inferometer.fleet.tables import ABOUT, DIGEST, SOURCES, TRACE
from inferometer.new_files import NewFolder
from inferometer.trace.store_writer import checksum_of
from inferometer.trace.tables import Table

_ROWS_AT_ONCE: Final = 100_000  # in a row group
_DIGESTS_AT_ONCE: Final = 1_000  # in memory, when they are unpacked
_PARTS: Final = "parts"
_OF_DIGESTS: Final = {name: DIGESTS if name == ABOUT.name else JOINED[name] for name in DIGEST}


def join_digests(fleet: Path, digests: Sequence[Path], sources: pl.DataFrame) -> None:
    """Write the tables of a fleet anew.

    Args:
        fleet: Its folder.
        digests: Their files, in the order of the contents.
        sources: Rows of `sources`, in the order of their paths.

    Raises:
        FormatError: One is damaged, of those that are new since the tables were written last.
    """
    names = {file.name for file in digests}
    before = _Before(fleet / TABLES)
    with NewFolder(fleet / TABLES, ours=_is_ours, force=True) as folder:
        (parts := folder / _PARTS).mkdir()
        _unpack_to(parts, [file for file in digests if file.name not in before.digests])
        joined = {SOURCES.name: _save(folder, SOURCES, sources.lazy())}
        for name, table in _OF_DIGESTS.items():
            rows = before.rows(table, names).merge_sorted(_rows(parts, name, table), TRACE)
            joined[table.name] = _save(folder, table, rows)
        about = pl.read_parquet(_file(folder, DIGESTS)).drop(FILE)
        labelled = with_labels(join_sources(about, sources))
        joined[ABOUT.name] = _save(folder, JOINED[ABOUT.name], labelled.lazy())
        shutil.rmtree(parts)
        (folder / MANIFEST).write_bytes(msgspec.json.encode(Manifest(joined), order="deterministic") + b"\n")


class _Before:
    """The tables as they are: what of them may stay. Nothing, where there are none or one is damaged.

    `digests`: the names of the files whose rows they have.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._joined = DIGESTS.empty.select(TRACE, FILE).collect()
        with suppress(OSError, msgspec.DecodeError, FormatError):
            stored = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=Manifest).tables
            if all(_is_as_written(folder, table, stored.get(table.name)) for table in _OF_DIGESTS.values()):
                self._joined = pl.read_parquet(_file(folder, DIGESTS), columns=[TRACE, FILE])
        self.digests = frozenset(self._joined[FILE])

    def rows(self, table: Table, names: set[str]) -> pl.LazyFrame:
        """Those of the digests of these names."""
        if self._joined.is_empty():
            return table.empty
        rows = pl.scan_parquet(_file(self._folder, table), glob=False)
        if self.digests <= names:
            return rows
        kept = self._joined.lazy().filter(pl.col(FILE).is_in(sorted(self.digests & names)))
        return rows.join(kept, on=TRACE, how="semi", maintain_order="left")


def _is_as_written(folder: Path, table: Table, stored: JoinedTable | None) -> bool:
    return stored is not None and checksum_of(_file(folder, table)) == stored.crc32


def _unpack_to(parts: Path, files: Sequence[Path]) -> None:
    """Write a part of each table for each thousand digests, which are in the order of their contents.

    Each file is opened once for all tables, and memory doesn't grow with their number.
    """
    for start in range(0, len(files), _DIGESTS_AT_ONCE):
        some = list(files[start : start + _DIGESTS_AT_ONCE])
        for file in some:
            check_digest(file)
        of_trace = pl.LazyFrame({TRACE: list(map(content_of, some)), FILE: [file.name for file in some]})
        scanned = pl.scan_parquet(some, glob=False, include_file_paths=TRACE)
        trace = pl.col(TRACE).str.extract(r"([0-9a-f]{64})\.[0-9a-f]{8}\.parquet$")
        packed = scanned.with_columns(trace).collect().lazy()
        for name, table in DIGEST.items():
            rows = unpack(packed, table)
            if name == ABOUT.name:
                rows = rows.join(of_trace, on=TRACE)
            ordered = rows.collect().sort(TRACE, maintain_order=True)
            ordered.write_parquet(parts / f"{name}.{start:09}.parquet", compression="lz4", statistics=False)


def _rows(parts: Path, name: str, table: Table) -> pl.LazyFrame:
    files = sorted(parts.glob(f"{name}.*.parquet"))
    return pl.scan_parquet(files, glob=False).select(list(table.schema)) if files else table.empty


def _save(folder: Path, table: Table, rows: pl.LazyFrame) -> JoinedTable:
    file = _file(folder, table)
    ordered = rows.select(list(table.schema))
    ordered.sink_parquet(file, compression="zstd", row_group_size=_ROWS_AT_ONCE, maintain_order=True)
    return JoinedTable(pl.scan_parquet(file, glob=False).select(pl.len()).collect().item(), checksum_of(file))


def _file(folder: Path, table: Table) -> Path:
    return folder / f"{table.name}.parquet"


def _is_ours(name: str) -> bool:
    return name in {MANIFEST, *(_file(Path(), table).name for table in (SOURCES, DIGESTS, *JOINED.values()))}
