"""Integer tensors in safetensors files, without that library: a JSON header behind its length, then the numbers.

Source: https://huggingface.co/docs/safetensors, section Format, read 2026-11-22: 8 bytes of length, little endian; the
header has `dtype`, `shape` and `data_offsets` of each tensor. Other dtypes than I32 and I64 are not read.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from inferometer.errors import FormatError, InputError

_DTYPES = {"I32": "<i4", "I64": "<i8"}
_LENGTH = 8
_LONGEST_HEADER = 100_000_000  # bytes, as the format says
_LARGEST = 1 << 28  # bytes of an index tensor


class _Entry(msgspec.Struct, frozen=True):
    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]


def encode_blob(arrays: Mapping[str, Any]) -> bytes:
    """A file of int32 and int64 arrays."""
    header, parts, at = {}, [], 0
    for name, array in arrays.items():
        dtype = {"int32": "I32", "int64": "I64"}[str(array.dtype)]
        parts.append(array.astype(_DTYPES[dtype]).tobytes())
        header[name] = {"dtype": dtype, "shape": array.shape, "data_offsets": [at, at + len(parts[-1])]}
        at += len(parts[-1])
    text = msgspec.json.encode(header)
    text += b" " * (-len(text) % _LENGTH)  # data begin at a multiple of 8 bytes
    return b"".join([len(text).to_bytes(_LENGTH, "little"), text, *parts])


def read_integers(root: Path, path: str, key: str, *, where: str) -> list[int]:
    """The numbers of a one-dimensional tensor; `path` is relative to the dataset's folder `root`.

    Raises:
        InputError: The file can't be read.
        FormatError: It lies outside of the dataset, is no safetensors file, or the tensor isn't a row of integers.
    """
    import numpy as np

    try:
        file = (root / path).resolve()
        if not file.is_relative_to(root.resolve()):
            raise FormatError(f'{where}.path: expected a file in the dataset, found "{path}"')
        with file.open("rb") as source:
            entry, dtype, data = _read_entry(source, file, key)
    except (OSError, ValueError) as error:  # a name with a null byte is a ValueError
        words = getattr(error, "strerror", None) or error
        raise InputError(f"{where}.path: {path}: {words}", hint=_HINT) from error
    if len(data) != entry.shape[0] * np.dtype(dtype).itemsize:
        raise FormatError(f"{file}: {key}: expected {entry.shape[0]:,} numbers, found {len(data):,} bytes")
    return [int(each) for each in np.frombuffer(data, dtype)]


def _read_entry(source: BinaryIO, file: Path, key: str) -> tuple[_Entry, str, bytes]:
    """What the header says of a tensor, its dtype as numpy has it, and its bytes."""
    length, size = int.from_bytes(source.read(_LENGTH), "little"), file.stat().st_size
    if not 2 <= length <= min(_LONGEST_HEADER, size - _LENGTH):
        raise FormatError(f"{file}: expected a safetensors file, found a header of {length:,} bytes")
    entry = _find_entry(source.read(length), file, key)
    (start, end), room = entry.data_offsets, size - _LENGTH - length
    dtype = _DTYPES.get(entry.dtype)
    if dtype is None or len(entry.shape) != 1:
        raise FormatError(f"{file}: {key}: expected a row of integers, found {entry.dtype} {list(entry.shape)}")
    if not 0 <= start <= end <= room or end - start > _LARGEST:
        raise FormatError(f"{file}: {key}: its bytes {start:,} to {end:,} don't lie in the file's {room:,}")
    source.seek(_LENGTH + length + start)
    return entry, dtype, source.read(end - start)


def _find_entry(header: bytes, file: Path, key: str) -> _Entry:
    try:
        entries = msgspec.json.decode(header, type=dict[str, msgspec.Raw])
        entry = entries.get(key)
        if entry is None:
            raise FormatError(f'{file}: expected a tensor "{key}", found {", ".join(entries) or "none"}')
        return msgspec.json.decode(entry, type=_Entry)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FormatError(f"{file}: expected a safetensors file, found: {error}") from error


_HINT = "The lengths of sequences are in that file: get it with the dataset, in its folder blob/."
