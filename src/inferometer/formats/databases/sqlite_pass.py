"""One pass over a table of a database: ranges of rows by a few workers side by side, into columns through ADBC.

A batch is read quickly, trusting what is usual, and again with care where that fails to hold: SQLite keeps any type in
any column, ADBC takes types from the first rows, and polars takes text to be UTF-8.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

import polars as pl

from inferometer.errors import FormatError, clean
from inferometer.trace.losses import Losses

BATCH_ROWS = 1 << 18
_INFER_ROWS = 8_192  # a type found in so many rows is taken for the batch's; a later row of another type is an error
_WORKERS = 2
_AHEAD = 2 * _WORKERS
_WAIT_MS = 1_000  # for a lock: the first to open a database with a write-ahead log has it for a moment


@dataclass(frozen=True)
class Query:
    """Columns of a table. With `durations_below_ns`, a quick batch has `dur_ns` in the place of `start` and `end`.

    A column less is a third of the time. Batches in which a duration is below 0, or not below that limit, are read with
    care, and have both times.
    """

    table: str
    numbers: tuple[str, ...]
    texts: tuple[str, ...] = ()
    durations_below_ns: int | None = None


class Pass:
    """One pass over a table by a few workers, each with a connection of its own; batches come in the file's order."""

    def __init__(self, uri: str, name: str, query: Query, losses: Losses, damaged: str) -> None:
        self._uri, self._name, self._query, self._damaged = uri, name, query, damaged
        self._losses = losses
        self._pool = ThreadPoolExecutor(_WORKERS)
        self._connections: SimpleQueue[Any] = SimpleQueue()
        self._opened: list[Any] = []

    def __enter__(self) -> "Pass":
        from adbc_driver_sqlite import dbapi

        for _ in range(_WORKERS + 1):
            self._opened.append(dbapi.connect(self._uri))
            with self._opened[-1].cursor() as cursor:
                cursor.execute(f"PRAGMA busy_timeout = {_WAIT_MS}")
            self._connections.put(self._opened[-1])
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)
        for connection in self._opened:
            connection.close()

    def run(self, ranges: Sequence[str], seen: int = 0) -> Iterator[pl.DataFrame]:
        """The rows of these ranges, after the `seen` that were read in another way."""
        rows = self._pool.submit(self._fetch, f"SELECT count(*) FROM {quoted(self._query.table)}", 1)
        waiting: deque[tuple[str, Future[pl.DataFrame | None]]] = deque()
        for where in (*ranges, *[None] * _AHEAD):
            if where is not None:
                waiting.append((where, self._pool.submit(self._quick, where)))
            if waiting and (where is None or len(waiting) > _AHEAD):
                batch = self._finish(*waiting.popleft(), rows)
                seen += batch.height
                yield batch
        if seen != (wanted := rows.result().item()):
            raise FormatError(
                f"{self._name}: {self._query.table}: expected {wanted:,} rows, found {seen:,}", hint=self._damaged
            )

    def _finish(self, where: str, quick: "Future[pl.DataFrame | None]", rows: "Future[pl.DataFrame]") -> pl.DataFrame:
        batch = quick.result()
        return self._careful(where, BATCH_ROWS if where else rows.result().item()) if batch is None else batch

    def _quick(self, where: str) -> pl.DataFrame | None:
        """A batch as it is; None when it holds something else than whole numbers and UTF-8."""
        query = self._query
        numbers = [quoted(name) for name in query.numbers]
        if query.durations_below_ns is not None:
            numbers = [name for name in numbers if name not in ('"start"', '"end"')] + ['"end" - "start" AS dur_ns']
        texts = [f"CAST({quoted(name)} AS BLOB) AS {quoted(name)}" for name in query.texts]
        try:
            batch = self._fetch(f"SELECT {', '.join(numbers + texts)} FROM {quoted(query.table)}{where}", _INFER_ROWS)
            if any(dtype != pl.Int64 for dtype in batch.drop(query.texts).dtypes) or not self._can_trust(batch):
                return None
            return batch.with_columns(_text(batch[name]) for name in query.texts) if query.texts else batch
        except pl.exceptions.PolarsError:  # a type mismatch, bytes that aren't UTF-8; damage shows again with care
            return None

    def _can_trust(self, batch: pl.DataFrame) -> bool:
        """Whether differences were of numbers: SQLite takes text for 0, and the difference is below 0 or an end."""
        below_ns = self._query.durations_below_ns
        if below_ns is None or not batch.height:
            return True
        durations = batch["dur_ns"]
        return not durations.null_count() and bool(((durations >= 0) & (durations < below_ns)).all())

    def _careful(self, where: str, rows: int) -> pl.DataFrame:
        """The batch with nulls for what isn't a whole number, and U+FFFD for what isn't UTF-8; both are counted.

        ADBC takes the types from all of its `rows`: it allocates room for so many at once, and ends the process where
        it can't have it.
        """
        columns, counts = [], []
        for name in map(quoted, self._query.numbers):
            columns.append(f"CASE WHEN typeof({name}) = 'integer' THEN {name} END AS {name}")
            counts.append(f"count(CASE WHEN typeof({name}) NOT IN ('integer', 'null') THEN 1 END)")
        columns += [f"CAST({quoted(name)} AS BLOB) AS {quoted(name)}" for name in self._query.texts]
        source = f" FROM {quoted(self._query.table)}{where}"
        try:
            batch = self._fetch(f"SELECT {', '.join(columns)}{source}", max(1, rows))
            found = self._fetch(f"SELECT {', '.join(counts)}{source}", 1).row(0) if counts else ()
        except pl.exceptions.PolarsError as error:
            why = clean(str(error).removeprefix("got external error: [SQLite] "))
            raise FormatError(f"{self._name}: {self._query.table}: {why}", hint=self._damaged) from error
        for name, n in zip(self._query.numbers, found, strict=False):
            self._losses.count("wrong_type", n, category=self._query.table, example=name)
        texts = [self._mended(batch[name]) for name in self._query.texts]
        return batch.with_columns(pl.col(self._query.numbers).cast(pl.Int64)).with_columns(texts)

    def _fetch(self, sql: str, infer_rows: int) -> pl.DataFrame:
        connection = self._connections.get()
        try:
            with connection.cursor() as cursor:
                cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": str(infer_rows)})
                cursor.execute(sql)
                batch: pl.DataFrame = cursor.fetch_polars()
                return batch
        except _adbc_errors() as error:
            why = clean(str(error).split("\n")[0])
            raise FormatError(f"{self._name}: {self._query.table}: {why}", hint=self._damaged) from error
        finally:
            self._connections.put(connection)

    def _mended(self, series: pl.Series) -> pl.Series:
        if series.dtype != pl.Binary:
            return _text(series)
        texts = [None if raw is None else raw.decode("utf-8", "replace") for raw in series]
        damaged = sum("\ufffd" in text for text in texts if text)
        self._losses.count("invalid_utf8", damaged, category=self._query.table)
        return pl.Series(series.name, texts, dtype=pl.String)


def _adbc_errors() -> tuple[type[Exception], ...]:
    """What ADBC raises for a database that it can't read."""
    import adbc_driver_manager

    return (adbc_driver_manager.Error,)


def _text(series: pl.Series) -> pl.Series:
    """Raw bytes as text; raises `PolarsError` when they aren't UTF-8."""
    return series.cast(pl.String)


def quoted(name: str) -> str:
    """A name as SQL takes it, whatever it holds."""
    return '"' + name.replace('"', '""') + '"'
