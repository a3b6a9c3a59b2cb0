"""The expert that every row passes, added to the others. T tokens, N hidden size."""

from collections.abc import Mapping
from typing import Any

import numpy as np


def run(arrays: Mapping[str, Any], constants: Mapping[str, float], grid: tuple[int, int, int]) -> None:
    """`x += sigmoid(score) * shared_out`, row by row."""
    N, T = int(constants["N"]), int(arrays["state"][1])
    score_T = arrays["scores"][: T * int(constants["STRIDE"])].reshape(T, -1)[:, int(constants["COLUMN"])]
    gate_T1 = 1 / (1 + np.exp(np.minimum(-score_T, np.float32(80))))[:, None]
    arrays["x"].reshape(-1, N)[:T] += gate_T1 * arrays["shared_out"].reshape(-1, N)[:T]
