"""Down-sampling: what a page shows of many numbers, so that extremes and totals stay what they were.

A series keeps the first, the last, and the smallest and largest value of each bucket; amounts keep their sum, as the
mean of a bucket times its size; distributions keep their quantiles. Numbers are rounded to what a chart can show.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

DIGITS = 4
"""Significant digits of a number in a chart: finer than a pixel."""

Values = NDArray[np.float64]
Indices = NDArray[np.int64]
Number = int | float | None

_EXTREMES = np.fmin, np.fmax  # which pass over NaN


def rounded(values: Iterable[float | None], digits: int = DIGITS) -> list[Number]:
    """Each value with so many significant digits, whole numbers as such; None where it is null or no number."""
    return [_rounded(value, digits) for value in values]


def _rounded(value: float | None, digits: int) -> Number:
    if value is None or not np.isfinite(value):
        return None
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def buckets(length: int, most: int) -> Indices:
    """Where each bucket of neighbours begins, and `length` at the end: sizes differ by one at most.

    Args:
        length: Values in order.
        most: Buckets; fewer where there are fewer values.
    """
    count = max(1, min(length, most))
    return np.arange(count + 1, dtype=np.int64) * length // count


def bucket_means(values: ArrayLike, edges: Indices) -> Values:
    """The mean of each bucket: times the bucket's size it is the sum, so totals are kept. Shape (n,) to (buckets,)."""
    sums = np.add.reduceat(np.asarray(values, dtype=np.float64), edges[:-1])
    return np.asarray(sums / np.diff(edges))


def keep_extremes(values: ArrayLike, most: int) -> Indices:
    """Which values to show of a series in order: both ends, and the smallest and largest of each bucket.

    Args:
        values: Shape (n,); NaN where there is none.
        most: So many are kept at most, from 4 on; all where there are no more.

    Returns:
        Positions in order.
    """
    numbers = np.asarray(values, dtype=np.float64)
    if len(numbers) <= most:
        return np.arange(len(numbers), dtype=np.int64)
    edges = buckets(len(numbers), (most - 2) // 2)
    lowest, highest = (_first_of_each(numbers, extreme.reduceat(numbers, edges[:-1]), edges) for extreme in _EXTREMES)
    return np.unique(np.concatenate([[0, len(numbers) - 1], lowest, highest]))


def _first_of_each(numbers: Values, wanted: Values, edges: Indices) -> Indices:
    """Where each bucket first has the value that is wanted of it; nowhere where that is NaN."""
    at = np.flatnonzero(numbers == np.repeat(wanted, np.diff(edges)))
    return at[np.unique(np.searchsorted(edges, at, side="right"), return_index=True)[1]]


def distribution(values: ArrayLike, most: int) -> tuple[Values, Values]:
    """The empirical distribution: values in order, and the share of all that are at most as large.

    Of more than `most` values, those at evenly spaced ranks, the smallest and the largest among them.
    """
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    ranks = np.unique(np.linspace(0, len(ordered) - 1, min(len(ordered), most)).round().astype(np.int64))
    return ordered[ranks], (ranks + 1) / max(1, len(ordered))


def log_counts(values: ArrayLike, most: int) -> tuple[Values, Indices]:
    """A histogram over bins that are equally wide on a logarithmic axis: their edges, and how many values each holds.

    Args:
        values: Above 0. Shape (n,), n > 0.
        most: Bins; fewer where there are fewer different values. One value alone is one bin around it.

    Returns:
        Shapes (bins + 1,) and (bins,). The counts add up to n.
    """
    numbers = np.asarray(values, dtype=np.float64)
    low, high = float(numbers.min()), float(numbers.max())
    if low == high:
        return np.array([low * 0.98, high * 1.02]), np.array([len(numbers)], dtype=np.int64)
    bins = max(1, min(most, len(np.unique(numbers)) - 1))
    edges = np.geomspace(low, high, bins + 1)
    edges[0], edges[-1] = low, high  # powers and logarithms are not exact
    return edges, np.histogram(numbers, edges)[0].astype(np.int64)
