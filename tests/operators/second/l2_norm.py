"""Length a row at a time in float64."""

from typing import Any

import numpy as np


def second(x: np.ndarray, *, eps: float = 1e-6) -> np.ndarray:
    return np.stack([row / np.hypot(np.linalg.norm(row), np.sqrt(eps)) for row in x])


def eager(x: Any, *, eps: float = 1e-6) -> Any:
    x32 = x.float()
    return (x32 * ((x32 * x32).sum(-1, keepdim=True) + eps).rsqrt()).to(x.dtype)
