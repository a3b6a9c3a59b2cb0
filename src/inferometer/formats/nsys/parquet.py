"""A `parquetdir` export: a folder with one Parquet file per table, named after it."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from inferometer.errors import FormatError, clean
from inferometer.trace.losses import Losses
from inferometer.trace.parquet_pages import ImpossibleParquet, check_parquet

_BATCH_ROWS = 1 << 18


class ParquetExport:
    """An open `parquetdir` export; see `Export`.

    Raises:
        FormatError: One of its files is not a readable Parquet file.
    """

    def __init__(self, path: Path, name: str, losses: Losses) -> None:
        self.name = name
        self._losses = losses
        self._files = {file.stem: file for file in sorted(path.glob("*.parquet")) if file.is_file()}
        self._columns = {table: self._schema(table) for table in self._files}

    def tables(self) -> Sequence[str]:
        return sorted(self._files)

    def columns(self, table: str) -> frozenset[str]:
        return self._columns.get(table, frozenset())

    def count(self, table: str) -> int:
        return int(self._collect(table, self._scan(table).select(pl.len())).item()) if table in self._files else 0

    def estimate(self, table: str) -> int:
        return self.count(table)

    def batches(self, table: str, numbers: Sequence[str], texts: Sequence[str] = ()) -> Iterator[pl.DataFrame]:
        for offset in range(0, self.count(table), _BATCH_ROWS):
            rows = self._collect(table, self._scan(table).select(*numbers, *texts).slice(offset, _BATCH_ROWS))
            yield rows.with_columns(
                *(self._whole(table, rows[name]) for name in numbers), pl.col(texts).cast(pl.String, strict=False)
            )

    def durations(self, table: str, numbers: Sequence[str]) -> Iterator[pl.DataFrame]:
        yield from self.batches(table, [*numbers, "start", "end"])

    def _whole(self, table: str, column: pl.Series) -> pl.Series:
        """Integers of any width as Int64; anything else is null, and counted."""
        if column.dtype.is_integer() or column.dtype == pl.Null:
            whole = column.cast(pl.Int64, strict=False)
        else:
            whole = pl.Series(column.name, [None] * len(column), dtype=pl.Int64)
        self._losses.count("wrong_type", whole.null_count() - column.null_count(), category=table, example=column.name)
        return whole

    def _scan(self, table: str) -> pl.LazyFrame:
        return pl.scan_parquet(self._files[table], glob=False)

    def _schema(self, table: str) -> frozenset[str]:
        try:
            check_parquet(self._files[table])
            return frozenset(self._scan(table).collect_schema().names())
        except (ImpossibleParquet, pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            raise self._unreadable(table, error) from error

    def _collect(self, table: str, rows: pl.LazyFrame) -> pl.DataFrame:
        try:
            return rows.collect()
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            raise self._unreadable(table, error) from error

    def _unreadable(self, table: str, error: BaseException) -> FormatError:
        why = clean(str(error).split("\n")[0])
        return FormatError(
            f"{self.name}/{table}.parquet: not a readable Parquet file: {why}",
            hint="Export it again with `nsys export --type parquetdir`.",
        )
