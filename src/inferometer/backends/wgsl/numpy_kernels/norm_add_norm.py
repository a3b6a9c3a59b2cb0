"""The seam between two halves of a layer with norms behind and in front. T tokens, D hidden size."""

from collections.abc import Mapping
from typing import Any

from inferometer.backends.wgsl.numpy_kernels.rms_norm import normalize


def run(arrays: Mapping[str, Any], constants: Mapping[str, float], grid: tuple[int, int, int]) -> None:
    """`residual += norm(x; post)`, then `out = norm(residual; weight)`."""
    D, T = int(constants["D"]), int(arrays["state"][1])
    eps, offset = constants["EPS"], constants["OFFSET"]
    residual_TD = arrays["residual"].reshape(-1, D)[:T]
    residual_TD += normalize(arrays["x"].reshape(-1, D)[:T], arrays["post"][:D], eps, offset)
    arrays["out"].reshape(-1, D)[:T] = normalize(residual_TD, arrays["weight"][:D], eps, offset)
