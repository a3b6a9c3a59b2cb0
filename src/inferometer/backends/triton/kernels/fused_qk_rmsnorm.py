# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""RMS norm of the query and key heads of packed rows. Hq query, Hk key and Hk value heads a token, d head size.

A program takes some heads, of whichever kind; values are copied.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from inferometer.backends.triton.kernels._launching import as_rows, interpreted, on_device_of, rows_in_tile, warps_for
from inferometer.backends.triton.kernels._rounding import rounded


@triton.jit
def normed_heads(
    qkv, q_weight, k_weight, out, heads, Hq, Hk, d, stride, eps,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, INTERPRETED: tl.constexpr,
):  # fmt: skip
    """`heads`: of all tokens. The norm is rounded before the weight and after it."""
    index = (tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS))[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    in_token = Hq + 2 * Hk
    head = index % in_token
    inside = (index < heads) & (column < d)
    at = (index // in_token) * stride + head * d + column
    given = tl.load(qkv + at, mask=inside, other=0.0)
    values = given.to(tl.float32)
    scale = 1.0 / tl.sqrt(tl.sum(values * values, 1)[:, None] / d + eps)
    normed = rounded(values * scale, out.dtype.element_ty, INTERPRETED).to(tl.float32)
    q_weights = tl.load(q_weight + column, mask=column < d, other=0.0).to(tl.float32)
    k_weights = tl.load(k_weight + column, mask=column < d, other=0.0).to(tl.float32)
    weighted = rounded(normed * tl.where(head < Hq, q_weights, k_weights), out.dtype.element_ty, INTERPRETED)
    tl.store(out + index * d + column, tl.where(head < Hq + Hk, weighted, given), mask=inside)


def fused_qk_rmsnorm(
    hidden_states: Tensor, q_weight: Tensor, k_weight: Tensor, *, head_num: int, kv_head_num: int, eps: float = 1e-6
) -> Tensor:
    """A new [T, (Hq + 2 Hk) d] of that."""
    qkv_TS = as_rows(hidden_states)
    T, S = qkv_TS.shape
    in_token = head_num + 2 * kv_head_num
    d = S // in_token
    out_TS = torch.empty(T, S, dtype=qkv_TS.dtype, device=qkv_TS.device)
    block = triton.next_power_of_2(d)
    rows = rows_in_tile(T * in_token, block, normed_heads)
    with on_device_of(qkv_TS):
        normed_heads[(triton.cdiv(T * in_token, rows),)](
            qkv_TS, q_weight.contiguous(), k_weight.contiguous(), out_TS, T * in_token, head_num, kv_head_num, d,
            qkv_TS.stride(0), eps, ROWS=rows, BLOCK=block, INTERPRETED=interpreted(normed_heads),
            num_warps=warps_for(rows * block),
        )  # fmt: skip
    return out_TS
