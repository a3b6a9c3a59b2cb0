"""The first half of a gated feed-forward layer, of one row. T tokens, K hidden size, N feed-forward size."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from inferometer.backends.wgsl.numpy_kernels.linear import matrix, put


def run(arrays: Mapping[str, Any], constants: Mapping[str, float], grid: tuple[int, int, int]) -> None:
    """`out[OUT0 : OUT0 + N] = act(x @ gate.T) * (x @ up.T)`."""
    put_gated(arrays, constants, min(int(arrays["state"][1]), 1))


def put_gated(arrays: Mapping[str, Any], constants: Mapping[str, float], T: int) -> None:
    """As `run`, of the first T rows."""
    x_TK = arrays["x"].reshape(-1, int(constants["K"]))[:T]
    gate_TN = x_TK @ matrix(arrays["gate"], constants).T
    up_TN = x_TK @ matrix(arrays["up"], constants).T
    put(activate(gate_TN, int(constants["ACTIVATION"])) * up_TN, arrays["out"], constants)


def activate(x_TN: Any, activation: int) -> Any:
    """SiLU (0), or GELU by its tanh formula (1)."""
    if activation == 0:
        return x_TN / (1 + np.exp(np.minimum(-x_TN, np.float32(80))))
    inner_TN = np.float32(np.sqrt(2 / np.pi)) * (x_TN + np.float32(0.044715) * x_TN**3)
    return np.float32(0.5) * x_TN * (1 + np.tanh(inner_TN))
