"""How a matrix of weights lies in a device's memory, as the kernels read it: float16, float32, or codes with scales.

Rows lie one after the other. A row of codes has K weights in blocks of 32, in sections that are each filled up to a
multiple of four words:

    low bits     of each code its lowest 4 bits, or all 8, in their order from the lowest bits of each word on
    high bits    of codes of 5 and 6 bits: for each block a word, or two of 16 codes each (`_high_bits`)
    scales       a word for each block, its scale and its least weight in float16, the scale in the low half:
                     weight = scale * code + least
    or           two bytes for each block, and for each 256 weights a word, two float16 as above:
                     weight = scale * first * code + least * second     q4k, q5k: two bytes without a sign
                     weight = (scale * code + least) * byte             q6k: each half of a block has its own, signed

So GGUF's blocks fit exactly: Q4_1 and Q5_1 as they are, Q4_0, Q5_0 and Q8_0 with codes 8, 16 and 128 higher and a least
weight of as many scales (powers of two), Q4_K and Q5_K with their minimum's sign turned, Q6_K with codes 32 higher.

N rows, K weights of a row, B blocks of it, S blocks of 256.
"""

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

BLOCK = 32
"""Weights with one scale."""
SUPER_BLOCK = 256
"""Weights whose blocks' scales have one scale, in formats with two levels of them."""
_SECTION = 16  # bytes that kernels load at once


@dataclass(frozen=True)
class WeightFormat:
    """One of `ALL_FORMATS`.

    Attributes:
        name: As users know it.
        words: What it is, for people.
        code: Value of the kernels' constant WEIGHTS.
        bits: Of a weight, without scales.
        is_quantized: Whether weights are codes with scales.
        has_two_levels: Whether scales of blocks have a scale themselves.
        has_halves: Whether a block's two bytes are of its halves.
    """

    name: str
    words: str
    code: int
    bits: int
    is_quantized: bool = False
    has_two_levels: bool = False
    has_halves: bool = False

    @property
    def multiple(self) -> int:
        """Of weights that a row must have: kernels go by blocks, but for float16."""
        if self.has_two_levels:
            return SUPER_BLOCK
        return 8 if self.bits == 16 else BLOCK

    @property
    def low_bits(self) -> int:
        """Bits of a code in the first section."""
        return 8 if self.bits == 8 else 4

    def sections(self, k: int) -> tuple[int, ...]:
        """Bytes of each section of a row of `k` weights, of a quantized format; one that it lacks has none."""
        scales = (2 * k // BLOCK, 4 * k // SUPER_BLOCK) if self.has_two_levels else (4 * k // BLOCK, 0)
        sizes = (k * self.low_bits // 8, k * (self.bits - self.low_bits) // 8, *scales)
        return tuple(-(-size // _SECTION) * _SECTION for size in sizes)

    def row_bytes(self, k: int) -> int:
        """Bytes of a row of `k` weights, its scales included."""
        return sum(self.sections(k)) if self.is_quantized else k * self.bits // 8


F16, F32 = WeightFormat("f16", "float16", 0, 16), WeightFormat("f32", "float32", 1, 32)
Q8 = WeightFormat("q8", "8 bits, in blocks of 32", 2, 8, is_quantized=True)
Q4 = WeightFormat("q4", "4 bits, in blocks of 32", 3, 4, is_quantized=True)
Q5 = WeightFormat("q5", "5 bits, in blocks of 32", 4, 5, is_quantized=True)
Q4K = WeightFormat("q4k", "4 bits, in blocks of 32 and 256", 5, 4, is_quantized=True, has_two_levels=True)
Q5K = WeightFormat("q5k", "5 bits, in blocks of 32 and 256", 6, 5, is_quantized=True, has_two_levels=True)
Q6K = WeightFormat(
    "q6k", "6 bits, in blocks of 16 and 256", 7, 6, is_quantized=True, has_two_levels=True, has_halves=True
)
FORMATS = {each.name: each for each in (F16, F32, Q8, Q4)}
"""What any weights can be made into."""
ALL_FORMATS = {**FORMATS, **{each.name: each for each in (Q5, Q4K, Q5K, Q6K)}}
"""The others are only for weights that come in them."""


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


def pack(code_NK: Any, scales: Any, least: Any, form: WeightFormat, bytes_NB2: Any = None) -> Any:
    """Rows as kernels read them, uint8 [N, row_bytes], of codes with scales and least weights.

    Args:
        code_NK: uint8, below `2**bits`; K is a multiple of the format's.
        scales: One for each 32 weights of a row, [N, B]; with two levels for each 256, [N, S]; rounded to float16.
        least: As `scales`.
        form: A quantized one.
        bytes_NB2: With two levels the two bytes of each block, uint8 [N, B, 2].
    """
    rows, k = code_NK.shape
    pairs = np.ascontiguousarray(np.stack([scales, least], axis=-1).astype("<f2")).view(np.uint8).reshape(rows, -1)
    scale_parts = (pairs,) if bytes_NB2 is None else (np.ascontiguousarray(bytes_NB2).reshape(rows, -1), pairs)
    parts = [code_NK if form.low_bits == 8 else _low_bits(code_NK), _high_bits(code_NK, form), *scale_parts]
    out = np.zeros((rows, form.row_bytes(k)), np.uint8)
    at = 0
    for part, size in zip(parts, form.sections(k), strict=False):  # the last is only of two levels
        out[:, at : at + part.shape[1]] = part
        at += size
    return out


def encode(weight_NK: Any, form: WeightFormat) -> Any:
    """A matrix as it is written to the device, uint8 [N, row_bytes], in one of `FORMATS`."""
    if form.is_quantized:
        return pack(*quantize(weight_NK, form), form)
    dtype = np.dtype("<f2" if form is F16 else "<f4")
    return np.ascontiguousarray(weight_NK, dtype).view(np.uint8)


def decode(data: Any, n: int, k: int, form: WeightFormat) -> Any:
    """The weights float32 [N, K] of at least `n` rows as they lie in memory, of any dtype."""
    rows = data.reshape(-1).view(np.uint8)[: n * form.row_bytes(k)].reshape(n, form.row_bytes(k))
    if not form.is_quantized:
        return rows.view("<f2" if form is F16 else "<f4").astype(np.float32)
    low, high, scales, supers = np.split(rows, np.cumsum(form.sections(k))[:-1], axis=1)
    code_NK = low if form.low_bits == 8 else np.stack([low & 15, low >> 4], axis=-1).reshape(n, 2 * low.shape[1])[:, :k]
    if form.bits > form.low_bits:
        code_NK = code_NK | _high_codes(high, k, form) << 4
    if not form.has_two_levels:
        code_NBW = code_NK.reshape(n, k // BLOCK, BLOCK).astype(np.float32)
        pair_NB2 = _pairs(scales, k // BLOCK)
        return (code_NBW * pair_NB2[..., :1] + pair_NB2[..., 1:]).reshape(n, k)
    blocks = (n, k // SUPER_BLOCK, SUPER_BLOCK // BLOCK, 2)  # each in halves
    code_NSBW = code_NK.reshape(*blocks, BLOCK // 2).astype(np.float32)
    pair_NS2 = _pairs(supers, k // SUPER_BLOCK)
    scale_NS1, least_NS1 = pair_NS2[..., :1], pair_NS2[..., 1:]
    byte_NSB2 = scales[:, : k // BLOCK * 2].view(np.int8 if form.has_halves else np.uint8)
    byte_NSB2 = byte_NSB2.reshape(blocks).astype(np.float32)
    first, second = (byte_NSB2, byte_NSB2) if form.has_halves else (byte_NSB2[..., :1], byte_NSB2[..., 1:])
    scale, least = scale_NS1[..., None] * first, least_NS1[..., None] * second
    return (code_NSBW * scale[..., None] + least[..., None]).reshape(n, k)


def format_of(code: float) -> WeightFormat:
    """The format that a kernel's constant WEIGHTS names."""
    return next(each for each in ALL_FORMATS.values() if each.code == code)


def _low_bits(code_NK: Any) -> Any:
    return code_NK[:, ::2] & 15 | code_NK[:, 1::2] << 4


def _high_bits(code_NK: Any, form: WeightFormat) -> Any:
    """The bits above the fourth, so that those of four codes are a shift of a word and a mask away.

    A word of low bits has eight codes; those with even places, and those with odd ones, are four each. The high bits of
    these four lie in the four bytes of the high word, at the same place in each: beginning with the lowest bits, places
    are of the even and the odd codes of the block's first word of low bits, then of its next word.
    """
    width = form.bits - form.low_bits
    if not width:
        return np.empty((len(code_NK), 0), np.uint8)
    per_byte = 8 // width
    words = (code_NK >> 4).reshape(len(code_NK), -1, per_byte // 2, 4, 2)  # words of low bits, bytes, odd
    of_byte = [words[:, :, i // 2, :, i % 2] << width * i for i in range(per_byte)]
    return reduce(np.bitwise_or, of_byte).reshape(len(code_NK), -1)


def _high_codes(high: Any, k: int, form: WeightFormat) -> Any:
    """What `_high_bits` put there, [N, K]."""
    width = form.bits - form.low_bits
    per_byte = 8 // width
    byte = high[:, : k * width // 8].reshape(len(high), k * width // 32, 1, 4, 1)
    at = (width * np.arange(per_byte, dtype=np.uint8)).reshape(per_byte // 2, 1, 2)
    return (byte >> at & (2**width - 1)).reshape(len(high), k)


def _pairs(section: Any, count: int) -> Any:
    """float32 [N, count, 2]."""
    return np.ascontiguousarray(section[:, : 4 * count]).view("<f2").reshape(len(section), count, 2).astype(np.float32)
