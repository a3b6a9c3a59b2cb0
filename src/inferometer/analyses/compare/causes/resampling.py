"""How sure a ratio of medians is: a bootstrap of both runs, the same draws for the same input."""

import numpy as np
from numpy.typing import NDArray

from inferometer.analyses.comparison_limits import ALPHA, RESAMPLES, SEED

Values = NDArray[np.float64]


def median_ratio_interval(base: Values, candidate: Values) -> tuple[float, float] | None:
    """Interval of the median of `candidate` over that of `base`; None where a run has one value or a base median is 0.

    Args:
        base: Values of the one run, any order. Shape (n,).
        candidate: Values of the other. Shape (m,).
    """
    if min(len(base), len(candidate)) < 2:
        return None
    draw = np.random.default_rng(SEED)
    before, after = (_medians(values, draw) for values in (base, candidate))
    if np.any(before <= 0):
        return None
    low, high = np.quantile(after / before, [ALPHA / 2, 1 - ALPHA / 2])
    return float(low), float(high)


def _medians(values: Values, draw: np.random.Generator) -> Values:
    """Medians of resampled values, shape (RESAMPLES,)."""
    n = len(values)
    if n <= RESAMPLES:
        return np.asarray(np.median(values[draw.integers(0, n, (RESAMPLES, n))], axis=1))
    middle = draw.beta((n + 1) / 2, (n + 1) / 2, RESAMPLES)  # where the median of n draws falls among sorted values
    return np.asarray(np.sort(values)[(middle * n).astype(np.int64)])
