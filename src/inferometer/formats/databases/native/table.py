"""A table's columns of whole numbers, block by block of its pages."""

import ctypes
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

BLOCK_BYTES: Final = 16 << 20


class Place(NamedTuple):
    """Where a column stands in its table's records. `is_row_id`: null stands for the row's number."""

    number: int
    is_row_id: bool = False


class Rows(NamedTuple):
    """Of one block: the columns, and the highest number that a row of it may have."""

    columns: pl.DataFrame
    last: int


class UnusualTable(Exception):
    """SQLite itself must read what is asked for."""


class _Column(ctypes.Structure):
    _fields_ = (
        ("number", ctypes.c_int32),
        ("is_row_id", ctypes.c_int32),
        ("values", ctypes.c_void_p),
        ("is_null", ctypes.c_void_p),
        ("nulls", ctypes.c_int64),
    )


class NativeTable:
    """The table of `path` whose first page is `root`; blocks may be read by several threads.

    Raises:
        UnusualTable: Its pages aren't as SQLite usually writes them, or stand in a log besides.
    """

    def __init__(self, library: ctypes.CDLL, path: Path, root: int) -> None:
        self._library = library
        self._handle = library.sqlite_table(os.fsencode(path), root)
        if self._handle is None:
            raise UnusualTable
        self._pages = library.sqlite_pages(self._handle)
        self._block_pages = max(1, BLOCK_BYTES // library.sqlite_page_bytes(self._handle))

    def blocks(self) -> Sequence[int]:
        """Numbers for `read`, in the order of rows."""
        return range(0, self._pages, self._block_pages)

    def read(self, block: int, columns: dict[str, Place]) -> Rows:
        """The rows of one block.

        Raises:
            UnusualTable: A value isn't a whole number or null, or lies elsewhere; or the table is damaged.
        """
        pages = min(self._block_pages, self._pages - block)
        handle = self._library.sqlite_block(self._handle, block, pages)
        if handle is None:
            raise UnusualTable
        try:
            return Rows(self._columns(handle, columns), self._library.sqlite_last(self._handle, block + pages - 1))
        finally:
            self._library.sqlite_block_free(handle)

    def _columns(self, handle: int, columns: dict[str, Place]) -> pl.DataFrame:
        rows = self._library.sqlite_rows(handle)
        asked = (_Column * len(columns))()
        values = [np.empty(rows, dtype=np.int64) for _ in columns]
        nulls = [np.zeros(rows, dtype=np.bool_) for _ in columns]
        for column, place, numbers, is_null in zip(asked, columns.values(), values, nulls, strict=True):
            column.number, column.is_row_id = place
            column.values, column.is_null = numbers.ctypes.data, is_null.ctypes.data
        if self._library.sqlite_read(handle, asked, len(asked)):
            raise UnusualTable
        found = [
            pl.Series(name, numbers) if not column.nulls else _with_nulls(name, numbers, is_null)
            for name, column, numbers, is_null in zip(columns, asked, values, nulls, strict=True)
        ]
        return pl.DataFrame(found)

    def close(self) -> None:
        """Let go of the file; no block is being read any more."""
        self._library.sqlite_table_free(self._handle)


def _with_nulls(name: str, values: NDArray[np.int64], is_null: NDArray[np.bool_]) -> pl.Series:
    return pl.select(pl.when(pl.Series(~is_null)).then(pl.Series(values)).alias(name)).to_series()
