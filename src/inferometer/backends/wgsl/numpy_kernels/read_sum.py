"""Sums of vectors of four, by the thread that walks over them."""

from collections.abc import Mapping
from typing import Any

import numpy as np


def run(arrays: Mapping[str, Any], constants: Mapping[str, float], grid: tuple[int, int, int]) -> None:
    """`out[i] = sum of x[i], x[i + stride], …`, uint32 that wraps; `stride`: threads of the grid."""
    words, stride = int(constants["WORDS"]), grid[0] * int(constants["THREADS"])
    x = arrays["x"].reshape(-1, 4)[:words]
    padded = np.zeros((-(-words // stride) * stride, 4), np.uint32)
    padded[:words] = x
    sums = padded.reshape(-1, stride, 4).sum(0, dtype=np.uint32)
    arrays["out"][: 4 * stride] = sums.reshape(-1)
