"""Outputs a token and a head at a time in float64: a loop over the tokens that it sees in its chunk."""

from typing import Any

import numpy as np


def second(q: np.ndarray, k: np.ndarray, v: np.ndarray, h: np.ndarray, g: np.ndarray, *, chunk_size: int) -> np.ndarray:
    out, group = np.zeros_like(v), v.shape[2] // q.shape[2]
    for batch, t, head in np.ndindex(*v.shape[:3]):
        query, now = q[batch, t, head // group], g[batch, t, head]
        out[batch, t, head] = np.exp(now) * (query @ h[batch, t // chunk_size, head])
        for j in range(t - t % chunk_size, t + 1):
            seen = np.exp(now - g[batch, j, head]) * (query @ k[batch, j, head // group])
            out[batch, t, head] += seen * v[batch, j, head]
    return out / np.sqrt(q.shape[3])


def eager(q: Any, k: Any, v: Any, h: Any, g: Any, *, chunk_size: int) -> Any:
    from torch.nn.functional import pad

    T, heads = v.shape[1:3]
    more = -T % chunk_size
    q, k, v, g = (
        pad(x.repeat_interleave(heads // x.shape[2], 2), (0, 0, 0, 0, 0, more))
        .unflatten(1, (-1, chunk_size))
        .transpose(2, 3)
        .float()
        for x in (q, k, v, g[..., None])
    )
    mixed = ((q @ k.mT) * (g - g.mT).clamp(max=0).exp()).tril().bfloat16().float() @ v
    found = (g.exp() * (q @ h.float()) + mixed) * q.shape[-1] ** -0.5
    return found.transpose(2, 3).flatten(1, 2)[:, :T].bfloat16()
