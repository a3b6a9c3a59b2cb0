"""Chunks of attention added up and divided. H query heads, C chunks, D head size."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from inferometer.backends.wgsl.numpy_kernels.attention import LEAST, LOWEST, visible


def run(arrays: Mapping[str, Any], constants: Mapping[str, float], grid: tuple[int, int, int]) -> None:
    """`out` [1, H * D] of what `attention_split` left."""
    H, D, chunk = (int(constants[name]) for name in ("HEADS", "DH", "CHUNK"))
    begin, end = visible(int(arrays["state"][0]), int(constants["WINDOW"]))
    C = -(-(end - begin) // chunk)
    partial_HCE = arrays["partials"].reshape(H, -1, D + 2)[:, :C]
    largest_HC = partial_HCE[:, :, D]
    weight_HC = np.exp(largest_HC - np.maximum(largest_HC.max(-1, keepdims=True), LOWEST))
    sum_HE = np.einsum("hc,hce->he", weight_HC, partial_HCE)
    arrays["out"].reshape(H, D)[:] = sum_HE[:, :D] / np.maximum(sum_HE[:, D + 1 :], LEAST)
