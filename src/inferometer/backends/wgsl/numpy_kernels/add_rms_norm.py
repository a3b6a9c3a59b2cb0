"""A sum and its RMSNorm, row by row. T tokens, D hidden size."""

from collections.abc import Mapping
from typing import Any

from inferometer.backends.wgsl.numpy_kernels.rms_norm import normalize


def run(arrays: Mapping[str, Any], constants: Mapping[str, float], grid: tuple[int, int, int]) -> None:
    """`residual += x`, then `out = norm(residual)`."""
    D, T = int(constants["D"]), int(arrays["state"][1])
    residual_TD = arrays["residual"].reshape(-1, D)[:T]
    residual_TD += arrays["x"].reshape(-1, D)[:T]
    out_TD = normalize(residual_TD, arrays["weight"][:D], constants["EPS"], constants["OFFSET"])
    arrays["out"].reshape(-1, D)[:T] = out_TD
