"""A soft cap: numbers are squeezed between -SOFTCAP and SOFTCAP by a tanh."""

from collections.abc import Mapping
from typing import Any

import numpy as np


def run(arrays: Mapping[str, Any], constants: Mapping[str, float], grid: tuple[int, int, int]) -> None:
    """`x = SOFTCAP * tanh(x / SOFTCAP)`, its first N numbers."""
    if arrays["state"][1]:
        N = int(constants["N"])
        arrays["x"][:N] = capped(arrays["x"][:N], constants["SOFTCAP"])


def capped(x: Any, softcap: float) -> Any:
    """Like `x`; a cap of 0 is none."""
    return np.float32(softcap) * np.tanh(x / np.float32(softcap)) if softcap else x
