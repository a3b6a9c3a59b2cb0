"""An SQLite database: straight into columns, from its pages by a library in C++, or through ADBC by ranges of row ids.

What is in the file decides, not what its schema says: SQLite keeps any type in any column. A batch that is not all
whole numbers, or not all UTF-8, is read again with care, and what can't be read is counted (see `sqlite_pass`). Only
plain tables are read: a view or a virtual table could run anything.
"""

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import polars as pl

from inferometer.errors import FormatError, clean
from inferometer.formats.databases.native.table import Place
from inferometer.formats.databases.page_pass import PagePass, start_page_pass
from inferometer.formats.databases.sqlite_pass import BATCH_ROWS, Pass, Query, quoted
from inferometer.formats.source import Source
from inferometer.trace.losses import Losses

_ROW_IDS = ("rowid", "_rowid_", "oid")
_REAL = ("REAL", "FLOA", "DOUB")  # in the type of a column: its numbers are given as floating-point ones

MAGIC = b"SQLite format 3\0"
EXPORT_AGAIN = "The database is damaged or was cut off: record or export it again."
_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True)
class _Table:
    """`places`: where columns stand in the records of its pages; empty where only SQLite can say."""

    columns: frozenset[str]
    row_id: str | None
    places: Mapping[str, Place] = field(default_factory=dict)


class SqliteExport:
    """An open SQLite database; see `Export`.

    Args:
        path: A plain file.
        name: What it is called in messages.
        losses: Where odd values are counted.
        damaged: What to do about a damaged one.
        plain: Beginnings of names of tables that must be plain ones.

    Raises:
        FormatError: Not a database, cut off, or damaged; or one of the `plain` tables is a view or a virtual table.
    """

    def __init__(
        self, path: Path, name: str, losses: Losses, *, damaged: str = EXPORT_AGAIN, plain: tuple[str, ...] = ()
    ) -> None:
        self.name = name
        self._damaged = damaged
        self._plain = plain
        self._losses = losses
        self._path = path
        self._uri = f"file:{quote(os.fsencode(path.absolute()))}?mode=ro"
        self._size = _check_length(path, name, damaged)
        self._schema = self._inspect()

    def tables(self) -> Sequence[str]:
        return sorted(self._schema)

    def columns(self, table: str) -> frozenset[str]:
        return self._schema[table].columns if table in self._schema else frozenset()

    def count(self, table: str) -> int:
        return int(self._ask(f"SELECT count(*) FROM {quoted(table)}")[0][0]) if table in self._schema else 0

    def estimate(self, table: str) -> int:
        """About so many rows: as the row ids say, which takes no time. Never 0 when there are any."""
        row_id = self._schema[table].row_id if table in self._schema else None
        if row_id is None:
            return self.count(table)
        first, last = self._bounds(table, row_id)
        return 0 if first is None or last is None else min(last - first + 1, self._size)

    def batches(self, table: str, numbers: Sequence[str], texts: Sequence[str] = ()) -> Iterator[pl.DataFrame]:
        yield from self._read(Query(table, tuple(numbers), tuple(texts)))

    def durations(self, table: str, numbers: Sequence[str]) -> Iterator[pl.DataFrame]:
        first = self._ask(f"SELECT start FROM {quoted(table)} LIMIT 1")
        trusted_ns = first[0][0] // 2 if first and isinstance(first[0][0], int) else 0
        yield from self._read(Query(table, (*numbers, "start", "end"), durations_below_ns=trusted_ns))

    def _read(self, query: Query) -> Iterator[pl.DataFrame]:
        """From the table's pages, as far as these are usual; SQLite reads the rest."""
        if not self.estimate(query.table):
            return
        row_ids = self._row_ids(query.table)
        read = 0
        if row_ids is not None and (pages := self._pages(query)):
            with pages:
                for rows in pages.run():
                    read, row_ids = read + rows.columns.height, range(rows.last + 1, row_ids.stop)
                    yield rows.columns
            if pages.is_whole:
                return
        with Pass(self._uri, self.name, query, self._losses, self._damaged) as reading:
            yield from reading.run(self._conditions(query.table, row_ids), read)

    def _pages(self, query: Query) -> PagePass | None:
        """A pass over the table's pages, where its records are plain ones and numbers alone are asked for."""
        places = self._schema[query.table].places
        if query.texts or not all(name in places for name in query.numbers):
            return None
        return start_page_pass(self._path, self._uri, query.table, {name: places[name] for name in query.numbers})

    def _row_ids(self, table: str) -> range | None:
        """From the first to the last; None where the table has none that help to cut it into batches."""
        row_id = self._schema[table].row_id
        first, last = self._bounds(table, row_id) if row_id else (None, None)
        if first is None or last is None or last - first + 1 > self._size:  # more ids than bytes: most are unused
            return None
        return range(first, last + 1)

    def _conditions(self, table: str, row_ids: range | None) -> list[str]:
        """Of the batches of these rows; one that takes all where row ids don't help."""
        if row_ids is None:
            return [""]
        starts, row_id = range(row_ids.start, row_ids.stop, BATCH_ROWS), self._schema[table].row_id
        return [f" WHERE {row_id} BETWEEN {start} AND {start + BATCH_ROWS - 1}" for start in starts]

    def _bounds(self, table: str, row_id: str) -> tuple[int | None, int | None]:
        """The least and the greatest row id. Asked in one query, SQLite would walk through the whole table."""
        ends = (f"(SELECT {end}({row_id}) FROM {quoted(table)})" for end in ("min", "max"))
        first, last = self._ask(f"SELECT {', '.join(ends)}")[0]
        return first, last

    def _inspect(self) -> dict[str, _Table]:
        schema = {}
        whole = "type IN ('table', 'view') AND typeof(name) = 'text'"  # in a damaged schema a name may be of any type
        for kind, name, sql in self._ask(f"SELECT type, name, sql FROM sqlite_master WHERE {whole}"):
            sql = " ".join(str(sql).upper().split())
            if kind == "view" or sql.startswith("CREATE VIRTUAL"):
                self._refuse(name, "view" if kind == "view" else "virtual table")
                continue
            columns = self._ask(f"PRAGMA table_info({quoted(name)})")
            all_columns = self._ask(f"PRAGMA table_xinfo({quoted(name)})")  # generated ones, too
            taken = {str(row[1]).lower() for row in all_columns}
            free = [row_id for row_id in _ROW_IDS if row_id not in taken]
            has_row_ids = bool(free) and "WITHOUT ROWID" not in sql
            is_plain = has_row_ids and len(columns) == len(all_columns) and " DESC" not in sql
            schema[str(name)] = _Table(
                frozenset(str(row[1]) for row in columns),
                free[0] if has_row_ids else None,
                _places(columns) if is_plain else {},
            )
        return schema

    def _refuse(self, name: str, kind: str) -> None:
        """Refuse what stands where a table should; others don't matter."""
        if self._plain and name.startswith(self._plain):
            raise FormatError(
                f"{self.name}: {name}: expected a plain table, found a {kind}",
                hint="An export holds plain tables only, so this file was changed. Export it again.",
            )

    def _ask(self, sql: str) -> list[Any]:
        """The rows of a small answer."""
        try:
            connection = sqlite3.connect(self._uri, uri=True)
            try:
                connection.text_factory = lambda text: text.decode("utf-8", "replace")
                return connection.execute(sql).fetchall()
            finally:
                connection.close()
        except (sqlite3.Error, OverflowError, UnicodeDecodeError) as error:  # a message quotes bytes of the file
            if getattr(error, "sqlite_errorname", "") == "SQLITE_BUSY":
                raise FormatError(
                    f"{self.name}: another program has locked this SQLite database, as one that writes it does",
                    hint="Try again when it is done.",
                ) from error
            raise FormatError(
                f"{self.name}: not readable as an SQLite database: {clean(str(error))}", hint=self._damaged
            ) from error


def _places(columns: Sequence[Sequence[Any]]) -> dict[str, Place]:
    """Of a table's columns, as `PRAGMA table_info` has them: those of whole numbers or of any type."""
    keys = sum(bool(key) for *_, key in columns)
    places = {}
    for number, name, declared, *_, key in columns:
        kind = str(declared).upper()
        if not any(part in kind for part in _REAL):  # SQLite keeps 2.0 of such a column as 2
            places[str(name)] = Place(number, is_row_id=key == 1 and keys == 1 and kind == "INTEGER")
    return places


def _check_length(path: Path, name: str, damaged: str) -> int:
    """The length in bytes. Compare it with the header's count of pages, which says at once that a file was cut off."""
    with path.open("rb") as file:
        header = file.read(100)
    if len(header) < 100:
        raise FormatError(f"{name}: the SQLite database ends after {len(header)} bytes", hint=damaged)
    page_bytes = int.from_bytes(header[16:18], "big")
    page_bytes = 65_536 if page_bytes == 1 else page_bytes
    pages, is_valid = int.from_bytes(header[28:32], "big"), header[24:28] == header[92:96]
    size, wanted = path.stat().st_size, pages * page_bytes
    if is_valid and size < wanted:
        raise FormatError(
            f"{name}: the SQLite database is cut off: expected {wanted:,} bytes as its header says, found {size:,}",
            hint=damaged,
        )
    return size


def plain_file(source: Source, folder: Path) -> Path:
    """The database as a plain file, unpacked into `folder` where need be: SQLite can't read from a stream.

    Raises:
        FormatError: It can't be unpacked whole.
    """
    if source.path and source.rewindable and not source.is_packed:
        return source.path
    plain = folder / "export.sqlite"
    with source.open() as stream, plain.open("wb") as file:
        while block := stream.read(_BLOCK_BYTES):
            file.write(block)
        if stream.damage:
            raise FormatError(f"{source.name}: {stream.damage}", hint="Compress or copy it again.")
    return plain
