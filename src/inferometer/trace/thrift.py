"""Structures in Thrift's compact protocol, as Parquet has them in its footer and before each page.

No library reads them from anywhere in a file without a description of all its types; what Parquet's readers read, they
don't show. Source: https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
"""

from collections.abc import Callable, Mapping
from mmap import mmap
from typing import Any

_DEEPEST = 16  # Parquet's own are 6 deep
_MOST_BITS = 64
_STOP, _TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT, _UUID = range(14)

Fields = Mapping[int, Any]


class MalformedThrift(Exception):
    """Bytes that are no such structure. The message says where."""


def read_struct(data: mmap | bytes, start: int, stop: int) -> tuple[Fields, int]:
    """The fields by id of the structure that begins at byte `start`, and where it ends, at most at `stop`.

    Lists are tuples, maps and binary values are only skipped (`None`).
    """
    reader = _Reader(data, start, stop)
    return reader.struct(0), reader.at


class _Reader:
    def __init__(self, data: mmap | bytes, start: int, stop: int) -> None:
        self._data, self.at, self._stop = data, start, stop
        self._of_type: Mapping[int, Callable[[int], Any]] = {
            _TRUE: lambda _: self._byte() == _TRUE,  # as an element; as a field the type is the value
            _FALSE: lambda _: self._byte() == _TRUE,
            _BYTE: lambda _: self._byte(),
            _I16: lambda _: self._signed(),
            _I32: lambda _: self._signed(),
            _I64: lambda _: self._signed(),
            _DOUBLE: lambda _: self._skip(8),
            _BINARY: lambda _: self._skip(self._unsigned()),
            _LIST: self._list,
            _SET: self._list,
            _MAP: self._map,
            _STRUCT: self.struct,
            _UUID: lambda _: self._skip(16),
        }

    def struct(self, depth: int) -> Fields:
        fields: dict[int, Any] = {}
        name = 0
        while head := self._byte():
            step, kind = head >> 4, head & 15
            name = name + step if step else self._signed()
            fields[name] = kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind, depth + 1)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if depth > _DEEPEST:
            raise MalformedThrift(f"nested more than {_DEEPEST} deep at byte {self.at:,}")
        if kind not in self._of_type:
            raise MalformedThrift(f"expected a type from {_TRUE} to {_UUID} before byte {self.at:,}, found {kind}")
        return self._of_type[kind](depth)

    def _list(self, depth: int) -> tuple[Any, ...]:
        head = self._byte()
        count = head >> 4
        if count == 15:  # all ones: the count follows
            count = self._unsigned()
        if count > self._stop - self.at:
            raise MalformedThrift(
                f"a list of {count:,} before byte {self.at:,}, where {self._stop - self.at:,} bytes follow"
            )
        return tuple(self._value(head & 15, depth + 1) for _ in range(count))

    def _map(self, depth: int) -> None:
        count = self._unsigned()
        kinds = self._byte() if count else 0
        for _ in range(count):
            self._value(kinds >> 4, depth + 1)
            self._value(kinds & 15, depth + 1)

    def _skip(self, count: int) -> None:
        if count > self._stop - self.at:
            raise MalformedThrift(f"{count:,} bytes at byte {self.at:,}, where {self._stop - self.at:,} follow")
        self.at += count

    def _byte(self) -> int:
        if self.at >= self._stop:
            raise MalformedThrift(f"it ends early, at byte {self.at:,}")
        self.at += 1
        return self._data[self.at - 1]

    def _unsigned(self) -> int:
        value = shift = 0
        while True:
            part = self._byte()
            value |= (part & 127) << shift
            shift += 7
            if part < 128:
                return value
            if shift > _MOST_BITS:
                raise MalformedThrift(f"a number of more than {_MOST_BITS} bits before byte {self.at:,}")

    def _signed(self) -> int:
        coded = self._unsigned()
        return coded >> 1 ^ -(coded & 1)
