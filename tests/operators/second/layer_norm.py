"""Layer norm a row at a time in float64, the variance from the mean of squares."""

from typing import Any

import numpy as np


def second(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, *, eps: float = 1e-5) -> np.ndarray:
    out = np.empty_like(x)
    for place in np.ndindex(x.shape[:-1]):
        row = x[place]
        mean = sum(row) / len(row)
        out[place] = (row - mean) / np.sqrt(np.dot(row, row) / len(row) - mean**2 + eps) * weight + bias
    return out


def eager(x: Any, weight: Any, bias: Any, *, eps: float = 1e-5) -> Any:
    import torch

    return torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, eps)
