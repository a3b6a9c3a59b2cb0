"""The norm a row at a time in float64; sum and norm are rounded to bf16 as the contract has it."""

from typing import Any

import numpy as np
from tests.operators.second.fp8_dynamic_per_token_quant import LARGEST, rounded


def second(
    x: np.ndarray,
    residual: np.ndarray,
    weight: np.ndarray,
    *,
    eps: float = 1e-5,
    fp8_dtype: str = "fp8_e4m3fnuz",
    fp8_max: float | None = None,
) -> tuple[np.ndarray, ...]:
    added = _bf16(x + residual)
    quantized, scales = np.empty_like(x), np.empty((len(x), 1))
    for at, row in enumerate(added):
        normed = _bf16(row / np.sqrt(np.dot(row, row) / len(row) + eps) * weight)
        scales[at] = np.linalg.norm(normed, np.inf) / (fp8_max or LARGEST[fp8_dtype]) or 1.0
        quantized[at] = rounded(normed / scales[at], fp8_dtype)
    return quantized, scales, added


def _bf16(values: np.ndarray) -> np.ndarray:
    """To the nearest of eight significant bits, ties to even; float64's range."""
    step = 2.0 ** (np.frexp(values)[1] - 8)
    return np.rint(values / step) * step


def eager(
    x: Any,
    residual: Any,
    weight: Any,
    *,
    eps: float = 1e-5,
    fp8_dtype: str = "fp8_e4m3fnuz",
    fp8_max: float | None = None,
) -> Any:
    import torch

    added = x + residual
    inverse = (added.float().pow(2).mean(-1, keepdim=True) + eps).rsqrt()
    normed = (added.float() * inverse * weight.float()).to(x.dtype).float()
    scale = normed.abs().amax(-1, keepdim=True) / (fp8_max or LARGEST[fp8_dtype])
    scale = torch.where(scale == 0, 1.0, scale)
    return (normed / scale).to(getattr(torch, fp8_dtype.replace("fp8", "float8"))), scale, added
