"""Packed rows split into heads, those of q and k rotated, in plain PyTorch: both rotated at once, a head as two halves.

Angles are float32; sines, cosines and the rotation have the dtype of `qkv`. Published shapes take 0.1 MB.

T tokens, Hq query heads, Hk key-value heads, d head size, r rope_dim, R = r / 2, N = (Hq + 2 Hk) d.
"""

import torch
from torch import Tensor


def fused_qkv_rope(
    qkv: Tensor,
    positions: Tensor,
    qkv_bias: Tensor | None = None,
    *,
    num_heads: int,
    num_kv_heads: int,
    head_dim: int,
    rope_dim: int,
    rope_base: float = 10000.0,
) -> tuple[Tensor, Tensor, Tensor]:
    """Dense q [T, Hq, d], k and v [T, Hk, d]."""
    packed = qkv if qkv_bias is None else qkv + qkv_bias
    turning, v = packed.unflatten(-1, (-1, head_dim)).split([num_heads + num_kv_heads, num_kv_heads], 1)
    last = 2 / rope_dim - 1
    frequency_R = torch.logspace(0, last, rope_dim // 2, rope_base, dtype=torch.float32, device=qkv.device)
    angle_T11R = (positions[:, None] * frequency_R)[:, None, None]
    turned = _rotate(turning, angle_T11R.cos().to(qkv.dtype), angle_T11R.sin().to(qkv.dtype))
    q, k = turned.split([num_heads, num_kv_heads], 1)
    return q.contiguous(), k.contiguous(), v.clone(memory_format=torch.contiguous_format)


def _rotate(x_THd: Tensor, cos_T11R: Tensor, sin_T11R: Tensor) -> Tensor:
    """Column i with i + R; columns from r on stay."""
    rope_dim = 2 * cos_T11R.shape[-1]
    pair_TH2R = x_THd[..., :rope_dim].unflatten(-1, (2, -1))
    one, other = pair_TH2R.unbind(-2)
    turned_TH2R = pair_TH2R * cos_T11R
    turned_TH2R[..., 0, :].addcmul_(other, sin_T11R[..., 0, :], value=-1)
    turned_TH2R[..., 1, :].addcmul_(one, sin_T11R[..., 0, :])
    turned = turned_TH2R.flatten(-2)
    return turned if rope_dim == x_THd.shape[-1] else torch.cat([turned, x_THd[..., rope_dim:]], -1)
