"""The end of a product by pieces of K. N columns of the result."""

from collections.abc import Mapping
from typing import Any


def run(arrays: Mapping[str, Any], constants: Mapping[str, float], grid: tuple[int, int, int]) -> None:
    """`out[OUT0 : OUT0 + N] = sum of the rows of partials + bias`; with ADD `+=`."""
    N, splits, first = (int(constants[name]) for name in ("N", "SPLITS", "OUT0"))
    if not arrays["state"][1]:
        return
    y_N = arrays["partials"][: splits * N].reshape(splits, N).sum(0)
    if constants["HAS_BIAS"]:
        y_N = y_N + arrays["bias"][:N]
    out_N = arrays["out"][first : first + N]
    out_N[:] = out_N + y_N if constants["ADD"] else y_N
