"""Sum and norm a row at a time in float64; nothing is rounded."""

from typing import Any

import numpy as np


def second(
    x: np.ndarray, residual: np.ndarray, weight: np.ndarray, *, eps: float
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    out, added = np.empty_like(x), np.empty_like(residual)
    for t in range(len(x)):
        added[t] = x[t] + residual[t]
        out[t] = added[t] / np.sqrt(np.dot(added[t], added[t]) / len(weight) + eps) * weight
    return out, added


def eager(x: Any, residual: Any, weight: Any, *, eps: float) -> Any:
    added = x + residual
    scale = (added.float().pow(2).mean(-1, keepdim=True) + eps).rsqrt()
    return (added.float() * scale * weight.float()).to(x.dtype), added
