"""Residual add and RMS norm by the kernel of `rms_norm.py`. H hidden size."""

import torch
from torch import Tensor

from inferometer.backends.triton.kernels._launching import as_rows
from inferometer.backends.triton.kernels.rms_norm import launch_norm


def fused_add_rms_norm(
    x: Tensor, residual: Tensor, weight: Tensor, *, eps: float = 1e-6, offset: float = 0.0, late_cast: bool = True
) -> tuple[Tensor, Tensor]:
    """The normed sum in the dtype of `x` and the sum in that of `residual`, both new, of the shape of `x`.

    The sum is rounded, then normed, times (offset + weight [H]).
    """
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    total = torch.empty(x.shape, dtype=residual.dtype, device=x.device)
    launch_norm(
        as_rows(x), as_rows(residual), weight, as_rows(out), as_rows(total),
        eps=eps, offset=offset, late_cast=late_cast,
    )  # fmt: skip
    return out, total
