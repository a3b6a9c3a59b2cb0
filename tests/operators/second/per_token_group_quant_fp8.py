"""Quantised a row and a group at a time in float64."""

from typing import Any

import numpy as np
from tests.operators.second.fp8_dynamic_per_token_quant import rounded

_MOST = {"fp8_e4m3fn": 448.0, "fp8_e4m3fnuz": 224.0}


def second(
    x: np.ndarray, *, group_size: int, fp8_dtype: str = "fp8_e4m3fn", fp8_max: float | None = None
) -> tuple[np.ndarray, ...]:
    most = fp8_max or _MOST[fp8_dtype]
    quantized, scales = np.empty_like(x), np.empty((x.shape[0], x.shape[1] // group_size))
    for row, group in np.ndindex(*scales.shape):
        of = slice(group * group_size, (group + 1) * group_size)
        scales[row, group] = max(np.linalg.norm(x[row, of], np.inf) / most, 1e-10)
        quantized[row, of] = rounded(x[row, of] / scales[row, group], fp8_dtype)
    return quantized, scales


def eager(x: Any, *, group_size: int, fp8_dtype: str = "fp8_e4m3fn", fp8_max: float | None = None) -> Any:
    import torch

    most = fp8_max or _MOST[fp8_dtype]
    groups = x.float().view(x.shape[0], -1, group_size)
    scales = (groups.abs().amax(-1) / most).clamp(min=1e-10)
    quantized = (groups / scales[..., None]).clamp(-most, most).view(x.shape)
    return quantized.to(getattr(torch, fp8_dtype.replace("fp8", "float8"))), scales
