"""Gated RMS norm in plain PyTorch: a fused norm, an activation and a multiply, each rounded. R rows, H columns."""

import torch
from torch import Tensor
from torch.nn import functional

_ACTIVATIONS = {"silu": functional.silu, "swish": functional.silu, "sigmoid": torch.sigmoid}


def gated_rms_norm(
    x: Tensor,
    weight: Tensor,
    z: Tensor,
    *,
    eps: float = 1e-6,
    norm_before_gate: bool = True,
    activation: str = "silu",
) -> Tensor:
    """[R, H] like `x`. The gate's memory takes the product."""
    gate_RH = _ACTIVATIONS[activation](z)
    if norm_before_gate:
        return gate_RH.mul_(functional.rms_norm(x, weight.shape, weight, eps))
    return functional.rms_norm(gate_RH.mul_(x), weight.shape, weight, eps)
