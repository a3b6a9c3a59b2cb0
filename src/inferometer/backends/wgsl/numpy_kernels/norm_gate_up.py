"""RMSNorm of one row, and the first half of a gated feed-forward layer on it. K hidden size, N feed-forward size."""

from collections.abc import Mapping
from typing import Any

from inferometer.backends.wgsl.numpy_kernels import gate_up
from inferometer.backends.wgsl.numpy_kernels.rms_norm import normalize


def run(arrays: Mapping[str, Any], constants: Mapping[str, float], grid: tuple[int, int, int]) -> None:
    """`n = norm(x); out[OUT0 : OUT0 + N] = act(n @ gate.T) * (n @ up.T)`."""
    K = int(constants["K"])
    x_1K = arrays["x"].reshape(-1, K)[:1]
    normed_1K = normalize(x_1K, arrays["norm"][:K], constants["EPS"], constants["OFFSET"])
    gate_up.run({**arrays, "x": normed_1K}, constants, grid)
