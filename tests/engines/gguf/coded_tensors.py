"""Tensors of a GGUF file's quantized types with random blocks, and the numbers that the gguf library makes of them."""

from typing import Any

import numpy as np
from tests.engines.gguf.model_files import Raw

from inferometer.engines.gguf.tensor_types import TYPES

_SCALES = {"Q6_K": (208,)}
"""Where in a block a float16 lies; of other types at its beginning."""
_TWO = ("Q4_1", "Q5_1", "Q4_K", "Q5_K")


def random_blocks(name: str, rows: int, numbers: int, seed: int = 0) -> Any:
    """uint8 [rows, bytes]: any codes and small scales, of float16's normal numbers and of those below."""
    each = next(each for each in TYPES.values() if each.name == name)
    rng = np.random.default_rng(seed)
    blocks = rng.integers(0, 256, (rows, numbers // each.numbers, each.bytes)).astype(np.uint8)
    for at in _SCALES.get(name, (0, 2) if name in _TWO else (0,)):
        scales = rng.normal(0, 1, blocks.shape[:2]) * 10.0 ** rng.integers(-6, -2, blocks.shape[:2])
        blocks[..., at : at + 2] = scales.astype("<f2")[..., None].view(np.uint8)
    return blocks.reshape(rows, -1)


def raw_tensor(name: str, blocks: Any) -> Raw:
    """These rows as a tensor of a file."""
    number, each = next((number, each) for number, each in TYPES.items() if each.name == name)
    return Raw((number, (len(blocks), blocks.shape[1] // each.bytes * each.numbers), blocks.tobytes()))
