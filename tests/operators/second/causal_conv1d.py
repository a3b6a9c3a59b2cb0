"""Each channel by numpy's convolution in float64."""

import numpy as np

COUNTED_OTHERWISE = "the published figure leaves out the bias"


def second(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray, initial_state: np.ndarray, *, activation: str | None
) -> np.ndarray:
    padded = np.concatenate([initial_state[0], x], axis=1)
    summed = np.stack([np.convolve(row, taps[::-1], "valid") for row, taps in zip(padded, weight, strict=True)])
    summed = summed + bias[:, None]
    return summed if activation is None else summed / (1 + np.exp(-summed))
