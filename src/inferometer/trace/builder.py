"""How a reader fills a trace: batches of columns, never an object per event.

Small batches are merged as they come. What doesn't fit the memory budget goes to Parquet parts on disk, so a trace
of any size is built in bounded memory; with `folder` those parts are the store itself.
"""

from collections.abc import Iterable, Mapping
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

import msgspec
import polars as pl

from inferometer.privacy.metadata import Names
from inferometer.trace import series
from inferometer.trace.facts import Facts
from inferometer.trace.losses import Losses
from inferometer.trace.private import blank_batch, blank_facts
from inferometer.trace.tables import ALL_TABLES, TABLES
from inferometer.trace.trace import Trace

MEMORY_BUDGET_BYTES = 512 << 20
PART_BYTES = 48 << 20
_MERGE_BATCHES = 32
_LARGE_ROWS = 100_000  # batches of so many rows are kept as they are: copying them into one would gain nothing

Wanted = Iterable[str] | Mapping[str, Iterable[str]] | None
Values = series.Values


class RowsListener(Protocol):
    """Who wants rows while they are read, for a first answer before the last."""

    def take(self, table: str, rows: int, batch: pl.LazyFrame) -> None:
        """`rows` rows of a table, to be collected at once or never; columns without values may be missing."""

    def start_over(self) -> None:
        """Forget the rows so far: the reader begins anew."""


class _Pending(msgspec.Struct):
    """Batches of one table in the order they came: parts on disk first, then merged ones, then small ones.

    `compact`: the parts that this process wrote for itself, with categories as memory has them, and without columns
    that have no value in the part.
    """

    table: str
    parts: list[Path] = msgspec.field(default_factory=list)
    compact: set[Path] = msgspec.field(default_factory=set)
    merged: list[pl.DataFrame] = msgspec.field(default_factory=list)
    small: list[pl.DataFrame] = msgspec.field(default_factory=list)
    merged_bytes: int = 0
    small_rows: int = 0
    rows: int = 0

    def add(self, batch: pl.DataFrame) -> int:
        """Take a batch; return by how many bytes the merged ones grew."""
        self.small.append(batch)
        self.rows += batch.height
        self.small_rows += batch.height
        return self.merge() if len(self.small) >= _MERGE_BATCHES or self.small_rows >= _LARGE_ROWS else 0

    def merge(self) -> int:
        if not self.small:
            return 0
        are_large = self.small_rows >= _LARGE_ROWS * len(self.small)
        self.merged.append(pl.concat(self.small, how="diagonal_relaxed", rechunk=not are_large))
        self.small.clear()
        self.small_rows = 0
        size = int(self.merged[-1].estimated_size())
        self.merged_bytes += size
        return size

    def on_disk(self) -> list[pl.LazyFrame]:
        """The rows of parts, in their order; those of the same types at once."""
        by_types = groupby(self.parts, key=self.compact.__contains__)
        return [self.read([*parts]) for _, parts in by_types]

    def read(self, parts: list[Path]) -> pl.LazyFrame:
        """The rows of parts of the same types."""
        if parts[0] not in self.compact:
            return pl.scan_parquet(parts, glob=False)
        types = TABLES[self.table].compact_schema
        return pl.scan_parquet(parts, schema=types, missing_columns="insert", glob=False)


class TraceBuilder:
    """Collects batches of columns, losses and the pieces of a trace.

    Args:
        tables: Tables that the question needs; `add` ignores the others, `wants` says which. A mapping also names the
            columns that it needs of each; a reader that gains by it reads no others and says so with `narrow`.
        folder: Write every table there as Parquet parts (the making of a store) instead of keeping it in memory.
        memory_bytes: Above this, tables go to a temporary folder that the trace owns.
        spill_to: Where this folder is made; None: where the system makes such.
        listener: Given each batch as it comes, before what only the file's end holds is filled in.
    """

    def __init__(
        self,
        tables: Wanted = None,
        *,
        folder: Path | None = None,
        memory_bytes: int = MEMORY_BUDGET_BYTES,
        spill_to: Path | None = None,
        listener: RowsListener | None = None,
    ) -> None:
        self._listener = listener
        self.tables = ALL_TABLES if tables is None else frozenset(tables)
        self.losses = Losses(self.tables)
        self.constants: dict[str, int | str | None] = {}
        self.names = Names()
        self._columns = (
            {table: frozenset(names) for table, names in tables.items()} if isinstance(tables, Mapping) else {}
        )
        self._narrowed: set[str] = set()
        self._folder, self._spill_to = folder, spill_to
        self._scratch: TemporaryDirectory[str] | None = None
        self._memory_bytes = memory_bytes
        self._held_bytes = 0
        self._pending: dict[str, _Pending] = {}

    def wants(self, *tables: str) -> bool:
        """Whether the question needs any of `tables`."""
        return not self.tables.isdisjoint(tables)

    def columns(self, table: str) -> frozenset[str] | None:
        """The columns that the question names of `table`; None: all of them."""
        return self._columns.get(table)

    def narrow(self, table: str) -> frozenset[str]:
        """The columns that the question needs of `table`, where the reader will add no others.

        The trace then has only these: touching another is an error, since nulls would be a wrong answer.
        """
        if table not in self._columns:
            return frozenset(TABLES[table].schema)
        self._narrowed.add(table)
        return self._columns[table]

    def add(self, table: str, rows: int, columns: Mapping[str, Values]) -> None:
        """Add `rows` rows, column by column; a single value fills its column, a column left out is null.

        Text may come as categories, which keeps names that repeat small; the trace's tables show it as text.
        `constants` fill the columns of their names in every table that has them and isn't given them. Values that the
        column's type can't hold become null and are counted as `wrong_type` or `number_out_of_range`. What looks like
        a secret becomes `***` and is counted.
        """
        if rows == 0 or table not in self.tables:
            return
        schema = TABLES[table].schema
        columns = {**{name: value for name, value in self.constants.items() if name in schema}, **columns}
        self._take(table, blank_batch(table, series.make_batch(table, rows, columns, self.losses), self.losses))

    def add_frame(self, table: str, frame: pl.DataFrame) -> None:
        """Add rows whose columns have the declared types, and whose texts hold no secret (`private.hold_secrets`)."""
        if frame.height == 0 or table not in self.tables:
            return
        schema = TABLES[table].schema
        fixed = [
            pl.lit(value, dtype=schema[name]).alias(name)
            for name, value in self.constants.items()
            if name in schema and name not in frame.columns
        ]
        self._take(table, frame.with_columns(fixed))

    def _take(self, table: str, batch: pl.DataFrame) -> None:
        rows = batch.height
        if self._listener:
            self._listener.take(table, rows, batch.lazy())
        self._held_bytes += self._of(table).add(batch)
        if self._folder is not None and self._pending[table].merged_bytes > PART_BYTES:
            self._write_part(table)
        elif self._folder is None and self._held_bytes > self._memory_bytes:
            self._spill()

    def take_part(self, table: str, path: Path, rows: int) -> None:
        """Take a Parquet file in `work`: `rows` rows of `table`, all columns, which follow those added before."""
        self._write_part(table)
        if self._listener:
            self._listener.take(table, rows, pl.scan_parquet(path, glob=False))
        pending = self._of(table)
        pending.parts.append(path.replace(self.work / f"{table}-{len(pending.parts):05}.parquet"))
        pending.rows += rows

    def load(self) -> None:
        """Take the rows of parts into memory, as far as it may hold them."""
        for pending in self._pending.values():
            if not pending.parts or pending.merged or pending.small:
                continue
            frame = pl.concat(pending.on_disk(), how="vertical_relaxed").collect()
            size = int(frame.estimated_size())
            if self._held_bytes + size > self._memory_bytes:
                return
            for part in pending.parts:
                part.unlink()
            pending.parts.clear()
            pending.compact.clear()
            pending.merged, pending.merged_bytes = [frame], size
            self._held_bytes += size
        self._drop_scratch()

    @property
    def work(self) -> Path:
        """A folder for files that become parts: on the same disk as these, and gone when the trace is."""
        if self._folder is not None:
            return self._folder
        if self._scratch is None:
            self._scratch = TemporaryDirectory(prefix="inferometer-", dir=self._spill_to, ignore_cleanup_errors=True)
        return Path(self._scratch.name)

    @property
    def is_stored(self) -> bool:
        """Whether parts are those of a store."""
        return self._folder is not None

    def fill(self, table: str, values: Mapping[str, int | str], *, first_row: int = 0) -> None:
        """Set null values of `table`'s columns from row `first_row` on: facts that stand at the end of a file."""
        if table not in self._pending or not values:
            return
        pending = self._merged(table)
        seen = 0
        for path in pending.parts:
            part = pending.read([path]).collect()
            filled = _filled(table, part, values, first_row - seen)
            if path in pending.compact:
                filled = TABLES[table].compact(filled.lazy()).collect()
            filled.write_parquet(path)
            seen += part.height
        for i, batch in enumerate(pending.merged):
            pending.merged[i] = _filled(table, batch, values, first_row - seen)
            seen += batch.height

    def reset(self) -> None:
        """Forget everything added and counted: the reader begins anew."""
        for pending in self._pending.values():
            for part in pending.parts:
                part.unlink()
        self._pending.clear()
        self._drop_scratch()
        self._narrowed.clear()
        self.constants.clear()
        self._held_bytes = 0
        self.losses = Losses(self.tables)
        self.names = Names()
        if self._listener:
            self._listener.start_over()

    def rows(self, table: str) -> int:
        """Rows of `table` so far."""
        return self._pending[table].rows if table in self._pending else 0

    def frame(self, table: str) -> pl.LazyFrame:
        """`table` as it stands, with all declared columns."""
        return TABLES[table].plain(self.raw(table))

    def raw(self, table: str) -> pl.LazyFrame:
        """The same as it is kept: text may be categories."""
        if table not in self._pending:
            return self._as_asked(table, TABLES[table].empty)
        pending = self._merged(table)
        frames = [TABLES[table].complete(batch.lazy()) for batch in pending.merged]
        frames = [*pending.on_disk(), *frames]
        return self._as_asked(table, pl.concat(frames, how="vertical_relaxed") if len(frames) > 1 else frames[0])

    def finish(self, facts: Facts) -> Trace:
        """The trace. The builder must not be used afterwards."""
        for table in list(self._pending):
            if self._folder is not None:
                self._write_part(table)
            else:
                self._merged(table)
        if self._folder is None and (self._scratch or self._held_bytes > self._memory_bytes):
            self._spill()
        frames = {table: self.raw(table) for table in {*self._pending, *self._narrowed}}
        facts = blank_facts(facts, self.losses)
        return Trace(facts, frames, self.losses, scratch=self._scratch, names=self.names)

    def parts(self) -> dict[str, tuple[int, list[Path]]]:
        """Rows and Parquet parts of each table that was written to `folder`."""
        return {table: (pending.rows, pending.parts) for table, pending in self._pending.items()}

    def _as_asked(self, table: str, frame: pl.LazyFrame) -> pl.LazyFrame:
        if table not in self._narrowed:
            return frame
        return frame.select(name for name in TABLES[table].schema if name in self._columns[table])

    def _of(self, table: str) -> _Pending:
        return self._pending.setdefault(table, _Pending(table))

    def _merged(self, table: str) -> _Pending:
        pending = self._of(table)
        self._held_bytes += pending.merge()
        return pending

    def _drop_scratch(self) -> None:
        """Nothing is in it any more."""
        if self._scratch and not any(pending.parts for pending in self._pending.values()):
            self._scratch.cleanup()
            self._scratch = None

    def _spill(self) -> None:
        for table in self._pending:
            self._write_part(table)

    def _write_part(self, table: str) -> None:
        pending = self._merged(table)
        if not pending.merged:
            return
        path = self.work / f"{table}-{len(pending.parts):05}.parquet"
        frame = pl.concat(pending.merged, how="diagonal_relaxed")
        rows = TABLES[table].complete(frame.lazy())
        if self.is_stored:
            TABLES[table].plain(rows).collect().write_parquet(path, compression="zstd", compression_level=1)
        else:  # read again by each analysis
            nulls = frame.null_count().row(0, named=True)
            valued = [name for name, count in nulls.items() if count < frame.height] or frame.columns[:1]
            TABLES[table].compact(rows).select(valued).collect().write_parquet(
                path, compression="uncompressed", statistics=False
            )
            pending.compact.add(path)
        self._held_bytes -= pending.merged_bytes
        pending.parts.append(path)
        pending.merged, pending.merged_bytes = [], 0


def _filled(table: str, frame: pl.DataFrame, values: Mapping[str, int | str], first_row: int) -> pl.DataFrame:
    if first_row >= frame.height:
        return frame
    index = pl.int_range(pl.len())
    columns = []
    for name, value in values.items():
        if name in frame.columns and not frame[name].null_count():
            continue
        dtype = TABLES[table].schema[name]
        old = pl.col(name) if name in frame.columns else pl.lit(None, dtype=dtype)
        new = pl.lit(value, dtype=dtype)
        columns.append(pl.when(old.is_null() & (index >= first_row)).then(new).otherwise(old).alias(name))
    return frame.with_columns(columns)
