"""The activation of a feed-forward layer whose two products are there. T tokens, N feed-forward size."""

from collections.abc import Mapping
from typing import Any

from inferometer.backends.wgsl.numpy_kernels.gate_up import activate


def run(arrays: Mapping[str, Any], constants: Mapping[str, float], grid: tuple[int, int, int]) -> None:
    """`out = act(gate) * up` of the pass's rows [gate, up]."""
    N, T = int(constants["N"]), int(arrays["state"][1])
    x_T2N = arrays["x"].reshape(-1, 2, N)[:T]
    arrays["out"].reshape(-1, N)[:T] = activate(x_T2N[:, 0], int(constants["ACTIVATION"])) * x_T2N[:, 1]
