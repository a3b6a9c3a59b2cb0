# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""Rotary positions: each head's first half turned with its second. Source: arXiv:2104.09864, equation 34.

B sequences, T tokens, Hq query heads, Hk key heads, D head size. A program takes some heads of the queries, or of the
keys, in the order of sequence, token, head.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from inferometer.backends.triton.kernels._launching import interpreted, on_device_of, rows_in_tile, warps_for
from inferometer.backends.triton.kernels._rounding import rounded


@triton.jit
def _turn(
    x, out, cos, sin, first, B, H, T, half, x_b, x_h, x_t, out_b, out_h, out_t, cos_b, cos_t, sin_b, sin_t,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, INTERPRETED: tl.constexpr,
):  # fmt: skip
    """Products and their sum are rounded each, as Hugging Face's models do."""
    index = (first * ROWS + tl.arange(0, ROWS))[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    head, t, b = index % H, (index // H) % T, index // (H * T)
    inside = (b < B) & (column < half)
    near = x + b * x_b + head * x_h + t * x_t + column
    one = tl.load(near, mask=inside, other=0.0).to(tl.float32)
    other = tl.load(near + half, mask=inside, other=0.0).to(tl.float32)
    at_cos = cos + b * cos_b + t * cos_t + column
    at_sin = sin + b * sin_b + t * sin_t + column
    cos_one = tl.load(at_cos, mask=inside, other=0.0).to(tl.float32)
    cos_other = tl.load(at_cos + half, mask=inside, other=0.0).to(tl.float32)
    sin_one = tl.load(at_sin, mask=inside, other=0.0).to(tl.float32)
    sin_other = tl.load(at_sin + half, mask=inside, other=0.0).to(tl.float32)
    kind: tl.constexpr = out.dtype.element_ty
    along = rounded(one * cos_one, kind, INTERPRETED).to(tl.float32)
    across = rounded(other * sin_one, kind, INTERPRETED).to(tl.float32)
    far_along = rounded(other * cos_other, kind, INTERPRETED).to(tl.float32)
    far_across = rounded(one * sin_other, kind, INTERPRETED).to(tl.float32)
    place = out + b * out_b + head * out_h + t * out_t + column
    tl.store(place, rounded(along - across, kind, INTERPRETED), mask=inside)
    tl.store(place + half, rounded(far_along + far_across, kind, INTERPRETED), mask=inside)


@triton.jit
def turned_heads(
    q, k, q_out, k_out, cos, sin, B, Hq, Hk, T, half,
    q_b, q_h, q_t, k_b, k_h, k_t, q_out_b, q_out_h, q_out_t, k_out_b, k_out_h, k_out_t, cos_b, cos_t, sin_b, sin_t,
    q_programs, ROWS: tl.constexpr, BLOCK: tl.constexpr, INTERPRETED: tl.constexpr,
):  # fmt: skip
    """The first `q_programs` take queries, the others keys."""
    program = tl.program_id(0).to(tl.int64)
    if program < q_programs:
        _turn(
            q, q_out, cos, sin, program, B, Hq, T, half, q_b, q_h, q_t, q_out_b, q_out_h, q_out_t,
            cos_b, cos_t, sin_b, sin_t, ROWS, BLOCK, INTERPRETED,
        )  # fmt: skip
    else:
        _turn(
            k, k_out, cos, sin, program - q_programs, B, Hk, T, half, k_b, k_h, k_t, k_out_b, k_out_h, k_out_t,
            cos_b, cos_t, sin_b, sin_t, ROWS, BLOCK, INTERPRETED,
        )  # fmt: skip


def rope(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    """New tensors like q [B, Hq, T, D] and k [B, Hk, T, D], turned by cos and sin [B, T, D], or [1, T, D] for all.

    Any distances between heads, tokens and sequences will do; D is even, and its elements lie side by side.
    """
    B, Hq, T, D = q.shape
    Hk = k.shape[1]
    q_out, k_out = torch.empty_like(q), torch.empty_like(k)
    cos_BTD, sin_BTD = cos.expand(B, T, D), sin.expand(B, T, D)
    block = triton.next_power_of_2(D // 2)
    rows = rows_in_tile(B * T * Hq, block, turned_heads)
    q_programs, k_programs = triton.cdiv(B * T * Hq, rows), triton.cdiv(B * T * Hk, rows)
    with on_device_of(q):
        turned_heads[(q_programs + k_programs,)](
            q, k, q_out, k_out, cos_BTD, sin_BTD, B, Hq, Hk, T, D // 2, *q.stride()[:3], *k.stride()[:3],
            *q_out.stride()[:3], *k_out.stride()[:3], *cos_BTD.stride()[:2], *sin_BTD.stride()[:2], q_programs,
            ROWS=rows, BLOCK=block, INTERPRETED=interpreted(turned_heads), num_warps=warps_for(rows * block),
        )  # fmt: skip
    return q_out, k_out
