"""Attention of many rows by tiles of queries: what `attention` computes, whatever the tile."""

from collections.abc import Mapping
from typing import Any

from inferometer.backends.wgsl.numpy_kernels import attention


def run(arrays: Mapping[str, Any], constants: Mapping[str, float], grid: tuple[int, int, int]) -> None:
    """`out` [T, H * D] of all rows of the pass."""
    attention.run(arrays, constants, (grid[0], int(arrays["state"][1]), 1))
