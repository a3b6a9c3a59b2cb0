"""RMSNorm of rows. T tokens, D hidden size. Source of the formula: arXiv:1910.07467, equation 4."""

from collections.abc import Mapping
from typing import Any

import numpy as np


def run(arrays: Mapping[str, Any], constants: Mapping[str, float], grid: tuple[int, int, int]) -> None:
    """`out = norm(x)`."""
    D, T = int(constants["D"]), int(arrays["state"][1])
    x_TD = arrays["x"].reshape(-1, D)[:T]
    arrays["out"].reshape(-1, D)[:T] = normalize(x_TD, arrays["weight"][:D], constants["EPS"], constants["OFFSET"])


def normalize(x_TD: Any, weight_D: Any, eps: float, offset: float) -> Any:
    """`x * rsqrt(mean(x²) + eps) * (offset + weight)`, float32."""
    mean_T1 = np.square(x_TD).mean(-1, keepdims=True, dtype=np.float32)
    return x_TD * (1 / np.sqrt(mean_T1 + np.float32(eps))) * (np.float32(offset) + weight_D)
