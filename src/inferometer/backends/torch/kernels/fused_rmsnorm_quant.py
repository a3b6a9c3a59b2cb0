"""Residual add, RMS norm and FP8 values of rows in plain PyTorch: an add, a fused norm, a maximum norm, a division.

T tokens, H hidden size. Nothing can pass the largest value by more than float32 rounds, which FP8 rounds back to it:
no clamp is needed.
"""

import torch
from torch import Tensor
from torch.nn import functional


def fused_rmsnorm_quant(
    x: Tensor,
    residual: Tensor,
    weight: Tensor,
    *,
    eps: float = 1e-5,
    fp8_dtype: str = "fp8_e4m3fnuz",
    fp8_max: float | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """FP8 [T, H], scale fp32 [T, 1], the new residual [T, H]. A row of zeros has the scale 1."""
    dtype = getattr(torch, fp8_dtype.replace("fp8", "float8"))
    most = torch.finfo(dtype).max if fp8_max is None else fp8_max
    added_TH = x + residual
    normed_TH = functional.rms_norm(added_TH, weight.shape, weight, eps)
    scale_T1 = torch.linalg.vector_norm(normed_TH, float("inf"), -1, keepdim=True, dtype=torch.float32).div_(most)
    scale_T1.masked_fill_(scale_T1 == 0, 1.0)
    quantized_TH = torch.empty(x.shape, dtype=dtype, device=x.device)
    torch.div(normed_TH, scale_T1, out=quantized_TH)  # no float32 [T, H] in memory
    return quantized_TH, scale_T1, added_TH
