"""An `.sqlite` export: straight into columns through ADBC, by ranges of row ids, two at a time.

What is in the file decides, not what its schema says: SQLite keeps any type in any column. A batch that is not all
whole numbers, or not all UTF-8, is read again with care, and what can't be read is counted. Only plain tables are read:
a view or a virtual table could run anything.
"""

import os
import sqlite3
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any
from urllib.parse import quote

import polars as pl

from inferometer.errors import FormatError
from inferometer.trace.losses import Losses

_BATCH_ROWS = 1 << 18
_INFER_ROWS = 8_192  # a type found in so many rows is taken for the batch's; a later row of another type is an error
_WORKERS = 2
_AHEAD = 2 * _WORKERS
_ROW_IDS = ("rowid", "_rowid_", "oid")
_OURS = ("StringIds", "CUPTI_", "NVTX_", "CUDA_", "TARGET_INFO_")
_DAMAGED = "The database is damaged or was cut off: export it again with `nsys export --type sqlite`."


@dataclass(frozen=True)
class _Table:
    columns: frozenset[str]
    row_id: str | None


class SqliteExport:
    """An open `.sqlite` export; see `Export`.

    Raises:
        FormatError: Not a database, cut off, or damaged; or a table of an export is a view or a virtual table.
    """

    def __init__(self, path: Path, name: str, losses: Losses) -> None:
        self.name = name
        self._losses = losses
        self._uri = f"file:{quote(os.fsencode(path.absolute()))}?mode=ro"
        self._size = _check_length(path, name)
        self._schema = self._inspect()

    def tables(self) -> Sequence[str]:
        return sorted(self._schema)

    def columns(self, table: str) -> frozenset[str]:
        return self._schema[table].columns if table in self._schema else frozenset()

    def count(self, table: str) -> int:
        return int(self._ask(f"SELECT count(*) FROM {_quoted(table)}")[0][0]) if table in self._schema else 0

    def estimate(self, table: str) -> int:
        """About so many rows: as the row ids say, which takes no time. Never 0 when there are any."""
        row_id = self._schema[table].row_id if table in self._schema else None
        if row_id is None:
            return self.count(table)
        first, last = self._bounds(table, row_id)
        return 0 if first is None or last is None else min(last - first + 1, self._size)

    def batches(self, table: str, numbers: Sequence[str], texts: Sequence[str] = ()) -> Iterator[pl.DataFrame]:
        if not self.estimate(table):
            return
        with _Reading(self._uri, self.name, table, numbers, texts, self._losses) as reading:
            yield from reading.run(self._ranges(table))

    def _ranges(self, table: str) -> list[str]:
        """Conditions that cut the table into batches; one that takes all where row ids don't help."""
        row_id = self._schema[table].row_id
        if row_id is None:
            return [""]
        first, last = self._bounds(table, row_id)
        if (
            first is None or last is None or last - first + 1 > self._size
        ):  # fewer bytes than ids: there are far fewer rows
            return [""]
        starts = range(first, last + 1, _BATCH_ROWS)
        return [f" WHERE {row_id} BETWEEN {start} AND {start + _BATCH_ROWS - 1}" for start in starts]

    def _bounds(self, table: str, row_id: str) -> tuple[int | None, int | None]:
        """The least and the greatest row id. Asked in one query, SQLite would walk through the whole table."""
        ends = (f"(SELECT {end}({row_id}) FROM {_quoted(table)})" for end in ("min", "max"))
        first, last = self._ask(f"SELECT {', '.join(ends)}")[0]
        return first, last

    def _inspect(self) -> dict[str, _Table]:
        schema = {}
        for kind, name, sql in self._ask("SELECT type, name, sql FROM sqlite_master WHERE type IN ('table', 'view')"):
            sql = " ".join(str(sql).upper().split())
            if kind == "view" or sql.startswith("CREATE VIRTUAL"):
                self._refuse(name, "view" if kind == "view" else "virtual table")
                continue
            columns = frozenset(str(row[1]) for row in self._ask(f"PRAGMA table_info({_quoted(name)})"))
            free = [row_id for row_id in _ROW_IDS if row_id not in {column.lower() for column in columns}]
            schema[str(name)] = _Table(columns, free[0] if free and "WITHOUT ROWID" not in sql else None)
        return schema

    def _refuse(self, name: str, kind: str) -> None:
        """Refuse what stands where a table of an export should; others don't matter."""
        if name.startswith(_OURS):
            raise FormatError(
                f"{self.name}: {name}: want a plain table, found a {kind}",
                hint="An export holds plain tables only, so this file was changed. Export the report again.",
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
        except (sqlite3.Error, OverflowError) as error:
            raise FormatError(f"{self.name}: not readable as an SQLite database: {error}", hint=_DAMAGED) from error


class _Reading:
    """One pass over a table by a few workers, each with a connection of its own; batches come in the file's order."""

    def __init__(
        self, uri: str, name: str, table: str, numbers: Sequence[str], texts: Sequence[str], losses: Losses
    ) -> None:
        self._uri, self._name, self._table = uri, name, table
        self._numbers, self._texts = numbers, texts
        self._losses = losses
        self._pool = ThreadPoolExecutor(_WORKERS)
        self._connections: SimpleQueue[Any] = SimpleQueue()
        self._opened: list[Any] = []

    def __enter__(self) -> "_Reading":
        from adbc_driver_sqlite import dbapi

        for _ in range(_WORKERS + 1):
            self._opened.append(dbapi.connect(self._uri))
            self._connections.put(self._opened[-1])
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)
        for connection in self._opened:
            connection.close()

    def run(self, ranges: Sequence[str]) -> Iterator[pl.DataFrame]:
        rows = self._pool.submit(self._fetch, f"SELECT count(*) FROM {_quoted(self._table)}", 1)
        waiting: deque[tuple[str, Future[pl.DataFrame | None]]] = deque()
        seen = 0
        for where in (*ranges, *[None] * _AHEAD):
            if where is not None:
                waiting.append((where, self._pool.submit(self._quick, where)))
            if waiting and (where is None or len(waiting) > _AHEAD):
                batch = self._finish(*waiting.popleft())
                seen += batch.height
                yield batch
        if seen != (wanted := rows.result().item()):
            raise FormatError(f"{self._name}: {self._table}: want {wanted:,} rows, found {seen:,}", hint=_DAMAGED)

    def _finish(self, where: str, quick: "Future[pl.DataFrame | None]") -> pl.DataFrame:
        batch = quick.result()
        return self._careful(where) if batch is None else batch

    def _quick(self, where: str) -> pl.DataFrame | None:
        """A batch as it is; None when it holds something else than whole numbers and UTF-8."""
        columns = [_quoted(name) for name in self._numbers]
        columns += [f"CAST({_quoted(name)} AS BLOB) AS {_quoted(name)}" for name in self._texts]
        try:
            batch = self._fetch(f"SELECT {', '.join(columns)} FROM {_quoted(self._table)}{where}", _INFER_ROWS)
            if any(batch[name].dtype != pl.Int64 for name in self._numbers):
                return None
            return batch.with_columns(_text(batch[name]) for name in self._texts)
        except pl.exceptions.PolarsError:  # a type mismatch, bytes that aren't UTF-8; damage shows again with care
            return None

    def _careful(self, where: str) -> pl.DataFrame:
        """The batch with nulls for what isn't a whole number, and U+FFFD for what isn't UTF-8; both are counted."""
        columns, counts = [], []
        for name in map(_quoted, self._numbers):
            columns.append(f"CASE WHEN typeof({name}) = 'integer' THEN {name} END AS {name}")
            counts.append(f"count(CASE WHEN typeof({name}) NOT IN ('integer', 'null') THEN 1 END)")
        columns += [f"CAST({_quoted(name)} AS BLOB) AS {_quoted(name)}" for name in self._texts]
        source = f" FROM {_quoted(self._table)}{where}"
        try:
            batch = self._fetch(f"SELECT {', '.join(columns)}{source}", 1 << 30)
            found = self._fetch(f"SELECT {', '.join(counts)}{source}", 1).row(0) if counts else ()
        except pl.exceptions.PolarsError as error:
            why = str(error).removeprefix("got external error: [SQLite] ")
            raise FormatError(f"{self._name}: {self._table}: {why}", hint=_DAMAGED) from error
        for name, n in zip(self._numbers, found, strict=False):
            self._losses.count("wrong_type", n, category=self._table, example=name)
        texts = [self._mended(batch[name]) for name in self._texts]
        return batch.with_columns(pl.col(self._numbers).cast(pl.Int64)).with_columns(texts)

    def _fetch(self, sql: str, infer_rows: int) -> pl.DataFrame:
        connection = self._connections.get()
        try:
            with connection.cursor() as cursor:
                cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": str(infer_rows)})
                cursor.execute(sql)
                batch: pl.DataFrame = cursor.fetch_polars()
                return batch
        except _adbc_errors() as error:
            why = str(error).split("\n")[0]
            raise FormatError(f"{self._name}: {self._table}: {why}", hint=_DAMAGED) from error
        finally:
            self._connections.put(connection)

    def _mended(self, series: pl.Series) -> pl.Series:
        if series.dtype != pl.Binary:
            return _text(series)
        texts = [None if raw is None else raw.decode("utf-8", "replace") for raw in series]
        damaged = sum("\ufffd" in text for text in texts if text)
        self._losses.count("invalid_utf8", damaged, category=self._table)
        return pl.Series(series.name, texts, dtype=pl.String)


def _adbc_errors() -> tuple[type[Exception], ...]:
    """What ADBC raises for a database that it can't read."""
    import adbc_driver_manager

    return (adbc_driver_manager.Error,)


def _text(series: pl.Series) -> pl.Series:
    """Raw bytes as text; raises `PolarsError` when they aren't UTF-8."""
    return series.cast(pl.String)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _check_length(path: Path, name: str) -> int:
    """The length in bytes. Compare it with the header's count of pages, which says at once that a file was cut off."""
    with path.open("rb") as file:
        header = file.read(100)
    if len(header) < 100:
        raise FormatError(f"{name}: the SQLite database ends after {len(header)} bytes", hint=_DAMAGED)
    page_bytes = int.from_bytes(header[16:18], "big")
    page_bytes = 65_536 if page_bytes == 1 else page_bytes
    pages, is_valid = int.from_bytes(header[28:32], "big"), header[24:28] == header[92:96]
    size, wanted = path.stat().st_size, pages * page_bytes
    if is_valid and size < wanted:
        raise FormatError(
            f"{name}: the SQLite database is cut off: want {wanted:,} bytes as its header says, found {size:,}",
            hint=_DAMAGED,
        )
    return size
