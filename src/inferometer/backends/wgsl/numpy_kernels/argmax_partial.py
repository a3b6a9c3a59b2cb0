"""The largest logit of each stretch of the vocabulary; what a seen token's logit is, and the order of float32."""

from collections.abc import Mapping
from typing import Any

import numpy as np


def run(arrays: Mapping[str, Any], constants: Mapping[str, float], grid: tuple[int, int, int]) -> None:
    """`partials` [GROUPS, 2]: bits of the logit, its index; of equals the lowest, NaN only where nothing else is."""
    V, groups = int(constants["V"]), int(constants["GROUPS"])
    size = -(-V // groups)
    bits = penalised(arrays["logits"][:V], arrays["seen"][:V], arrays["sampling"]).view(np.uint32)
    keys = np.zeros(size * groups, np.uint32)
    keys[:V] = ordered(bits)
    keys_GS = keys.reshape(groups, size)
    best_G = keys_GS.argmax(-1)
    first_G = np.minimum(np.arange(groups) * size, V)
    partial_G2 = arrays["partials"][: 2 * groups].reshape(groups, 2)
    partial_G2[:, 0] = bits_of(keys_GS[np.arange(groups), best_G])
    partial_G2[:, 1] = first_G + best_G


def penalised(logits: Any, seen: Any, sampling: Any) -> Any:
    """Logits of seen tokens over the repetition penalty where positive, else times it. Float32."""
    penalty = sampling.view(np.float32)[4]
    if penalty == 1:
        return logits
    return np.where(seen == 0, logits, np.where(logits > 0, logits / penalty, logits * penalty))


def ordered(bits: Any) -> Any:
    """Bits of float32 as uint32 in the order of the numbers: NaN is 0, below all; -0 is 0."""
    keys = np.where(bits >= 0x80000000, ~bits, bits | np.uint32(0x80000000))
    keys = np.where(bits == 0x80000000, np.uint32(0x80000000), keys)
    return np.where((bits & np.uint32(0x7FFFFFFF)) > 0x7F800000, np.uint32(0), keys)


def bits_of(keys: Any) -> Any:
    """What `ordered` was made of; of NaN's key, a NaN."""
    return np.where(keys >= 0x80000000, keys & np.uint32(0x7FFFFFFF), ~keys)
