"""Quantised a row at a time in float64, and rounded to e4m3 by its definition."""

from typing import Any

import numpy as np

LARGEST = {"fp8_e4m3fn": 448.0, "fp8_e4m3fnuz": 240.0}
_SMALLEST_NORMAL = {"fp8_e4m3fn": 2.0**-6, "fp8_e4m3fnuz": 2.0**-7}


def second(x: np.ndarray, *, fp8_dtype: str = "fp8_e4m3fnuz", fp8_max: float | None = None) -> tuple[np.ndarray, ...]:
    most = fp8_max or LARGEST[fp8_dtype]
    scales = [max(*map(abs, row), 1e-12) / most for row in x.tolist()]
    return rounded(np.stack([row / scale for row, scale in zip(x, scales, strict=True)]), fp8_dtype), np.array(scales)


def rounded(values: np.ndarray, fp8_dtype: str) -> np.ndarray:
    """To the nearest value of the type, ties to even: three bits after the leading one, or steps of the subnormals."""
    leading = np.maximum(2.0 ** (np.frexp(values)[1] - 1), _SMALLEST_NORMAL[fp8_dtype])
    step = leading / 8
    return np.clip(np.rint(values / step) * step, -LARGEST[fp8_dtype], LARGEST[fp8_dtype])


def eager(x: Any, *, fp8_dtype: str = "fp8_e4m3fnuz", fp8_max: float | None = None) -> Any:
    import torch

    dtype = getattr(torch, fp8_dtype.replace("fp8", "float8"))
    most = fp8_max or torch.finfo(dtype).max
    scale = x.float().abs().amax(-1, keepdim=True).clamp(min=1e-12) / most
    return (x.float() * scale.reciprocal()).clamp(-most, most).to(dtype), scale.squeeze(-1)
