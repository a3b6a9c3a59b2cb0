"""The state token by token, a head at a time, in float64: each token decays it and adds its own change."""

from typing import Any

import numpy as np

BYTES_OTHERWISE = "the published bytes are of the used states; the pool has more"


def second(
    k: np.ndarray, w: np.ndarray, u: np.ndarray, g: np.ndarray, initial_state: np.ndarray,
    initial_state_indices: np.ndarray, *, chunk_size: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    B, T, heads, V = u.shape
    h = np.zeros((B, -(-T // chunk_size), heads, k.shape[3], V))
    v_new, pool, group = np.zeros_like(u), initial_state.copy(), heads // k.shape[2]
    for batch, row in enumerate(initial_state_indices):
        for head in range(heads):
            state = pool[row, head]  # a view: the pool follows
            for t in range(T):
                first = t % chunk_size == 0
                if first:
                    h[batch, t // chunk_size, head] = state
                step = g[batch, t, head] - (0 if first else g[batch, t - 1, head])
                v_new[batch, t, head] = u[batch, t, head] - w[batch, t, head] @ h[batch, t // chunk_size, head]
                state *= np.exp(step)
                state += np.outer(k[batch, t, head // group], v_new[batch, t, head])
    return h, v_new, pool


def eager(k: Any, w: Any, u: Any, g: Any, initial_state: Any, initial_state_indices: Any, *, chunk_size: int) -> Any:
    k = k.repeat_interleave(u.shape[2] // k.shape[2], 2)
    state, found = initial_state[initial_state_indices.long()], []
    for k_C, w_C, u_C, g_C in zip(*(x.split(chunk_size, 1) for x in (k, w, u, g)), strict=True):
        change = u_C.float() - (w_C.transpose(1, 2).float() @ state.bfloat16().float()).transpose(1, 2)
        last = g_C[:, -1:]
        kept = (change * (last - g_C).exp()[..., None]).bfloat16().float()
        found.append((state.bfloat16(), change.bfloat16()))
        added = k_C.float().permute(0, 2, 3, 1) @ kept.transpose(1, 2)
        state = state * last[:, 0, :, None, None].exp() + added
    return found, state
