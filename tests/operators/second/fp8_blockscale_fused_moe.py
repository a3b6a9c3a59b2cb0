"""Experts in fp8 per token and one of its slots at a time in float64, scales spread over their tiles by index."""

import numpy as np
from tests.operators.second.fused_moe import feed_forward

BYTES_OTHERWISE = "the published bytes are of the experts expected to be used; inputs hold all of them"
COUNTED_OTHERWISE = "the published formula scales the weights of the experts expected to be used; an eager run, of all"


def second(
    hidden: np.ndarray, w1: np.ndarray, w2: np.ndarray, weights: np.ndarray, ids: np.ndarray,
    a_scale: np.ndarray, fc1_scale: np.ndarray, fc2_scale: np.ndarray,
) -> np.ndarray:  # fmt: skip
    out = np.zeros_like(hidden)
    for token, row in enumerate(hidden):
        scaled = row * [a_scale[token, column * a_scale.shape[1] // len(row)] for column in range(len(row))]
        for weight, expert in zip(weights[token], ids[token], strict=True):
            gate_up, down = spread(fc1_scale[expert], w1[expert]), spread(fc2_scale[expert], w2[expert])
            out[token] += weight * feed_forward(scaled, w1[expert] * gate_up, w2[expert] * down)
    return out


def spread(tiles: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    rows, columns = (np.arange(size) * tiles.shape[side] // size for side, size in enumerate(matrix.shape))
    return tiles[rows][:, columns]
