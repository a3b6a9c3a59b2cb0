"""Decode attention a key at a time, found through the block table, with a running maximum, in float64."""

import numpy as np

COUNTED_OTHERWISE = "the published formula counts the products and the keys' places, no scale and no softmax"


def second(
    query: np.ndarray, k_cache: np.ndarray, v_cache: np.ndarray, block_tables: np.ndarray, seq_lens: np.ndarray
) -> np.ndarray:
    out = np.zeros_like(query)
    B, Hq, d = query.shape
    _, Hk, _, size, run = k_cache.shape
    shared = np.arange(Hq) // (Hq // Hk)
    column = np.arange(d)
    for s in range(B):
        most, weights, values = np.full(Hq, -np.inf), np.zeros(Hq), np.zeros((Hq, d))
        for j in range(seq_lens[s]):
            block, at = block_tables[s, j // size], j % size
            k = k_cache[block][:, column // run, at, column % run][shared]
            score = (query[s] * k).sum(-1) / np.sqrt(d)
            new = np.maximum(most, score)
            shrink, weight = np.exp(most - new), np.exp(score - new)
            values = values * shrink[:, None] + weight[:, None] * v_cache[block, :, :, at][shared]
            weights, most = weights * shrink + weight, new
        if seq_lens[s]:
            out[s] = values / weights[:, None]
    return out
