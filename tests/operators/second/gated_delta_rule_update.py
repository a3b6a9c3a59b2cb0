"""The gated delta rule in chunks of 16 tokens, a head at a time in float64: a triangular system for each chunk."""

import numpy as np

COUNTED_OTHERWISE = "the published figure leaves out the norms of q and k, a divide an element"

_CHUNK = 16


def second(
    A_log: np.ndarray, a: np.ndarray, dt_bias: np.ndarray, q: np.ndarray, k: np.ndarray, v: np.ndarray, b: np.ndarray,
    initial_state: np.ndarray, initial_state_indices: np.ndarray, *,
    softplus_beta: float, softplus_threshold: float, use_qk_l2norm: bool,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    x = softplus_beta * (a + dt_bias)
    g = -np.exp(A_log) * np.where(x > softplus_threshold, x, np.log1p(np.exp(x))) / softplus_beta
    beta = 1 / (1 + np.exp(-b))
    out, pool, group = np.zeros_like(v), initial_state.copy(), v.shape[2] // q.shape[2]
    for batch, row in enumerate(initial_state_indices):
        for head in range(v.shape[2]):
            keys, queries = (y[batch, :, head // group] for y in (k, q))
            if use_qk_l2norm:
                keys, queries = (y / np.sqrt((y * y).sum(-1, keepdims=True)) for y in (keys, queries))
            for start in range(0, v.shape[1], _CHUNK):
                part = slice(start, start + _CHUNK)
                out[batch, part, head], pool[row, head] = _chunk(
                    queries[part], keys[part], v[batch, part, head], beta[batch, part, head], g[batch, part, head],
                    pool[row, head],
                )  # fmt: skip
    return out, pool


def _chunk(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, beta: np.ndarray, g: np.ndarray, h: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Outputs of a chunk and the state after it; what its tokens change solves (1 + L) x = beta (v - exp(G) k h)."""
    G = np.cumsum(g)
    decay = np.tril(np.exp(np.minimum(G[:, None] - G[None, :], 0)))
    L = np.tril(beta[:, None] * decay * (k @ k.T), -1)
    change = np.linalg.solve(np.eye(len(g)) + L, beta[:, None] * (v - np.exp(G)[:, None] * (k @ h)))
    out = np.exp(G)[:, None] * (q @ h) + (decay * (q @ k.T)) @ change
    after = np.exp(G[-1]) * h + k.T @ (np.exp(G[-1] - G)[:, None] * change)
    return out / np.sqrt(q.shape[1]), after
