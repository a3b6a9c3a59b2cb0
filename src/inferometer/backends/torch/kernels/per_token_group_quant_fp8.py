"""FP8 values of groups of columns in plain PyTorch: a maximum norm, the scale, and a division that writes FP8.

T tokens, H hidden size, G groups of g columns. Nothing can pass the largest value by more than float32 rounds, which
FP8 rounds back to it: no clamp is needed. The largest published shape takes 19 GB, all of it inputs and outputs.
"""

import torch
from torch import Tensor

_LEAST_SCALE = 1e-10  # of a group of zeros
_USED = {"fp8_e4m3fnuz": 224.0}  # largest values that aren't those of the type


def per_token_group_quant_fp8(
    x: Tensor, *, group_size: int, fp8_dtype: str = "fp8_e4m3fn", fp8_max: float | None = None
) -> tuple[Tensor, Tensor]:
    """FP8 [T, H], scales fp32 [T, G]."""
    dtype = getattr(torch, fp8_dtype.replace("fp8", "float8"))
    most = _USED.get(fp8_dtype, torch.finfo(dtype).max) if fp8_max is None else fp8_max
    x_TGg = x.unflatten(-1, (-1, group_size))
    largest_TG1 = torch.linalg.vector_norm(x_TGg, float("inf"), -1, keepdim=True, dtype=torch.float32)
    scale_TG1 = largest_TG1.div_(most).clamp_(min=_LEAST_SCALE)
    q_TGg = torch.empty(x_TGg.shape, dtype=dtype, device=x.device)
    torch.div(x_TGg, scale_TG1, out=q_TGg)  # no float32 [T, H] in memory
    return q_TGg.flatten(1), scale_TG1.squeeze(-1)
