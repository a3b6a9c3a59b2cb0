"""What every kind of database gives: the columns of its tables, in batches."""

from collections.abc import Iterator, Sequence
from typing import Protocol

import polars as pl


class Export(Protocol):
    """One database, open. Its tables and columns are those that the file has: ask before reading."""

    name: str

    def tables(self) -> Sequence[str]:
        """Names of all tables."""

    def columns(self, table: str) -> frozenset[str]:
        """Names of the columns of `table`; empty when there is no such table."""

    def count(self, table: str) -> int:
        """Rows of `table`; 0 when there is no such table."""

    def estimate(self, table: str) -> int:
        """About so many rows, reported at once; 0 only when there are none."""

    def batches(self, table: str, numbers: Sequence[str], texts: Sequence[str] = ()) -> Iterator[pl.DataFrame]:
        """The rows of `table` in the file's order: `numbers` as Int64, `texts` as String.

        What isn't a whole number, or isn't UTF-8, is null or replaced, and counted.
        """

    def durations(self, table: str, numbers: Sequence[str]) -> Iterator[pl.DataFrame]:
        """As `batches`, with how long each row took, in the quickest way: as `dur_ns`, or as `start` and `end`."""


def read_all(export: Export, table: str, numbers: Sequence[str], texts: Sequence[str] = ()) -> pl.DataFrame:
    """Columns of a small table, whole. A column that it lacks is null; a table that isn't there has no rows."""
    schema = {**dict.fromkeys(numbers, pl.Int64), **dict.fromkeys(texts, pl.String)}
    present = export.columns(table)
    found = [[name for name in names if name in present] for names in (numbers, texts)]
    batches = export.batches(table, *found) if any(found) else ()
    frames: list[pl.DataFrame] = [pl.DataFrame(schema=schema), *batches]
    return pl.concat(frames, how="diagonal")
