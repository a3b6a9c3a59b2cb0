"""Both operands scaled first in float64, then one row times one column at a time."""

from typing import Any

import numpy as np


def second(
    a: np.ndarray, b: np.ndarray, a_scales: np.ndarray, b_scales: np.ndarray, *, group_n: int, group_k: int
) -> np.ndarray:
    rows = [[value * a_scales[i, x // group_k] for x, value in enumerate(row)] for i, row in enumerate(a)]
    columns = [
        [value * b_scales[j // group_n, x // group_k] for x, value in enumerate(column)] for j, column in enumerate(b)
    ]
    return np.array([[np.dot(row, column) for column in columns] for row in map(np.array, rows)])


def eager(a: Any, b: Any, a_scales: Any, b_scales: Any, *, group_n: int, group_k: int) -> Any:
    scale_of_column = b_scales.repeat_interleave(group_n, 0)[: b.shape[0]]
    parts = [
        part_a.float() @ part_b.float().T * a_scales[:, at, None] * scale_of_column[:, at]
        for at, (part_a, part_b) in enumerate(zip(a.split(group_k, 1), b.split(group_k, 1), strict=True))
    ]
    return sum(parts[1:], start=parts[0])
