"""Products of one row with a weight matrix, by pieces of K. N columns of the result."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from inferometer.backends.wgsl.numpy_kernels.linear import matrix


def run(arrays: Mapping[str, Any], constants: Mapping[str, float], grid: tuple[int, int, int]) -> None:
    """`partials[s] = x[piece s] @ weight[:, piece s].T`; pieces are multiples of 8, the last ones maybe empty."""
    K, N, splits = (int(constants[name]) for name in ("K", "N", "SPLITS"))
    T = int(arrays["state"][1])
    if not T:
        return
    x_K = arrays["x"].reshape(-1, K)[T - 1 if constants["LAST_ROW"] else 0]
    weight_NK = matrix(arrays["weight"], constants)
    piece = 8 * -(-(K // 8) // splits)
    partial_SN = arrays["partials"][: splits * N].reshape(splits, N)
    for split in range(splits):
        part = np.s_[split * piece : (split + 1) * piece]
        partial_SN[split] = weight_NK[:, part] @ x_K[part]
