"""The two tests of the published table, for all its rows at once: the same numbers as scipy gives row by row.

Source: `scipy.stats.ttest_ind_from_stats(equal_var=False)` and `mannwhitneyu(method="auto")` of scipy 1.17, two-sided.
scipy itself would take a call per row, since samples of different rows differ in size.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
_MOST_EXACT = 8  # scipy's `auto` takes the exact distribution where either sample has no more, and no ties


def welch_p(mean1: Floats, sd1: Floats, n1: Integers, mean2: Floats, sd2: Floats, n2: Integers) -> Floats:
    """Two-sided p of Welch's t; NaN where neither run varies and both are alike, 0 where they differ then."""
    from scipy.special import stdtr

    with np.errstate(divide="ignore", invalid="ignore"):
        part1, part2 = sd1**2 / n1, sd2**2 / n2
        freedom = (part1 + part2) ** 2 / (part1**2 / (n1 - 1) + part2**2 / (n2 - 1))
        t = (mean1 - mean2) / np.sqrt(part1 + part2)
    p: Floats = 2 * stdtr(np.where(np.isnan(freedom), 1.0, freedom), -np.abs(t))
    return p


def mann_whitney_p(values: Floats, rows: Integers, is_second: NDArray[np.bool_], n_rows: int) -> Floats:
    """Two-sided p of the Mann-Whitney U test of each row; 1 where a sample is empty.

    Args:
        values: Both samples of all rows, any order. Shape (n,).
        rows: The row of each value, from 0. Shape (n,).
        is_second: Whether it is of the second sample. Shape (n,).
        n_rows: Rows in all.
    """
    order = np.lexsort((values, rows))
    values, rows, first = values[order], rows[order], ~is_second[order]
    n1 = np.bincount(rows, first, n_rows).astype(np.int64)
    n = np.bincount(rows, minlength=n_rows)
    n2 = n - n1
    ranks, ties = _ranks(values, rows, np.cumsum(n) - n, n_rows)
    u1 = np.bincount(rows, ranks * first, n_rows) - n1 * (n1 + 1) / 2
    u = np.maximum(u1, n1 * n2 - u1)
    p = _asymptotic_p(u, n1, n2, ties)
    is_exact = (np.minimum(n1, n2) <= _MOST_EXACT) & (ties == 0) & (np.minimum(n1, n2) > 0)
    for sizes in {(min(sizes), max(sizes)) for sizes in zip(n1[is_exact].tolist(), n2[is_exact].tolist(), strict=True)}:
        mine = is_exact & (np.minimum(n1, n2) == sizes[0]) & (np.maximum(n1, n2) == sizes[1])
        p[mine] = np.minimum(2 * _tail(*sizes)[u[mine].astype(np.int64)], 1.0)
    return np.where(np.minimum(n1, n2) > 0, p, 1.0)


def _ranks(values: Floats, rows: Integers, starts: Integers, n_rows: int) -> tuple[Floats, Floats]:
    """The mean rank of each of the sorted values within its row, and the sum of t^3 - t over each row's ties."""
    begins = np.ones(len(values), bool)
    begins[1:] = (values[1:] != values[:-1]) | (rows[1:] != rows[:-1])
    firsts = np.flatnonzero(begins)
    sizes = np.diff(np.append(firsts, len(values)))
    block = np.cumsum(begins) - 1
    ranks: Floats = firsts[block] - starts[rows] + (sizes[block] + 1) / 2.0
    cubes = sizes.astype(np.float64) ** 3 - sizes
    return ranks, np.bincount(rows[firsts], cubes, n_rows).astype(np.float64)


def _asymptotic_p(u: Floats, n1: Integers, n2: Integers, ties: Floats) -> Floats:
    """By the normal distribution, with continuity and ties corrected."""
    from scipy.special import ndtr

    n = n1 + n2
    with np.errstate(divide="ignore", invalid="ignore"):
        deviation = np.sqrt(n1 * n2 / 12 * ((n + 1) - ties / (n * (n - 1))))
        z = (u - n1 * n2 / 2 - 0.5) / deviation
    p: Floats = np.clip(2 * ndtr(-z), 0.0, 1.0)
    return p


@lru_cache(maxsize=256)
def _tail(n: int, m: int) -> Floats:
    """P(U >= u) for u = 0 to n m, of samples of sizes n <= m without ties: exact counts, one division.

    Orders by their U are the coefficients of the Gaussian binomial: products of (1 - q^(m+i)) / (1 - q^i), i = 1 to n.
    """
    counts = np.zeros(n * m + 1, object)
    counts[0] = 1
    for i in range(1, n + 1):
        times = counts.copy()
        times[m + i :] -= counts[: -(m + i)] if m + i <= n * m else counts[:0]
        for lane in range(i):
            times[lane::i] = np.cumsum(times[lane::i])
        counts = times
    total = sum(counts)
    return np.array([each / total for each in np.cumsum(counts[::-1])[::-1]], dtype=np.float64)
