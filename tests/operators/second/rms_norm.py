"""RMS norm a row at a time in float64."""

from typing import Any

import numpy as np


def second(x: np.ndarray, weight: np.ndarray, *, eps: float) -> np.ndarray:
    return np.stack([row / np.sqrt(np.dot(row, row) / len(row) + eps) * weight for row in x])


def eager(x: Any, weight: Any, *, eps: float) -> Any:
    scale = (x.float().pow(2).mean(-1, keepdim=True) + eps).rsqrt()
    return (x.float() * scale * weight.float()).to(x.dtype)
