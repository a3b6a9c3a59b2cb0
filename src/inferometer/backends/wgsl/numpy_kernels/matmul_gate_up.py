"""The first half of a gated feed-forward layer, of all rows of a pass."""

from collections.abc import Mapping
from typing import Any

from inferometer.backends.wgsl.numpy_kernels.gate_up import put_gated


def run(arrays: Mapping[str, Any], constants: Mapping[str, float], grid: tuple[int, int, int]) -> None:
    """`out[:, OUT0 : OUT0 + N] = act(x @ gate.T) * (x @ up.T)`."""
    put_gated(arrays, constants, int(arrays["state"][1]))
