"""The header of a GGUF file: its metadata, and the names, types, shapes and places of its tensors. No weights are read.

Source: the page `docs/gguf.md` of ggml, read 2026-11-26, versions 2 and 3: a magic, two counts, pairs of key and typed
value, entries of tensors, the data. Every length is compared with the bytes that are there before anything of that
length is made. Left out: files in big-endian order, arrays of arrays.
"""

import math
import os
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import msgspec
import numpy as np

from inferometer.architectures.limits import TENSORS
from inferometer.engines.gguf.tensor_types import TYPES
from inferometer.engines.safetensors_header import StoredTensor
from inferometer.errors import FormatError, InputError
from inferometer.side_files import open_plain

MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_LARGEST = 64 << 20  # bytes of a header; that of a model with 262,144 tokens and as many merges has 13 MB
_MOST_KEYS = 4_096  # a model has some 40
_MOST_DIMENSIONS = 4  # ggml's
_LONGEST_NAME = 256  # bytes of a key or of a tensor's name, which ggml keeps in 64
_ALIGNMENT, _MOST_ALIGNMENT = 32, 1 << 16

_STRING, _ARRAY = 8, 9
_SCALARS = {
    0: "<u1",
    1: "<i1",
    2: "<u2",
    3: "<i2",
    4: "<u4",
    5: "<i4",
    6: "<f4",
    7: "?",
    10: "<u8",
    11: "<i8",
    12: "<f8",
}
_U32, _U64 = struct.Struct("<I"), struct.Struct("<Q")


class Header(msgspec.Struct, frozen=True):
    """What a file says of itself.

    Attributes:
        path: The file.
        metadata: Values by key: a bool, int, float, text; of an array a NumPy array, or a list of texts.
        tensors: By name; shapes have the rows first, as NumPy does, and `dtype` is a name of `tensor_types.TYPES`.
    """

    path: Path
    metadata: Mapping[str, Any]
    tensors: Mapping[str, StoredTensor]


def read_header(path: Path) -> Header:
    """The header of one file.

    Raises:
        FormatError: It is no GGUF file of a version that is read here, or cut off; a count, a length or a place can't
            be right.
        InputError: It can't be read; a tensor has a type that isn't read here.
    """
    try:
        with open_plain(path) as file:
            return _Reader(path, file).header()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}", hint="Check the path and its permissions.") from error


class _Reader:
    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path, self._file = path, file
        self._size = os.fstat(file.fileno()).st_size
        self._at = 0

    def header(self) -> Header:
        magic = self._file.read(len(MAGIC)) or b""
        if magic != MAGIC:
            raise FormatError(f"{self._path}: expected a GGUF file, which begins with GGUF, found {magic!r}")
        self._at = len(MAGIC)
        version = self._u32("version")
        if version not in _VERSIONS:
            self._refuse("version", "2 or 3, in little-endian order", version)
        tensors, keys = self._count("tensors", TENSORS), self._count("keys", _MOST_KEYS)
        metadata: dict[str, Any] = {}
        for i in range(keys):
            key = self._name(f"key {i + 1} of {keys}", metadata)
            metadata[key] = self._value(key, self._u32(key))
        entries: dict[str, tuple[int, list[int], int]] = {}
        for i in range(tensors):
            name = self._name(f"tensor {i + 1} of {tensors}", entries)
            entries[name] = self._entry(name)
        return Header(self._path, metadata, self._placed(entries, self._alignment(metadata)))

    def _value(self, key: str, kind: int) -> Any:
        if kind == _STRING:
            return self._text(key)
        if kind in _SCALARS:
            return self._numbers(key, _SCALARS[kind], 1)[0].item()
        if kind != _ARRAY:
            self._refuse(key, "a type of value from 0 to 12", kind)
        kind, count = self._u32(key), self._u64(key)
        if kind == _STRING:
            return self._texts(key, count)
        if kind not in _SCALARS:
            self._refuse(key, "an array of numbers or texts", f"one of type {kind}")
        return self._numbers(key, _SCALARS[kind], count)

    def _entry(self, name: str) -> tuple[int, list[int], int]:
        """Type, dimensions with the rows first, and place in the data."""
        dimensions = self._u32(name)
        if not 1 <= dimensions <= _MOST_DIMENSIONS:
            self._refuse(name, f"1 to {_MOST_DIMENSIONS} dimensions", dimensions)
        shape = [self._u64(name) for _ in range(dimensions)][::-1]
        kind, offset = self._u32(name), self._u64(name)
        if kind not in TYPES:
            known = ", ".join(each.name for each in TYPES.values())
            raise InputError(
                f"{self._path}: {name}: expected a type of {known}, found ggml's type {kind}",
                hint="Take the model's file in one of these types (Q4_K_M, Q8_0 and F16 files have no other).",
            )
        if dimensions == 1 and TYPES[kind].numbers > 1:
            self._refuse(name, "a vector of plain numbers", TYPES[kind].name)
        if not all(shape) or shape[-1] % TYPES[kind].numbers:
            self._refuse(name, f"rows of whole blocks of {TYPES[kind].numbers} numbers ({TYPES[kind].name})", shape)
        return kind, shape, offset

    def _placed(self, entries: Mapping[str, tuple[int, list[int], int]], alignment: int) -> dict[str, StoredTensor]:
        data = -(-self._at // alignment) * alignment
        placed, last = {}, data
        for name, (kind, shape, offset) in sorted(entries.items(), key=lambda item: item[1][2]):
            start = data + offset
            end = start + math.prod(shape) // TYPES[kind].numbers * TYPES[kind].bytes
            if start < last or offset % alignment:
                self._refuse(name, f"its bytes from {last}, at a multiple of {alignment}", start)
            if end > self._size:
                self._refuse_cut_off(name, end)
            placed[name] = StoredTensor(self._path, TYPES[kind].name, tuple(shape), start, end)
            last = end
        return {name: placed[name] for name in entries}

    def _alignment(self, metadata: Mapping[str, Any]) -> int:
        key = "general.alignment"
        alignment = metadata.get(key, _ALIGNMENT)
        if type(alignment) is not int or not 1 <= alignment <= _MOST_ALIGNMENT or alignment & (alignment - 1):
            self._refuse(key, f"a power of two up to {_MOST_ALIGNMENT}", alignment)
        return alignment

    def _count(self, what: str, most: int) -> int:
        count = self._u64(f"number of {what}")
        if count > most:
            self._refuse(f"number of {what}", f"at most {most:,}", f"{count:,}")
        return count

    def _name(self, where: str, known: Mapping[str, object]) -> str:
        name = self._text(where, _LONGEST_NAME)
        if name in known:
            self._refuse(where, "another name", f"{name} a second time")
        return name

    def _text(self, where: str, most: int | None = None) -> str:
        length = self._u64(where)
        if most is not None and length > most:
            self._refuse(where, f"a name of at most {most} bytes", f"{length:,}")
        try:
            return self._take(where, length).decode()
        except UnicodeDecodeError as error:
            raise FormatError(f"{self._path}: {where}: expected text in UTF-8: {error}") from error

    def _texts(self, where: str, count: int) -> list[str]:
        """As `_text`, for the hundreds of thousands of a vocabulary: a third of the calls."""
        self._require(where, count * _U64.size)
        found, read, at, end = [], self._file.read, self._at, min(self._size, _LARGEST)
        try:
            for _ in range(count):
                length = int.from_bytes(read(_U64.size), "little")
                at += _U64.size + length
                if at > end:
                    self._at = at - length
                    self._require(where, length)
                found.append(read(length).decode())
        except UnicodeDecodeError as error:
            raise FormatError(f"{self._path}: {where}: expected text in UTF-8: {error}") from error
        self._at = at
        return found

    def _numbers(self, where: str, dtype: str, count: int) -> Any:
        return np.frombuffer(self._take(where, count * np.dtype(dtype).itemsize), dtype)

    def _u32(self, where: str) -> int:
        found: int = _U32.unpack(self._take(where, _U32.size))[0]
        return found

    def _u64(self, where: str) -> int:
        found: int = _U64.unpack(self._take(where, _U64.size))[0]
        return found

    def _take(self, where: str, size: int) -> bytes:
        self._require(where, size)
        data = self._file.read(size)
        self._at += size
        if len(data) < size:  # it became shorter while it is read
            self._refuse_cut_off(where, self._at)
        return data

    def _require(self, where: str, size: int) -> None:
        end = self._at + size
        if end > self._size:
            self._refuse_cut_off(where, end)
        if end > _LARGEST:
            self._refuse(where, f"a header of at most {_LARGEST:,} bytes", f"{end:,}")

    def _refuse_cut_off(self, where: str, wanted: int) -> NoReturn:
        raise FormatError(
            f"{self._path}: {where}: expected {wanted:,} bytes, found {self._size:,}: it is cut off",
            hint="Copy the file again.",
        )

    def _refuse(self, where: str, wanted: str, found: object) -> NoReturn:
        raise FormatError(f"{self._path}: {where}: expected {wanted}, found {found}")
