"""Residual add and RMS norm in plain PyTorch: an add and a fused norm. T tokens, H hidden size."""

from torch import Tensor
from torch.nn import functional


def fused_add_rms_norm(x: Tensor, residual: Tensor, weight: Tensor, *, eps: float = 1e-6) -> tuple[Tensor, Tensor]:
    """The normed rows and the sum, both new, [T, H]."""
    added_TH = x + residual
    return functional.rms_norm(added_TH, weight.shape, weight, eps), added_TH
