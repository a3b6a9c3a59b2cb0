"""The end of a product by pieces of K. N columns of the result."""

from collections.abc import Mapping
from typing import Any


def run(arrays: Mapping[str, Any], constants: Mapping[str, float], grid: tuple[int, int, int]) -> None:
    """`out[OUT0 : OUT0 + N] = sum of the rows of partial + bias`."""
    N, splits, first = (int(constants[name]) for name in ("N", "SPLITS", "OUT0"))
    if not arrays["state"][1]:
        return
    y_N = arrays["partial"][: splits * N].reshape(splits, N).sum(0)
    arrays["out"][first : first + N] = y_N + arrays["bias"][:N] if constants["HAS_BIAS"] else y_N
