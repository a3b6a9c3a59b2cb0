"""Experts a token and one of its slots at a time in float64."""

import numpy as np

BYTES_OTHERWISE = "the published bytes are of the experts expected to be used; inputs hold all of them"
COUNTED_OTHERWISE = "the published FLOPs are of a draw that names some experts twice"


def second(hidden: np.ndarray, w1: np.ndarray, w2: np.ndarray, weights: np.ndarray, ids: np.ndarray) -> np.ndarray:
    out = np.zeros_like(hidden)
    for token, row in enumerate(hidden):
        for weight, expert in zip(weights[token], ids[token], strict=True):
            out[token] += weight * feed_forward(row, w1[expert], w2[expert])
    return out


def feed_forward(row: np.ndarray, w1: np.ndarray, w2: np.ndarray) -> np.ndarray:
    size = w2.shape[1]
    gate, up = w1[:size] @ row, w1[size:] @ row
    inner: np.ndarray = w2 @ (gate * up / (1 + np.exp(-gate)))
    return inner
