"""Protocol Buffers as bytes: one message at a time, or a whole column of them at once.

Source: the encoding page of protobuf.dev, read 2025-11-21. Writes varints, 64-bit values and length-delimited fields,
which is all that a Perfetto trace needs. Ours, because a library that builds an object per message takes ten times as
long; the tests decode what this writes with Google's.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Numbers = NDArray[np.int64] | NDArray[np.float64]
Bytes = NDArray[np.uint8]
Mask = NDArray[np.bool_]
Value = int | float | str | bytes
_VARINT, _FIXED64, _SIZED = 0, 1, 2
_ONE_BYTE = 127  # lengths up to here take one byte
_STEPS = np.array([1 << 7 * i for i in range(1, 10)], np.uint64)  # from here on a varint needs one byte more
_SHIFTS = np.arange(10, dtype=np.uint64) * np.uint64(7)


def encode(fields: Mapping[int, Value | Iterable[Value]]) -> bytes:
    """One message. Whole numbers become varints, floats 64-bit values, texts and messages sized bytes; lists repeat."""
    each = ((number, [value] if isinstance(value, Value) else value) for number, value in fields.items())
    return b"".join(_field(number, value) for number, values in each for value in values)


def _field(number: int, value: Value) -> bytes:
    if isinstance(value, int):
        return _tag(number, _VARINT) + _varint(value)
    if isinstance(value, float):
        return _tag(number, _FIXED64) + struct.pack("<d", value)
    data = value.encode() if isinstance(value, str) else value
    return _tag(number, _SIZED) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first; negative numbers as 64 bits."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


@dataclass(frozen=True)
class Columns:
    """Bytes of each row: `data` holds them one row after the other, `sizes` how many belong to each."""

    data: Bytes
    sizes: Integers


def same(data: bytes, rows: int) -> Columns:
    """The same bytes in each row."""
    return Columns(np.tile(np.frombuffer(data, np.uint8), rows), np.full(rows, len(data), np.int64))


def integers(number: int, values: Integers) -> Columns:
    """An integer field of each row."""
    return _table([_tag(number, _VARINT)], *_varints(values))


def fixed64(number: int, values: Numbers) -> Columns:
    """A 64-bit field of each row: fixed64 of integers, double of floats."""
    return _table([_tag(number, _FIXED64)], *_bytes8(values))


def small_messages(number: int, head: bytes, inner: int, values: Numbers, present: Mask | None = None) -> Columns:
    """A message field of each row: `head` and one field `inner`, a varint or a double; none where not `present`."""
    is_whole = values.dtype == np.int64
    body, sizes = _varints(values) if is_whole else _bytes8(values)
    front = head + _tag(inner, _VARINT if is_whole else _FIXED64)
    if len(front) + body.shape[1] > _ONE_BYTE:
        raise ValueError(f"expected a message of at most {_ONE_BYTE} bytes, found a head of {len(head)}")
    lengths = (sizes + len(front)).astype(np.uint8)[:, None]
    return _table([_tag(number, _SIZED), lengths, front], body, sizes, present)


def messages(number: int, inner: Columns) -> Columns:
    """A message field of each row."""
    return joined(_table([_tag(number, _SIZED)], *_varints(inner.sizes)), inner)


def repeated(each: Columns, counts: Integers) -> Columns:
    """Rows of several fields: the next `counts[i]` rows of `each` become row i."""
    ends = np.concatenate(([0], np.cumsum(each.sizes)))
    stops = np.cumsum(counts)
    return Columns(each.data, ends[stops] - ends[stops - counts])


def joined(*parts: Columns) -> Columns:
    """The parts of each row one after the other."""
    sizes = sum((part.sizes for part in parts[1:]), parts[0].sizes)
    data = np.empty(int(sizes.sum()), np.uint8)
    at = np.cumsum(sizes) - sizes
    for part in parts:
        begins = np.cumsum(part.sizes) - part.sizes
        data[np.repeat(at - begins, part.sizes) + np.arange(len(part.data))] = part.data
        at = at + part.sizes
    return Columns(data, sizes)


def _table(front: Sequence[bytes | Bytes], body: Bytes, sizes: Integers, present: Mask | None = None) -> Columns:
    """Rows of a table: the columns in `front`, then as many of `body` as `sizes` says."""
    heads = [np.frombuffer(part, np.uint8)[None] if isinstance(part, bytes) else part for part in front]
    table = np.hstack([*(np.broadcast_to(head, (len(body), head.shape[1])) for head in heads), body])
    sizes = sizes + sum(head.shape[1] for head in heads)
    if present is not None:
        sizes = np.where(present, sizes, 0)
    return Columns(table[np.arange(table.shape[1]) < sizes[:, None]], sizes)


def _tag(number: int, wire: int) -> bytes:
    return _varint(number << 3 | wire)


def _varints(values: Numbers) -> tuple[Bytes, Integers]:
    """One row of bytes per value, as wide as the longest needs, and how many of them count."""
    unsigned = values.astype(np.int64, copy=False).view(np.uint64)
    sizes = np.searchsorted(_STEPS, unsigned, "right").astype(np.int64) + 1
    width = int(sizes.max(initial=1))
    septets = (unsigned[:, None] >> _SHIFTS[:width]).astype(np.uint8) & np.uint8(0x7F)
    more = np.arange(width) < sizes[:, None] - 1
    return septets | (more * np.uint8(0x80)), sizes


def _bytes8(values: Numbers) -> tuple[Bytes, Integers]:
    return np.ascontiguousarray(values).view(np.uint8).reshape(-1, 8), np.full(len(values), 8, np.int64)
