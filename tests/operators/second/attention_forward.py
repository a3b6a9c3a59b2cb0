"""Attention a key at a time, all queries of its sequence at once, with a running maximum, in float64."""

import numpy as np

COUNTED_OTHERWISE = "the published formula counts the two products alone, no scale and no softmax"


def second(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, cu_seqlens_q: np.ndarray, cu_seqlens_k: np.ndarray
) -> np.ndarray:
    out = np.zeros_like(q)
    for s in range(len(cu_seqlens_q) - 1):
        rows = slice(cu_seqlens_q[s], cu_seqlens_q[s + 1])
        most, weights, values = np.full(q[rows].shape[:2], -np.inf), np.zeros(q[rows].shape[:2]), np.zeros_like(q[rows])
        for j in range(cu_seqlens_k[s], cu_seqlens_k[s + 1]):
            score = np.einsum("thd,hd->th", q[rows], k[j]) / np.sqrt(q.shape[2])
            new = np.maximum(most, score)
            shrink, weight = np.exp(most - new), np.exp(score - new)
            values = values * shrink[..., None] + weight[..., None] * v[j]
            weights, most = weights * shrink + weight, new
        out[rows] = values / weights[..., None]
    return out
