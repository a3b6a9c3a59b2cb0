"""Rows of the library's as polars' columns, without a copy: by Arrow's C data interface."""

import ctypes
import weakref
from collections.abc import Collection, Iterable
from ctypes import c_int64, c_void_p, pythonapi
from enum import IntEnum
from typing import Any, Final, NamedTuple

import polars as pl

_SCHEMA_BYTES: Final = 72  # of the interface's structures, on a system of 64 bits
_ARRAY_BYTES: Final = 80
_new_capsule = pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [c_void_p, ctypes.c_char_p, c_void_p]


class TableNumber(IntEnum):
    """The library's tables; as in `section.h`."""

    LAUNCHES = 0
    CALLS = 1
    OPS = 2
    FRAMES = 3
    SPANS = 4

    @property
    def title(self) -> str:
        """As in `trace/tables.py`."""
        return self.name.lower()


TABLE_OF: Final = {
    **dict.fromkeys(("kernel", "gpu_memcpy", "gpu_memset"), TableNumber.LAUNCHES),
    **dict.fromkeys(("cuda_runtime", "cuda_driver", "hip_runtime", "hip_driver"), TableNumber.CALLS),
    "cpu_op": TableNumber.OPS,
    "python_function": TableNumber.FRAMES,
    **dict.fromkeys(("user_annotation", "overhead", "gpu_user_annotation", "cuda_sync"), TableNumber.SPANS),
    **dict.fromkeys(("ac2g", "fwdbwd", "async_cpu_to_gpu", "async_gpu"), None),
}
"""Categories in the order of their numbers, as in `categories.h`; arrows have no table."""

_CATEGORIES: Final = tuple(TABLE_OF)


class Group(NamedTuple):
    """Events of one category in one batch; `first` is the place in the batch of the first of them."""

    batch: int
    category: str
    first: int
    events: int


class ForeignText(NamedTuple):
    """An event of another category; `place` is its place in the batch."""

    batch: int
    place: int
    text: bytes


class Decoded:
    """What the library decoded of a text; `start` and `stop` are places of the text, `foreign` was left over."""

    def __init__(self, library: ctypes.CDLL, handle: int, data: bytes | bytearray = b"", base: int = 0) -> None:
        self._library, self._handle = library, handle
        self.close = weakref.finalize(self, library.kineto_free, handle)
        self._texts: dict[TableNumber, dict[str, pl.Series]] = {}
        places = (c_int64 * 3)()
        library.kineto_places(handle, places)
        self.start, self.stop, self.is_last = base + places[0], base + places[1], bool(places[2])
        foreign = _numbers(library.kineto_foreign, handle, 4)
        self.foreign = [ForeignText(batch, place, bytes(data[begin:end])) for batch, place, begin, end in foreign]

    def rows(self, table: TableNumber) -> int:
        """How many a table has."""
        return int(self._library.kineto_rows(self._handle, table))

    def frame(self, table: TableNumber, names: Collection[str] | None = None) -> pl.DataFrame:
        """The columns of a table that are named; None: all, and `collective`."""
        texts = self.texts(table)
        columns = [each for each in self._columns(table) if names is None or each.name in names]
        return pl.DataFrame(
            [_gathered(texts[each.name], each.rows()) if each.is_text else each.rows() for each in columns]
        )

    def texts(self, table: TableNumber) -> dict[str, pl.Series]:
        """The different texts of each column that has texts."""
        if table not in self._texts:
            columns = [each for each in self._columns(table) if each.is_text]
            self._texts[table] = {each.name: each.texts() for each in columns}
        return self._texts[table]

    def groups(self) -> list[Group]:
        """In the order in which their rows stand."""
        found = _numbers(self._library.kineto_groups, self._handle, 4)
        return [Group(batch, _CATEGORIES[category], first, events) for batch, category, first, events in found]

    def _columns(self, table: TableNumber) -> list["_Column"]:
        count = self._library.kineto_columns(self._handle, table)
        return [_Column(self._library, self._handle, table, number) for number in range(count)]


def decode(
    library: ctypes.CDLL,
    data: bytes | bytearray,
    base: int,
    size: int,
    *,
    wanted: Iterable[TableNumber],
    batch_events: int,
    begin: int,
    limit: int,
    is_guess: bool = False,
) -> Decoded | None:
    """The events that begin at `begin`, or at the first event behind it where that is a guess, and before `limit`.

    None where anything is unusual. Other threads go on meanwhile.

    Args:
        library: The library.
        data: A part of the text; not to be resized meanwhile.
        base: Where in the text it begins, as `begin` and `limit` count.
        size: How much of `data` counts.
        wanted: The tables to be filled; events of others are only counted.
        batch_events: How many events form a batch, within which rows go by category.
        begin: Where to begin.
        limit: Where to end.
        is_guess: Whether an event begins at `begin` or somewhere behind it.
    """
    place: Any = data if isinstance(data, bytes) else (ctypes.c_char * len(data)).from_buffer(data)
    tables = sum(1 << table for table in wanted)
    handle = library.kineto_decode(place, size, begin - base, limit - base, is_guess, tables, batch_events)
    return None if handle is None else Decoded(library, handle, data, base)


class _Column:
    """One column; of texts it has numbers."""

    def __init__(self, library: ctypes.CDLL, handle: int, table: TableNumber, number: int) -> None:
        self._library, self._where = library, (handle, table, number)
        self.name = library.kineto_name(*self._where).decode()
        self.is_text = bool(library.kineto_is_text(*self._where))

    def rows(self) -> pl.Series:
        """A value for each row."""
        return pl.Series(_Export(self._library.kineto_export, self._where)).alias(self.name)

    def texts(self) -> pl.Series:
        """The different texts."""
        return pl.Series(_Export(self._library.kineto_export_texts, self._where)).alias(self.name)


class _Export:
    """An array of the library's as polars asks for it; it must live until polars has it."""

    def __init__(self, function: Any, where: tuple[int, ...]) -> None:
        self._function, self._where = function, where
        self._array = ctypes.create_string_buffer(_ARRAY_BYTES)
        self._schema = ctypes.create_string_buffer(_SCHEMA_BYTES)

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[Any, Any]:
        if self._function(*self._where, self._array, self._schema):
            raise MemoryError
        return (
            _new_capsule(ctypes.addressof(self._schema), b"arrow_schema", None),
            _new_capsule(ctypes.addressof(self._array), b"arrow_array", None),
        )


def _gathered(texts: pl.Series, numbers: pl.Series) -> pl.Series:
    """The text of each number, as categories: a row takes 4 bytes in place of 16."""
    return numbers.cast(pl.String) if texts.is_empty() else texts.cast(pl.Categorical).gather(numbers)


def _numbers(function: Any, handle: int, width: int) -> list[tuple[int, ...]]:
    """Rows of `width` numbers each, that the library holds."""
    place = c_void_p()
    count = function(handle, ctypes.byref(place))
    if not count:
        return []
    numbers = (c_int64 * (count * width)).from_address(place.value or 0)
    return [tuple(numbers[i : i + width]) for i in range(0, count * width, width)]
