"""How sure a difference is: intervals and p-values of samples, and how many of many differences are to be believed."""

from collections.abc import Sequence
from math import erfc, sqrt

import numpy as np

from inferometer.analyses.compare.sampling_units import Values
from inferometer.analyses.comparison_limits import ALPHA

_TAILS = (100 * ALPHA / 2, 100 * (1 - ALPHA / 2))
_SAME_LOG = 1e-12  # logarithms of equal times differ by rounding
_PAIR = 2


def interval(samples: Values) -> tuple[float, float]:
    """What holds 95 of 100 samples."""
    low, high = np.percentile(samples, _TAILS)
    return float(low), float(high)


def p_of_difference(delta: float, deviation: float) -> float:
    """The p-value of no difference, where samples of it deviate like this around it."""
    if not deviation:
        return 0.0 if delta else 1.0
    return erfc(abs(delta) / deviation / sqrt(2))


def p_of_calls(before: Values, after: Values) -> float:
    """The p-value of no difference between the times of a call, by their logarithms in each unit.

    Logarithms, since a few long units must hide nothing. In pairs of units where both runs have as many (see
    `Units.resample`), else Welch's test.
    """
    from scipy.special import stdtr

    if len(before) == len(after):
        differences = (after - before)[np.isfinite(after - before)]
        n, error, df = len(differences), _error(differences), len(differences) - 1.0
        delta = float(differences.mean()) if n else 0.0
    else:
        before, after = before[np.isfinite(before)], after[np.isfinite(after)]
        n = min(len(before), len(after))
        errors = _error(before), _error(after)
        error, delta = float(np.hypot(*errors)), float(after.mean() - before.mean()) if n else 0.0
        parts = sum(e**4 / max(len(side) - 1, 1) for e, side in zip(errors, (before, after), strict=True))
        df = error**4 / parts if parts else 1.0
    if n < _PAIR:
        return 1.0
    if error < _SAME_LOG:
        return 0.0 if abs(delta) > _SAME_LOG else 1.0
    return float(2 * stdtr(df, -abs(delta) / error))


def largest_discovery(values: Sequence[float]) -> float:
    """The largest p-value that Benjamini and Hochberg's procedure lets pass."""
    ordered = np.sort(np.array(values))
    passing = ordered[ordered <= ALPHA * np.arange(1, len(ordered) + 1) / max(len(ordered), 1)]
    return float(passing[-1]) if len(passing) else -1.0


def _error(values: Values) -> float:
    """Standard error of the mean."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0
