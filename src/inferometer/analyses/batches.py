"""Long columns batch by batch, where each batch's outcome is small or a part of the whole's."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

AT_ONCE = 2**17
"""Rows, few enough that what is made of them stays in the processor's memory, and is used again for the next."""


def batches(rows: int) -> list[slice]:
    """The batches of so many rows, in order."""
    return [slice(start, min(rows, start + AT_ONCE)) for start in range(0, rows, AT_ONCE)]


def whole_groups(number: NDArray[np.integer[Any]]) -> Iterator[slice]:
    """Batches or somewhat more, in order: rows of one number are in one. Numbers stand in order. Shape (rows,)."""
    start = 0
    while start < len(number):
        last = number[min(start + AT_ONCE, len(number)) - 1]
        end = int(np.searchsorted(number, last, side="right"))
        yield slice(start, end)
        start = end


def first_rows(number: NDArray[np.integer[Any]]) -> NDArray[np.intp]:
    """Where each stretch of one number begins. Shape (rows,)."""
    return np.flatnonzero(np.concatenate(([len(number) > 0], number[1:] != number[:-1])))
