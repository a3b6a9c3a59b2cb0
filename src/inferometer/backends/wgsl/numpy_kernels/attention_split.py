"""Attention of one row over chunks of positions, not yet divided. H query heads, G kv heads, D head size."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from inferometer.backends.wgsl.numpy_kernels.attention import LOWEST, key_values, visible
from inferometer.backends.wgsl.numpy_kernels.soft_cap import capped


def run(arrays: Mapping[str, Any], constants: Mapping[str, float], grid: tuple[int, int, int]) -> None:
    """`partials` [H, MAX_CHUNKS, D + 2]: the sum of exp(score - largest) * v, then largest, then the sum of exp."""
    H, G, D, chunk = (int(constants[name]) for name in ("HEADS", "KV_HEADS", "DH", "CHUNK"))
    q_GRD = arrays["q"][: H * D].reshape(G, H // G, D)
    partial_GRCE = arrays["partials"].reshape(G, H // G, -1, D + 2)
    begin, end = visible(int(arrays["state"][0]), int(constants["WINDOW"]))
    k_PGD, v_PGD = key_values(arrays, constants, end)
    for number, first in enumerate(range(begin, end, chunk)):
        here = slice(first, min(first + chunk, end))
        score_GRP = np.einsum("grd,pgd->grp", q_GRD, k_PGD[here]) * np.float32(constants["SCALE"])
        score_GRP = capped(score_GRP, constants["SOFTCAP"])
        largest_GR1 = np.maximum(score_GRP.max(-1, keepdims=True), LOWEST)
        weight_GRP = np.exp(score_GRP - largest_GR1)
        sum_GRD = np.einsum("grp,pgd->grd", weight_GRP, v_PGD[here])
        partial_GRCE[:, :, number] = np.concatenate([sum_GRD, largest_GR1, weight_GRP.sum(-1, keepdims=True)], axis=-1)
