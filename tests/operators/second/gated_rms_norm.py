"""Norm a row at a time in float64; the sigmoid by way of tanh."""

from typing import Any

import numpy as np


def second(
    x: np.ndarray, weight: np.ndarray, z: np.ndarray, *, eps: float, norm_before_gate: bool, activation: str
) -> np.ndarray:  # fmt: skip
    out = np.empty_like(x)
    for r in range(len(x)):
        gate = (1 + np.tanh(z[r] / 2)) / 2 * (1 if activation == "sigmoid" else z[r])
        inside, outside = (1, gate) if norm_before_gate else (gate, 1)
        row = x[r] * inside
        out[r] = row / np.sqrt(np.dot(row, row) / len(row) + eps) * weight * outside
    return out


def eager(x: Any, weight: Any, z: Any, *, eps: float, norm_before_gate: bool, activation: str) -> Any:
    import torch

    gate = torch.sigmoid(z.float()) if activation == "sigmoid" else torch.nn.functional.silu(z.float())
    x32 = x.float() if norm_before_gate else x.float() * gate
    normed = x32 * (x32.pow(2).mean(-1, keepdim=True) + eps).rsqrt() * weight.float()
    return (normed * gate if norm_before_gate else normed).to(x.dtype)
