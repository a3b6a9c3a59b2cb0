"""Least squares with coefficients of at least 0, by normal equations: "fast NNLS" of Bro and De Jong.

Source: R. Bro and S. De Jong, "A fast non-negativity-constrained least squares algorithm", J. Chemometrics 11 (1997).
`scipy.optimize.nnls` does the same, but to import it takes 40 MB, which a watcher beside an engine must not; a test
holds the two against each other.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_RIDGE = 1e-13  # of the trace: columns that are equal share what one would have
_TOLERANCE = 1e-10  # of a gradient, next to that of all coefficients 0


def nonnegative_least_squares(matrix: Floats, wanted: Floats) -> Floats:
    """The coefficients `x >= 0` for which `matrix @ x` is nearest to `wanted`.

    Args:
        matrix: Shape (rows, columns). Columns should be of one order of size.
        wanted: Shape (rows,).
    """
    gram, target = matrix.T @ matrix, matrix.T @ wanted
    ridge = _RIDGE * max(float(gram.trace()), np.finfo(float).tiny)
    gram[np.diag_indices_from(gram)] += ridge
    found = np.zeros(len(target))
    free = np.zeros(len(target), dtype=bool)
    least = _TOLERANCE * max(float(np.abs(target).max(initial=0.0)), np.finfo(float).tiny)
    for _ in range(3 * len(target)):
        gradient = np.where(free, -np.inf, target - gram @ found)
        best = int(gradient.argmax())
        if gradient[best] <= least:
            break
        free[best] = True
        found = _settled(gram, target, found, free)
        if not free[best]:  # rounding alone made it look worth while
            break
    return found


def _settled(gram: Floats, target: Floats, found: Floats, free: NDArray[np.bool_]) -> Floats:
    """The least squares of the free coefficients; those that would fall below 0 are bound at 0, one after the other."""
    while free.any():
        new = np.zeros(len(target))
        new[free] = np.linalg.solve(gram[np.ix_(free, free)], target[free])
        below = free & (new <= 0)
        if not below.any():
            return new
        way = min(1.0, float(np.min(found[below] / np.maximum(found[below] - new[below], np.finfo(float).tiny))))
        found = np.where(free, found + way * (new - found), 0.0)
        free &= found > _TOLERANCE * max(float(found.max()), np.finfo(float).tiny)
        found = np.where(free, found, 0.0)
    return np.zeros(len(target))
