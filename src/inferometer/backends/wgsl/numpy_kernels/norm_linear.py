"""RMSNorm of one row and its product with a weight matrix. K columns of x, N of the result."""

from collections.abc import Mapping
from typing import Any

from inferometer.backends.wgsl.numpy_kernels.linear import matrix, put
from inferometer.backends.wgsl.numpy_kernels.rms_norm import normalize


def run(arrays: Mapping[str, Any], constants: Mapping[str, float], grid: tuple[int, int, int]) -> None:
    """`out[OUT0 : OUT0 + N] = norm(x) @ weight.T + bias`."""
    K, T = int(constants["K"]), int(arrays["state"][1])
    x_1K = arrays["x"].reshape(-1, K)[: min(T, 1)]
    normed_1K = normalize(x_1K, arrays["norm"][:K], constants["EPS"], constants["OFFSET"])
    y_1N = normed_1K @ matrix(arrays["weight"], constants).T
    if constants["HAS_BIAS"]:
        y_1N += arrays["bias"][: y_1N.shape[1]]
    put(y_1N, arrays["out"], constants)
