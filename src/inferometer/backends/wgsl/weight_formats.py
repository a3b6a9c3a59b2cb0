"""How a matrix of weights lies in a device's memory, as the kernels read it: float16, float32, 8 or 4 bits a weight.

Rows lie behind each other. A row of `q8` and `q4` has the codes of its K weights, then a word for each block of 32: its
scale and its least weight, two float16, the scale in the low half; these words are filled up to a multiple of four.

    weight = scale * code + least      codes 0 to 255, or 0 to 15

Codes are in their order from the lowest bits of each 32-bit word on. So GGUF's blocks fit exactly: Q4_0 with a least of
-8 times its scale, Q4_1 as it is, Q8_0 with codes 128 higher and a least of -128 times the scale (powers of two).

N rows, K weights of a row, B blocks of it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

BLOCK = 32
"""Weights with one scale."""
_WORDS = 4  # of four bytes, that kernels load at once


@dataclass(frozen=True)
class WeightFormat:
    """One of `FORMATS`.

    Attributes:
        name: As users know it.
        code: Value of the kernels' constant WEIGHTS.
        bits: Of a weight, without scales.
        is_quantized: Whether weights are codes with scales.
    """

    name: str
    code: int
    bits: int
    is_quantized: bool = False

    @property
    def multiple(self) -> int:
        """Of weights that a row must have."""
        return BLOCK if self.is_quantized else 8

    def row_bytes(self, k: int) -> int:
        """Of a row of `k` weights, its scales included."""
        scales = -(-(k // BLOCK) // _WORDS) * _WORDS * 4 if self.is_quantized else 0
        return k * self.bits // 8 + scales


F16, F32 = WeightFormat("f16", 0, 16), WeightFormat("f32", 1, 32)
Q8, Q4 = WeightFormat("q8", 2, 8, is_quantized=True), WeightFormat("q4", 3, 4, is_quantized=True)
FORMATS = {each.name: each for each in (F16, F32, Q8, Q4)}


def quantize(weight_NK: Any, form: WeightFormat) -> tuple[Any, Any, Any]:
    """Codes uint8 [N, K], scales and least weights float16 [N, B]: each block from its least to its greatest weight.

    Scales and least weights are rounded first, and codes chosen for what they then are.
    """
    levels = 2**form.bits - 1
    block_NBW = np.asarray(weight_NK, np.float32).reshape(len(weight_NK), -1, BLOCK)
    least_NB = block_NBW.min(-1).astype(np.float16)
    span_NB = block_NBW.max(-1) - least_NB.astype(np.float32)
    scale_NB = (span_NB / levels).astype(np.float16)
    step_NB1 = scale_NB.astype(np.float32)[..., None]
    above_NBW = block_NBW - least_NB.astype(np.float32)[..., None]
    code_NBW = np.divide(above_NBW, step_NB1, out=np.zeros_like(above_NBW), where=step_NB1 > 0)
    return np.clip(np.rint(code_NBW), 0, levels).astype(np.uint8).reshape(np.shape(weight_NK)), scale_NB, least_NB


def pack(code_NK: Any, scale_NB: Any, least_NB: Any, form: WeightFormat) -> Any:
    """Rows as kernels read them, uint8 [N, row_bytes], of codes with a scale and a least weight for each block.

    Args:
        code_NK: uint8, below `2**bits`; K is a multiple of 32.
        scale_NB: One for each 32 weights of a row; rounded to float16.
        least_NB: As `scale_NB`.
        form: `Q8` or `Q4`.
    """
    rows, k = code_NK.shape
    out = np.zeros((rows, form.row_bytes(k)), np.uint8)
    codes = code_NK if form is Q8 else code_NK[:, ::2] | code_NK[:, 1::2] << 4
    out[:, : codes.shape[1]] = codes
    pairs = np.stack([scale_NB, least_NB], axis=-1).astype("<f2").reshape(rows, -1)
    out[:, codes.shape[1] : codes.shape[1] + 2 * pairs.shape[1]] = np.ascontiguousarray(pairs).view(np.uint8)
    return out


def encode(weight_NK: Any, form: WeightFormat) -> Any:
    """A matrix as it is written to the device, uint8 [N, row_bytes]."""
    if form.is_quantized:
        return pack(*quantize(weight_NK, form), form)
    dtype = np.dtype("<f2" if form is F16 else "<f4")
    return np.ascontiguousarray(weight_NK, dtype).view(np.uint8)


def decode(data: Any, n: int, k: int, form: WeightFormat) -> Any:
    """The weights float32 [N, K] of at least `n` rows as they lie in memory, of any dtype."""
    rows = data.reshape(-1).view(np.uint8)[: n * form.row_bytes(k)].reshape(n, form.row_bytes(k))
    if not form.is_quantized:
        return rows.view("<f2" if form is F16 else "<f4").astype(np.float32)
    end = k * form.bits // 8
    codes = rows[:, :end]
    if form is Q4:
        codes = np.stack([codes & 15, codes >> 4], axis=-1)
    code_NBW = codes.reshape(n, k // BLOCK, BLOCK).astype(np.float32)
    pair_NB2 = (
        np.ascontiguousarray(rows[:, end : end + k // BLOCK * 4])
        .view("<f2")
        .reshape(n, k // BLOCK, 2)
        .astype(np.float32)
    )
    return (code_NBW * pair_NB2[..., :1] + pair_NB2[..., 1:]).reshape(n, k)


def format_of(code: float) -> WeightFormat:
    """The format that a kernel's constant WEIGHTS names."""
    return next(each for each in FORMATS.values() if each.code == code)
