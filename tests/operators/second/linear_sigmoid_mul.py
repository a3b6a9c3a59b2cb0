"""A token and an output feature at a time in float64; the gate is rounded to bf16 as the contract has it."""

import math

import numpy as np

COUNTED_OTHERWISE = "the published count has no bias; eager runs add one"


def second(hidden_states: np.ndarray, weight: np.ndarray, bias: np.ndarray, post_mul_mat: np.ndarray) -> np.ndarray:
    out = np.empty_like(post_mul_mat)
    for token, feature in np.ndindex(*out.shape):
        gate = _bf16(float(np.dot(hidden_states[token], weight[feature]) + bias[feature]))
        out[token, feature] = post_mul_mat[token, feature] / (1 + math.exp(-gate))
    return out


def _bf16(value: float) -> float:
    """To the nearest of eight significant bits, ties to even."""
    step = 2.0 ** (math.frexp(value)[1] - 8)
    return round(value / step) * step
