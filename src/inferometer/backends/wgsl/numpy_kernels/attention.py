"""Causal attention over the cache. T rows, H query heads, G kv heads, R heads of a group, D head size, P positions."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from inferometer.backends.wgsl.cache_formats import cache_format_of
from inferometer.backends.wgsl.numpy_kernels.soft_cap import capped

LOWEST = np.float32(-1e38)
"""Where the search for the largest score begins: finite, as WGSL has no infinity."""
LEAST = np.float32(1e-37)
"""Divides where no position has a weight."""


def run(arrays: Mapping[str, Any], constants: Mapping[str, float], grid: tuple[int, int, int]) -> None:
    """`out` [T, H * D]: row t sees the positions up to `position + t`, the last WINDOW of them (0: all)."""
    H, G, D = (int(constants[name]) for name in ("HEADS", "KV_HEADS", "DH"))
    position, T = (int(number) for number in arrays["state"][:2])
    T = min(T, grid[1])
    window = int(constants["WINDOW"])
    q_TGRD = arrays["q"][: T * H * D].reshape(T, G, H // G, D)
    out_TGRD = arrays["out"][: T * H * D].reshape(T, G, H // G, D)
    k_PGD, v_PGD = key_values(arrays, constants, position + T)
    for row in range(T):
        here = slice(*visible(position + row, window))
        score_GRP = np.einsum("grd,pgd->grp", q_TGRD[row], k_PGD[here]) * np.float32(constants["SCALE"])
        score_GRP = capped(score_GRP, constants["SOFTCAP"])
        weight_GRP = np.exp(score_GRP - np.maximum(score_GRP.max(-1, keepdims=True), LOWEST))
        sum_GR1 = np.maximum(weight_GRP.sum(-1, keepdims=True), LEAST)
        out_TGRD[row] = np.einsum("grp,pgd->grd", weight_GRP, v_PGD[here]) / sum_GR1


def key_values(arrays: Mapping[str, Any], constants: Mapping[str, float], end: int) -> tuple[Any, Any]:
    """Keys and values of the first `end` positions [P, G, D] in float32, from the format that CACHE names."""
    G, D = (int(constants[name]) for name in ("KV_HEADS", "DH"))
    dtype = cache_format_of(constants["CACHE"]).dtype
    k_PGD, v_PGD = (
        arrays[name].view(dtype).reshape(-1, G, D)[:end].astype(np.float32, copy=False) for name in ("k", "v")
    )
    return k_PGD, v_PGD


def visible(position: int, window: int) -> tuple[int, int]:
    """First and end of the positions that a row at `position` sees; a window of 0 is none."""
    return (max(0, position + 1 - window) if window else 0), position + 1
