"""Types of a GGUF file's tensors: how many numbers a block has, in how many bytes, and what numbers they are.

Source: `ggml-common.h` and `ggml.h` of ggml, by way of the constants of the `gguf` library (0.19), which widens the
quantized ones. A row is whole blocks one after the other. Left out: the types of 1 to 3 bits, integers.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from inferometer.errors import Unavailable


class TensorType(msgspec.Struct, frozen=True):
    """How numbers lie.

    Attributes:
        name: As ggml calls it (`Q4_K`).
        numbers: Of a block, along a row.
        bytes: Of a block.
    """

    name: str
    numbers: int
    bytes: int


TYPES: Mapping[int, TensorType] = {
    0: TensorType("F32", 1, 4),
    1: TensorType("F16", 1, 2),
    2: TensorType("Q4_0", 32, 18),
    3: TensorType("Q4_1", 32, 20),
    6: TensorType("Q5_0", 32, 22),
    7: TensorType("Q5_1", 32, 24),
    8: TensorType("Q8_0", 32, 34),
    12: TensorType("Q4_K", 256, 144),
    13: TensorType("Q5_K", 256, 176),
    14: TensorType("Q6_K", 256, 210),
    30: TensorType("BF16", 1, 2),
}
"""By the number that stands for each in a file."""

_VIEWED = {"F32": "<f4", "F16": "<f2", "BF16": "<u2"}


def viewed(blocks_RB: Any, name: str) -> Any:
    """Numbers of these rows of blocks [rows, bytes]: F32 and F16 as they are, BF16 as its bits, others as float32.

    Raises:
        Unavailable: It is a quantized type, and the gguf library isn't installed.
    """
    if name in _VIEWED:
        return blocks_RB.view(_VIEWED[name])
    try:
        from gguf import GGMLQuantizationType
        from gguf.quants import dequantize
    except ImportError as error:
        raise Unavailable(
            f"gguf is not installed: {error}", hint="Install it with: pip install 'inferometer[webgpu]'"
        ) from error
    with np.errstate(over="ignore", invalid="ignore"):  # of a scale that is no number; who reads them looks
        return dequantize(blocks_RB, GGMLQuantizationType[name])
