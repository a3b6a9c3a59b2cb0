"""Blocks of a GGUF file's quantized tensors taken apart, without loss: codes from 0 up, and what makes numbers of them.

    number = scale * code + least                        a scale and a least number for each 32 numbers
    number = scale * first * code + least * second       Q4_K, Q5_K: for each 256, and two bytes for each 32
    number = (scale * code + least) * byte               Q6_K: for each 256, and a byte with a sign for each 16

Source: `ggml-common.h` of ggml, by way of `quants.py` of the `gguf` library (0.19), which makes float32 of them: codes
with a sign are taken from their least on (Q4_0: 8 higher), and the least number is that of code 0.

R rows, K numbers of a row, B blocks of 32, S blocks of 256.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np


class BlockCodes(NamedTuple):
    """Rows taken apart: codes uint8 [R, K], scales and least numbers float16 [R, B], or [R, S] with two levels.

    `of_blocks`: with two levels, two bytes of each block of 32, uint8 [R, B, 2].
    """

    codes: Any
    scales: Any
    least: Any
    of_blocks: Any = None


def take_apart(blocks_RB: Any, name: str) -> BlockCodes:
    """Rows of blocks, uint8 [R, bytes], of one of `CODED` types.

    A least number that float16 can't hold is infinite.
    """
    return CODED[name](blocks_RB)


def _q4_0(blocks_RB: Any) -> BlockCodes:
    scales, nibbles = _split(blocks_RB, 2, 16)
    return _above(_nibbles(nibbles), _halves(scales), 8)


def _q4_1(blocks_RB: Any) -> BlockCodes:
    scales, least, nibbles = _split(blocks_RB, 2, 2, 16)
    return BlockCodes(_nibbles(nibbles), _halves(scales), _halves(least))


def _q8_0(blocks_RB: Any) -> BlockCodes:
    scales, codes = _split(blocks_RB, 2, 32)
    return _above((codes ^ 0x80).reshape(len(blocks_RB), -1), _halves(scales), 128)  # 128 higher, without a sign


def _q5_0(blocks_RB: Any) -> BlockCodes:
    scales, high, nibbles = _split(blocks_RB, 2, 4, 16)
    return _above(_fives(nibbles, high), _halves(scales), 16)


def _q5_1(blocks_RB: Any) -> BlockCodes:
    scales, least, high, nibbles = _split(blocks_RB, 2, 2, 4, 16)
    return BlockCodes(_fives(nibbles, high), _halves(scales), _halves(least))


def _q4_k(blocks_RB: Any) -> BlockCodes:
    scales, least, sixes, nibbles = _split(blocks_RB, 2, 2, 12, 128)
    codes_RK = _nibbles(nibbles.reshape(len(nibbles), -1, 32))
    return BlockCodes(codes_RK, _halves(scales), -_halves(least), _sixes(sixes))


def _q5_k(blocks_RB: Any) -> BlockCodes:
    scales, least, sixes, high, nibbles = _split(blocks_RB, 2, 2, 12, 32, 128)
    low_RK = _nibbles(nibbles.reshape(len(nibbles), -1, 32))
    bits_RS8W = high[:, :, None] >> np.arange(8, dtype=np.uint8)[:, None] & 1  # bit i of byte j is of code 32i + j
    codes_RK = low_RK | (bits_RS8W << 4).reshape(low_RK.shape)
    return BlockCodes(codes_RK, _halves(scales), -_halves(least), _sixes(sixes))


def _q6_k(blocks_RB: Any) -> BlockCodes:
    low, high, of_blocks, scales = _split(blocks_RB, 128, 64, 16, 2)
    low_RK = _nibbles(low.reshape(len(low), -1, 64))
    pairs = high.reshape(len(high), -1, 1, 32) >> np.array([[0], [2], [4], [6]], np.uint8) & 3  # of 128 codes each
    codes_RK = low_RK | (pairs << 4).reshape(low_RK.shape)
    return _above(codes_RK, _halves(scales), 32)._replace(of_blocks=of_blocks.reshape(len(low), -1, 2))


CODED: Mapping[str, Callable[[Any], BlockCodes]] = {
    "Q4_0": _q4_0,
    "Q4_1": _q4_1,
    "Q5_0": _q5_0,
    "Q5_1": _q5_1,
    "Q8_0": _q8_0,
    "Q4_K": _q4_k,
    "Q5_K": _q5_k,
    "Q6_K": _q6_k,
}
"""By the names of `tensor_types`."""


def _split(blocks_RB: Any, *sizes: int) -> list[Any]:
    """The parts of each block, of so many bytes: uint8 [R, blocks, size] each."""
    whole = blocks_RB.reshape(len(blocks_RB), -1, sum(sizes))
    return np.split(whole, np.cumsum(sizes)[:-1], axis=-1)


def _halves(part: Any) -> Any:
    """float16 [R, blocks] of two bytes each."""
    return np.ascontiguousarray(part).view("<f2")[..., 0]


def _nibbles(part: Any) -> Any:
    """Codes [R, K] of blocks whose low nibbles are their first half."""
    return np.concatenate([part & 15, part >> 4], axis=-1).reshape(len(part), -1)


def _fives(nibbles: Any, high: Any) -> Any:
    """Codes [R, K] of blocks of 32 with a fifth bit of each code in four bytes."""
    low_RK = _nibbles(nibbles)
    return low_RK | np.unpackbits(high, axis=-1, bitorder="little").reshape(low_RK.shape) << 4


def _sixes(part: Any) -> Any:
    """Scales and minima of eight blocks, of 6 bits each in twelve bytes: uint8 [R, B, 2].

    The first four scales and minima are low bits of bytes 0 to 3 and 4 to 7, whose highest two bits are the highest of
    the others; these have their low bits in bytes 8 to 11, a scale and a minimum each.
    """
    first, second, low = np.split(part, 3, axis=-1)
    scales = np.concatenate([first & 63, low & 15 | first >> 6 << 4], axis=-1)
    minima = np.concatenate([second & 63, low >> 4 | second >> 6 << 4], axis=-1)
    return np.stack([scales, minima], axis=-1).reshape(len(part), -1, 2)


def _above(codes_RK: Any, scales: Any, steps: int) -> BlockCodes:
    """Codes that are `steps`, a power of two, higher than the file means them."""
    with np.errstate(over="ignore", invalid="ignore"):
        return BlockCodes(codes_RK, scales, scales * np.float16(-steps))
