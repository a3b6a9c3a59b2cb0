"""Numbers of safetensors files by rows, BF16 among them: files are mapped, and read when they are asked for.

The safetensors library's NumPy side can't read BF16, and this engine needs no torch. Left out: F64, integers, 8-bit
floats.
"""

from pathlib import Path
from typing import Any

import numpy as np

from inferometer.engines.safetensors_header import StoredTensor
from inferometer.errors import InputError

_STORED = {"F16": "<f2", "BF16": "<u2", "F32": "<f4"}


class MappedFiles:
    """Any number of files. One is mapped when it is first read, and must not change while this lives."""

    def __init__(self) -> None:
        self._maps: dict[Path, Any] = {}

    def rows(self, name: str, tensor: StoredTensor, first: int, last: int) -> Any:
        """Rows `first` to `last`, or numbers of a vector, as they are stored; BF16 as uint16.

        Raises:
            InputError: Another dtype.
        """
        if tensor.dtype not in _STORED:
            raise InputError(
                f"{tensor.path}: {name}: expected a dtype of {', '.join(_STORED)}, found {tensor.dtype}",
                hint="Take the model's bfloat16 files.",
            )
        if tensor.path not in self._maps:
            self._maps[tensor.path] = np.asarray(np.memmap(tensor.path, np.uint8, mode="r"))
        row_bytes = (tensor.end - tensor.start) // max(1, tensor.shape[0])
        data = self._maps[tensor.path][tensor.start + first * row_bytes : tensor.start + last * row_bytes]
        return data.view(_STORED[tensor.dtype]).reshape(last - first, *tensor.shape[1:])
