"""Heads normed, rotated and put into the cache. T rows, H query heads, G key heads, D head size, P positions."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from inferometer.backends.wgsl.cache_formats import cache_format_of, stored


def run(arrays: Mapping[str, Any], constants: Mapping[str, float], grid: tuple[int, int, int]) -> None:
    """Queries of the pass into `q`; keys and values into the cache after `position`."""
    H, G, D = (int(constants[name]) for name in ("HEADS", "KV_HEADS", "DH"))
    position, T = (int(number) for number in arrays["state"][:2])
    T = min(T, grid[1])
    here = slice(position, position + T)
    heads_THD = arrays["qkv"][: T * (H + 2 * G) * D].reshape(T, H + 2 * G, D)
    rotated_THD = heads_THD[:, : H + G]
    if constants["HAS_NORMS"]:
        q_norm_D, k_norm_D = arrays["head_norms"][: 2 * D].reshape(2, D)
        weight_HD = np.repeat([q_norm_D, k_norm_D], [H, G], axis=0)
        mean_TH1 = np.square(rotated_THD).mean(-1, keepdims=True)
        scale_TH1 = 1 / np.sqrt(mean_TH1 + np.float32(constants["EPS"]))
        rotated_THD = rotated_THD * scale_TH1 * (np.float32(constants["OFFSET"]) + weight_HD)
    cos_T1C, sin_T1C = np.split(arrays["angles"].reshape(-1, 1, D)[here], 2, axis=-1)
    first_THC, second_THC = np.split(rotated_THD, 2, axis=-1)
    rotated_THD = np.concatenate(
        [first_THC * cos_T1C - second_THC * sin_T1C, second_THC * cos_T1C + first_THC * sin_T1C], axis=-1
    )
    arrays["q"][: T * H * D].reshape(T, H, D)[:] = rotated_THD[:, :H]
    form = cache_format_of(constants["CACHE"])
    for name, new_TGD in (("k", rotated_THD[:, H:]), ("v", heads_THD[:, H + G :])):
        arrays[name].view(form.dtype).reshape(-1, G, D)[here] = stored(new_TGD, form)
