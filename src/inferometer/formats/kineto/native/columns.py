"""Rows of the library's as polars' columns, without a copy: by Arrow's C data interface."""

import ctypes
from collections.abc import Collection
from ctypes import c_int64, c_void_p, pythonapi
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, Self

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


CATEGORIES: Final = (
    *("kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime", "cuda_driver", "hip_runtime", "hip_driver", "cpu_op"),
    *("python_function", "user_annotation", "overhead", "gpu_user_annotation", "cuda_sync"),
    *("ac2g", "fwdbwd", "async_cpu_to_gpu", "async_gpu"),
)
"""By their numbers; as in `categories.h`."""


@dataclass(frozen=True)
class Group:
    """Events of one category in one batch; `first` is the place in the batch of the first of them."""

    batch: int
    category: str
    first: int
    events: int


class Decoded:
    """What the library decoded of a text."""

    def __init__(self, library: ctypes.CDLL, handle: int) -> None:
        self._library, self._handle = library, handle

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of it; columns that were taken stay."""
        self._library.kineto_free(self._handle)

    def rows(self, table: TableNumber) -> int:
        """How many a table has."""
        return int(self._library.kineto_rows(self._handle, table))

    def frame(self, table: TableNumber, names: Collection[str]) -> pl.DataFrame:
        """The columns of a table that are named."""
        count = self._library.kineto_columns(self._handle, table)
        columns = [_Column(self._library, self._handle, table, i) for i in range(count)]
        return pl.DataFrame([pl.Series(each) for each in columns if each.name in names])

    def groups(self) -> list[Group]:
        """In the order in which their rows stand."""
        return [
            Group(batch, CATEGORIES[category], first, events)
            for batch, category, first, events in _numbers(self._library.kineto_groups, self._handle, 4)
        ]


class _Column:
    """One column, as polars asks for it."""

    def __init__(self, library: ctypes.CDLL, handle: int, table: TableNumber, number: int) -> None:
        self._where = (library, handle, table, number)
        self.name = library.kineto_name(handle, table, number).decode()

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[Any, Any]:
        library, handle, table, number = self._where
        self._array = ctypes.create_string_buffer(_ARRAY_BYTES)
        self._schema = ctypes.create_string_buffer(_SCHEMA_BYTES)
        if library.kineto_export(handle, table, number, self._array, self._schema):
            raise MemoryError
        return (
            _new_capsule(ctypes.addressof(self._schema), b"arrow_schema", None),
            _new_capsule(ctypes.addressof(self._array), b"arrow_array", None),
        )


def _numbers(function: Any, handle: int, width: int) -> list[tuple[int, ...]]:
    """Rows of `width` numbers each, that the library holds."""
    place = c_void_p()
    count = function(handle, ctypes.byref(place))
    if not count:
        return []
    numbers = (c_int64 * (count * width)).from_address(place.value or 0)
    return [tuple(numbers[i : i + width]) for i in range(0, count * width, width)]
