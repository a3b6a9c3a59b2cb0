"""How sure an A/B of few repetitions is: paired t over repetitions, and which of many differences to believe.

Repetition i of the one arm and repetition i of the other ran right after each other (A B, B A, …), so what drifts
slower than that is in both, and their logarithms are subtracted. The t-interval has n - 1 degrees of freedom.

Not a bootstrap: percentiles of 5 resampled values hold a true ratio in 84 % of cases, of 10 in 90 %, where 95 % are
claimed (`test_statistics.py` measures it). Not a trimmed mean either: with 5 to 10 pairs its test finds
differences between two equal arms in 5 to 10 % of comparisons of 40 paths, where 5 % are allowed. The t-test finds
them in at most 5 %, fewer where few calls take very long: these make it careful, and small differences unclear.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Verdict = Literal["faster", "slower", "same", "unclear", "too few", "carried over"]

LEVEL = 0.05
"""Share of chance among all differences that are called one, at most; intervals hold with one less this."""

SAME = 0.02
"""Arms are the same where the interval of their ratio reaches no further from 1: less is rarely worth a change."""

LEAST = 3
"""Repetitions; of two, a t-interval at 95 % is 9 deviations wide on each side."""

_EQUAL = 1e-12  # logarithms of equal times differ by rounding


def mean_and_error(values: Floats) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Mean, its standard error, and number of values of each row, without those that are NaN.

    The mean of none is NaN, as is the error of fewer than two. Shape of `values` (rows, n).
    """
    there = ~np.isnan(values)
    count = there.sum(axis=1)
    known = np.where(there, values, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = known.sum(axis=1) / count
        off = np.where(there, values - mean[:, None], 0.0)
        error = np.sqrt((off**2).sum(axis=1) / (count - 1) / count)
    return mean, np.where(count > 1, error, np.nan), count


def t_interval(values: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean of each row, and the ends of its t-interval: NaN of fewer than `LEAST` values. Shape (rows, n)."""
    from scipy.special import stdtrit

    mean, error, count = mean_and_error(values)
    width = error * stdtrit(np.maximum(count - 1, 1).astype(np.float64), 1 - LEVEL / 2)
    width = np.where(count >= LEAST, width, np.nan)
    return mean, mean - width, mean + width


def t_test(values: Floats) -> Floats:
    """Two-sided p of each row's mean being 0; NaN of fewer than `LEAST` values. Shape (rows, n).

    Values that are all equal to each other are 0 with p = 1, or aren't with p = 0.
    """
    from scipy.special import stdtr

    mean, error, count = mean_and_error(values)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.abs(mean) / error
    scale = np.maximum(np.abs(values).max(axis=1, initial=0.0, where=~np.isnan(values)), 1.0)
    t = np.where(np.abs(mean) <= _EQUAL * scale, 0.0, t)
    p: Floats = 2 * stdtr(np.maximum(count - 1, 1).astype(np.float64), -t)
    return np.where(count >= LEAST, p, np.nan)


def log_ratios(base: NDArray[np.int64], candidate: NDArray[np.int64]) -> Floats:
    """Logarithm of candidate over base, pair by pair; NaN where one of them isn't above 0."""
    both = (base > 0) & (candidate > 0)
    return np.log(np.where(both, candidate, np.nan)) - np.log(np.where(both, base, np.nan))


def discoveries(p: Floats, *, level: float = LEVEL) -> NDArray[np.bool_]:
    """Which of many p-values to believe, so that of these at most `level` are chance; NaN was not tested.

    Source: Benjamini, Hochberg (1995), JRSS B 57, 289-300. It holds for paths, too, whose times are parts of each
    other: the more one is off by chance, the more are those around it.
    """
    tested = np.sort(p[~np.isnan(p)])
    passing = tested[tested <= level * np.arange(1, len(tested) + 1) / max(len(tested), 1)]
    return np.asarray(p <= passing[-1]) if len(passing) else np.zeros(len(p), bool)


def judge(
    ratio: float,
    interval: tuple[float, float] | None,
    *,
    pairs: int,
    is_discovery: bool,
    is_same_code: bool = False,
    is_refuted: bool = False,
    is_possible: bool = False,
) -> Verdict:
    """What a path's ratio of candidate over base comes to; `interval` is None of a single pair.

    Where both arms run the same code, a difference is what others leave behind, whichever its sign. So is one that
    isn't between the kernels in the same surroundings (`is_refuted`), unless these are too uncertain to tell
    (`is_possible`).
    """
    if pairs < LEAST or interval is None:
        return "too few"
    if is_discovery and (is_same_code or (is_refuted and not is_possible)):
        return "carried over"
    if is_discovery and not is_refuted:
        return "slower" if ratio > 1 else "faster"
    return "same" if interval[0] >= 1 - SAME and interval[1] <= 1 + SAME else "unclear"
