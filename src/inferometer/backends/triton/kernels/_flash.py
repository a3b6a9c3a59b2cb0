# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""Softmax of attention as it goes along the keys: what the kernels of attention share.

A program holds some rows of queries, each with the largest score so far, the sum of weights and the weighted values,
all float32, and takes in one tile of keys and values after another. Scores are powers of 2, which GPUs have an
instruction for. Source: arXiv:2205.14135, algorithm 1.
"""

import triton
import triton.language as tl

LOG2_E = 1.4426950408889634
LOWEST = tl.constexpr(-1e30)
"""In place of a largest score where no key was seen: finite, so that a difference of two is a number."""


@triton.jit
def tanh(x, EXACT: tl.constexpr):
    """Without EXACT its error near 0 is one of 1; with it, there a series, its error is one of the answer."""
    size = tl.abs(x)
    power = tl.exp2(size * -2.8853900817779268)  # exp(-2 |x|)
    far = (1.0 - power) / (1.0 + power)
    if EXACT:
        square = x * x
        series = -17.0 / 315 + square * (62.0 / 2835 + square * (-1382.0 / 155925))
        series = 1.0 + square * (-1.0 / 3 + square * (2.0 / 15 + square * series))
        far = tl.where(size < 0.3, size * series, far)
    return tl.where(x < 0, -far, far)


@triton.jit
def empty(ROWS: tl.constexpr, BLOCK_D: tl.constexpr):
    """The state before any key: largest score, sum of weights, weighted values."""
    return tl.full([ROWS], LOWEST, tl.float32), tl.zeros([ROWS], tl.float32), tl.zeros([ROWS, BLOCK_D], tl.float32)


@triton.jit
def absorb(
    q, k, v, seen, largest, total, values, scale, softcap,
    MASKED: tl.constexpr, CAPPED: tl.constexpr, INTERPRETED: tl.constexpr,
):  # fmt: skip
    """The state after one tile more: q [ROWS, D], k [D, KEYS], v [KEYS, D], seen [ROWS, KEYS].

    `scale` makes powers of 2 of q times k; where CAPPED, `scale` makes an argument of tanh, and `softcap` powers of 2.
    """
    if INTERPRETED:  # whose products of bfloat16 are wrong
        q = q.to(tl.float32)
        k = k.to(tl.float32)
        v = v.to(tl.float32)
    score = tl.dot(q, k, input_precision="ieee") * scale
    if CAPPED:
        score = softcap * tanh(score, q.dtype == tl.float32)
    if MASKED:
        score = tl.where(seen, score, float("-inf"))
    higher = tl.maximum(largest, tl.max(score, 1))
    fade = tl.exp2(largest - higher)
    weight = tl.exp2(score - higher[:, None])
    total = total * fade + tl.sum(weight, 1)
    values = tl.dot(weight.to(v.dtype), v, values * fade[:, None], input_precision="ieee")
    return higher, total, values


@triton.jit
def load_tile(at, inside, MASKED: tl.constexpr):
    """What lies there; where MASKED, zeros outside of `inside`."""
    return tl.load(at, mask=inside, other=0) if MASKED else tl.load(at)
