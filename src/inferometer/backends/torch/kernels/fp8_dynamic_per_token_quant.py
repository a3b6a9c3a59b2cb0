"""FP8 values of rows in plain PyTorch: a maximum norm, the scale, and a multiply in float32 that writes FP8.

T tokens, H hidden size. Nothing can pass the largest value by more than float32 rounds, which FP8 rounds back to it:
no clamp is needed.
"""

import torch
from torch import Tensor

_LEAST = 1e-12  # magnitude of a row of zeros


def fp8_dynamic_per_token_quant(
    x: Tensor, *, fp8_dtype: str = "fp8_e4m3fnuz", fp8_max: float | None = None
) -> tuple[Tensor, Tensor]:
    """FP8 [T, H], scale fp32 [T]."""
    dtype = getattr(torch, fp8_dtype.replace("fp8", "float8"))
    most = torch.finfo(dtype).max if fp8_max is None else fp8_max
    largest_T1 = torch.linalg.vector_norm(x, float("inf"), -1, keepdim=True, dtype=torch.float32)
    scale_T1 = largest_T1.clamp_(min=_LEAST).div_(most)
    q_TH = torch.empty(x.shape, dtype=dtype, device=x.device)
    torch.mul(x, scale_T1.reciprocal(), out=q_TH)  # no float32 [T, H] in memory
    return q_TH, scale_T1.squeeze(-1)
