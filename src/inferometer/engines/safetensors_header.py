"""What the header of a safetensors file says of its tensors: names, dtypes, shapes, places. No data is read here.

Source: the format's page at huggingface.co/docs/safetensors, read 2026-11-22: eight bytes of length, little endian, a
JSON header, the data, in which tensors lie without gaps. Neither torch nor the safetensors library is needed.
"""

import math
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from inferometer.architectures.limits import TENSORS
from inferometer.errors import FormatError
from inferometer.side_files import open_plain

_ITEM_BYTES = {
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E4M3", "F8_E5M2"), 1),
    **dict.fromkeys(("U16", "I16", "F16", "BF16"), 2),
    **dict.fromkeys(("U32", "I32", "F32"), 4),
    **dict.fromkeys(("U64", "I64", "F64"), 8),
}
_LENGTH = 8
_LARGEST_HEADER = 100_000_000  # bytes; what the safetensors library takes


class StoredTensor(msgspec.Struct, frozen=True):
    """Where a tensor lies.

    Attributes:
        path: The file.
        dtype: As the format writes it (`BF16`).
        shape: Its dimensions.
        start: First byte in the file.
        end: Behind its last.
    """

    path: Path
    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int


class _Entry(msgspec.Struct, frozen=True):
    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]


def read_header(path: Path) -> dict[str, StoredTensor]:
    """The tensors of one file, by its header.

    Raises:
        FormatError: It is no safetensors file, or cut off; bytes of a tensor don't fit its shape, or overlap others.
    """
    try:
        with open_plain(path) as file:
            size = os.fstat(file.fileno()).st_size
            length = int.from_bytes(file.read(_LENGTH) or b"", "little")  # a file of /proc may have nothing to give
            if not 0 < length <= min(_LARGEST_HEADER, size - _LENGTH):
                raise FormatError(
                    f"{path}: expected a header of safetensors, found a length of {length} bytes in {size}"
                )
            header = msgspec.json.decode(file.read(length), type=dict[str, msgspec.Raw])
        header.pop("__metadata__", None)
        if len(header) > TENSORS:
            raise FormatError(f"{path}: expected at most {TENSORS:,} tensors in a file, found {len(header):,}")
        entries = {name: msgspec.json.decode(raw, type=_Entry) for name, raw in header.items()}
    except (OSError, ValueError, RecursionError) as error:  # msgspec's and Unicode's are ValueErrors
        raise FormatError(f"{path}: expected a header of safetensors: {error!r}") from error
    data = _LENGTH + length
    wanted = data + max((entry.data_offsets[1] for entry in entries.values()), default=0)
    if size < wanted:
        raise FormatError(f"{path}: expected {wanted} bytes, found {size}: it is cut off", hint="Copy the file again.")
    _require_places(path, entries)
    return {
        name: StoredTensor(path, entry.dtype, entry.shape, *(data + offset for offset in entry.data_offsets))
        for name, entry in entries.items()
    }


def _require_places(path: Path, entries: Mapping[str, _Entry]) -> None:
    last = 0
    for name, entry in sorted(entries.items(), key=lambda item: item[1].data_offsets):
        start, end = entry.data_offsets
        if start != last or end < start:
            raise FormatError(f"{path}: {name}: expected its bytes from {last}, found {start} to {end}")
        last = end
        item = _ITEM_BYTES.get(entry.dtype)  # of a dtype that we don't know, it's reported where one is wanted
        wanted = None if item is None else math.prod(entry.shape) * item
        if min(entry.shape, default=1) < 0 or (wanted is not None and wanted != end - start):
            raise FormatError(
                f"{path}: {name}: expected {wanted} bytes of {entry.dtype} {list(entry.shape)}, found {end - start}"
            )
