"""FP8 product with scales of blocks in plain PyTorch: operands scaled to fp16, one product on the matrix units.

m rows, n columns, k depth, G groups of k. bf16 has too few bits for the contract's fp32, and float32 products take
many times as long; fp16, with its 11 bits, is a few 1e-4 off. So that it can't overflow, what is scaled is divided by
the largest scale of its row (of b: of all), and by 2^9, above the largest FP8 value: magnitudes stay below 1.

PyTorch's own product with block scales (`scaled_mm`) runs on one architecture only and wants other layouts of scales:
it isn't used. The largest published shape takes 13 GB.
"""

import torch
from torch import Tensor

_DOWN = 2.0**-9  # FP8 values are at most 448
_LEAST = 2.0**-120  # a scale that takes part in a division: rows of zeros stay zeros


def block_scaled_mm(
    a: Tensor, b: Tensor, a_scales: Tensor, b_scales: Tensor, *, group_n: int = 128, group_k: int = 128
) -> Tensor:
    """fp32 [m, n] of a [m, k], b [n, k], a_scales [m, G] and b_scales [n / group_n, G]."""
    largest_m1 = a_scales.amax(1, keepdim=True).clamp_(min=_LEAST)
    largest = b_scales.amax().clamp_(min=_LEAST)
    a16_mk = _scaled(a, a_scales / largest_m1, group_k)
    b16_nk = _scaled(b, (b_scales / largest).repeat_interleave(group_n, 0)[: b.shape[0]], group_k)
    return torch.mul(a16_mk @ b16_nk.T, largest_m1 * (largest / _DOWN**2))  # fp16 times fp32: fp32


def _scaled(values: Tensor, scale_RG: Tensor, group_k: int) -> Tensor:
    """fp16 [R, k]: multiplied in float32, rounded once. FP8 values are exact in fp16."""
    groups = values.half().unflatten(1, (-1, group_k))
    return groups.mul_((scale_RG * _DOWN).unsqueeze(-1)).flatten(1)
