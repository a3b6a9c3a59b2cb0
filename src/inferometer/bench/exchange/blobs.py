"""Integer tensors in safetensors files, as flashinfer-bench keeps lengths of sequences: each a row of I32 or I64."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from inferometer.engines.safetensors_header import StoredTensor, read_header
from inferometer.errors import FormatError, InputError, clean

_DTYPES = {"I32": "<i4", "I64": "<i8"}
_LENGTH = 8
_LARGEST = 1 << 28  # bytes of an index tensor


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

    file, tensor = find_tensor(root, path, key, where=where)
    dtype = _DTYPES.get(tensor.dtype)
    if dtype is None or len(tensor.shape) != 1:
        raise FormatError(f"{file}: {key}: expected a row of integers, found {tensor.dtype} {list(tensor.shape)}")
    if tensor.end - tensor.start > _LARGEST:
        raise FormatError(f"{file}: {key}: expected at most {_LARGEST:,} bytes, found {tensor.end - tensor.start:,}")
    return [int(each) for each in np.fromfile(file, dtype, tensor.shape[0], offset=tensor.start)]


def find_tensor(root: Path, path: str, key: str, *, where: str) -> tuple[Path, StoredTensor]:
    """A file of the dataset, and where in it the tensor lies.

    Raises:
        InputError: The file can't be read.
        FormatError: It lies outside of the dataset, is no safetensors file, or has no such tensor.
    """
    try:
        file = Path(os.path.realpath(root / path))  # of links that go round itself
        if not file.is_relative_to(os.path.realpath(root)):
            raise FormatError(f'{where}.path: expected a file in the dataset, found "{clean(path):.200}"')
        file.stat()
    except (OSError, ValueError) as error:  # a name with a null byte is a ValueError
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{where}.path: {clean(path):.200}: {reason}", hint=_HINT) from error
    tensors = read_header(file)
    tensor = tensors.get(key)
    if tensor is None:
        raise FormatError(f'{file}: expected a tensor "{clean(key):.80}", found {", ".join(tensors) or "none"}')
    return file, tensor


_HINT = "Values of the workload are in that file: get it with the dataset, in its folder blob/."
