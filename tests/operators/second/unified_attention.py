"""Attention a query and a head at a time in float64, through the block table."""

import numpy as np

BYTES_OTHERWISE = "the published bytes are of the used rows of the cache; the pool has some to spare"
COUNTED_OTHERWISE = "the published formula halves the products exactly, as no eager run does"


def second(
    q: np.ndarray, k_cache: np.ndarray, v_cache: np.ndarray, cu_seqlens_q: np.ndarray, seqused_k: np.ndarray,
    block_table: np.ndarray,
) -> np.ndarray:  # fmt: skip
    out = np.zeros_like(q)
    size, group = k_cache.shape[1], q.shape[1] // k_cache.shape[2]
    for s, keys in enumerate(seqused_k):
        first, last = cu_seqlens_q[s], cu_seqlens_q[s + 1]
        for row in range(first, last):
            visible = keys - (last - 1 - row)
            places = [(block_table[s, j // size], j % size) for j in range(visible)]
            for head in range(q.shape[1]):
                k = np.array([k_cache[block, at, head // group] for block, at in places])
                v = np.array([v_cache[block, at, head // group] for block, at in places])
                score = k @ q[row, head] / np.sqrt(q.shape[2])
                weight = np.exp(score - score.max())
                out[row, head] = weight @ v / weight.sum()
    return out
