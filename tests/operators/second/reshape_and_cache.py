"""Tokens to their slots one at a time."""

from typing import Any

import numpy as np


def second(
    key: np.ndarray, value: np.ndarray, key_cache: np.ndarray, value_cache: np.ndarray, slot_mapping: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    key_out, value_out = key_cache.copy(), value_cache.copy()
    size = key_cache.shape[1]
    for token, slot in enumerate(slot_mapping):
        if slot >= 0:
            key_out[slot // size, slot % size] = key[token]
            value_out[slot // size, slot % size] = value[token]
    return key_out, value_out


def eager(key: Any, value: Any, key_cache: Any, value_cache: Any, slot_mapping: Any) -> Any:
    new = slot_mapping >= 0
    rows, size = slot_mapping[new], key_cache.shape[1]
    at = (rows // size, rows % size)
    return key_cache.index_put(at, key[new]), value_cache.index_put(at, value[new])
