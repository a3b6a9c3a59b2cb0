"""Which changes of time between two runs are real: of single shapes, of operators, and of a candidate as a whole.

A change is ln(time in the candidate's run / time in the base's run): above 0 is slower. Medians of one kernel differ
between two runs by more than the intervals of either say, so the spread between runs is estimated from all shapes:

- of shapes about their operator, and of operators about the whole, each a Student t distribution whose scale and
  tails are the most likely ones (`fit_spread`). Next to the shapes at hand stand `PRIOR` synthetic ones that spread as
  `USUAL`, which decide where there are few. Neither scale goes beyond `MOST`, or 1.5 times the spread of the base,
  whose kernel is the same in both runs: what spreads further is change, not noise.
- Each level (shapes, operators, candidates) has its part of `ALPHA`; within it the false discovery rate is held at that
  by the rule of Benjamini and Hochberg (1995), for slower and for faster apart.
- Slower is what is significant so, and whose estimate is beyond the smallest effect. Same is what has its 95 % interval
  within the smallest effect. The rest is unclear.

Leaves out which times to compare (`pairs.py`). What this finds on simulated runs: `benchmarks/leaderboard_check.py`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from inferometer.bench.results import Verdict

SMALLEST = 0.03
"""The smallest effect that counts, as a share of the time, where none is named."""

ALPHA = 0.05
"""Share of false alarms: of runs where nothing changed, and among the changes that are reported."""

USUAL = 0.01 * math.sqrt(2)
"""Spread of a shape's change where nothing changed: medians of a run are off by 1 %, and there are two runs."""

MOST = 0.02
LEAVE = 8
PRIOR, PRIOR_OPERATORS = 10, 5
_USUAL_WITHIN, _USUAL_OPERATORS = USUAL * math.sqrt(0.75), USUAL / 2  # about the operator, and of the operator
_BASE_FACTOR = 1.5
_SCALES = np.geomspace(0.0002, 0.25, 60)
_TAILS = (2.5, 3.0, 4.0, 6.0, 10.0, 30.0)  # degrees of freedom
_PARTS = (1, 2, 2)  # of `ALPHA`: shapes, whose tails are known least, have the smallest
_ROUNDS = 12

Values = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Spread:
    """Between runs, where nothing changed: a Student t distribution for each operator, estimated from all others."""

    scale: Values
    df: Values


@dataclass(frozen=True)
class Estimates:
    """Changes of one level, each with its standard error, the degrees of freedom of that, and its verdict."""

    change: Values
    error: Values
    df: Values
    verdicts: tuple[Verdict, ...] = ()

    def interval(self) -> tuple[Values, Values]:
        """95 % intervals: ends below and above."""
        half = _quantiles(0.975, self.df) * self.error
        return self.change - half, self.change + half


@dataclass(frozen=True)
class Judged:
    """All levels. `spread`: of shapes about their operator."""

    shapes: Estimates
    operators: Estimates
    candidates: Estimates
    spread: Spread


def judge_changes(
    change: Values,
    error: Values,
    operator: Indices,
    candidate: Indices,
    *,
    smallest: float = SMALLEST,
    base_spread: float | None = None,
) -> Judged:
    """All levels, of at least one shape.

    Args:
        change: Of each shape, shape (n,).
        error: Its standard error as the runs' own intervals have it, shape (n,).
        operator: Which operator of which candidate: 0 and up, none left out. Shape (n,).
        candidate: Of each operator, likewise: shape (operators,).
        smallest: The smallest effect that counts.
        base_spread: How far the base's changes spread beyond what its intervals say; None: there is no base.
    """
    most = max(MOST, _BASE_FACTOR * (base_spread or 0.0))
    every = np.arange(len(candidate))
    spread = fit_spread(_about_groups(change, operator), error, operator, most=most)
    own = _centers(change, np.hypot(error, spread.scale[operator]), spread.df[operator], operator)
    about = own.change - _medians(own.change, candidate)[candidate]
    between = fit_spread(about, own.error, every, most=most, prior=PRIOR_OPERATORS, usual=_USUAL_OPERATORS)
    df = np.minimum(spread.df, between.df)
    errors = np.sqrt(error**2 + (spread.scale**2 + between.scale**2)[operator])
    shapes = Estimates(change, errors, df[operator])
    operators = Estimates(own.change, np.hypot(own.error, between.scale), between.df)
    candidates = _centers(own.change, operators.error, between.df, candidate)
    levels = (shapes, operators, candidates)
    parts = zip(levels, _alphas([len(level.change) for level in levels]), strict=True)
    judged = [replace(level, verdicts=_verdicts(level, alpha, smallest)) for level, alpha in parts]
    return Judged(judged[0], judged[1], judged[2], spread)


def _alphas(counts: Sequence[int]) -> list[float]:
    """Each level's part of `ALPHA`, by `_PARTS`; levels of as many members are one, and count as the last of them."""
    parts = dict(zip(counts, _PARTS, strict=True))
    return [ALPHA * parts[count] / sum(parts.values()) for count in counts]


def fit_spread(
    off: Values, error: Values, group: Indices, *, most: float = MOST, prior: int = PRIOR, usual: float = _USUAL_WITHIN
) -> Spread:
    """The most likely scale and tails of what is off by more than its own error, with `prior` values of a usual spread.

    Where there are `LEAVE` groups, each has those estimated from all others, so that what changed doesn't hide itself.
    A scale above `most` is taken as that.
    """
    size, known = int(group.max()) + 1, usual * _normal_quantiles(prior)
    own = np.stack([_by_group(_log_likelihoods(off, error, df), group, size) for df in _TAILS])  # tails, scales, groups
    every = own.sum(-1) + np.stack([_log_likelihoods(known, np.zeros(prior), df).sum(1) for df in _TAILS])
    likely = every[..., None] - (own if size >= LEAVE else 0.0)
    best = np.broadcast_to(likely, own.shape).reshape(-1, size).argmax(0)
    tail, place = np.unravel_index(best, own.shape[:2])
    return Spread(np.minimum(_SCALES[place], most), np.asarray(_TAILS)[tail])


def _log_likelihoods(off: Values, error: Values, df: float) -> Values:
    """Of each value under each scale: shape (scales, n)."""
    constant = math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - math.log(df * math.pi) / 2
    scales = np.sqrt(error[None, :] ** 2 + _SCALES[:, None] ** 2)
    found: Values = constant - np.log(scales) - (df + 1) / 2 * np.log1p((off / scales) ** 2 / df)
    return found


def _by_group(values: Values, group: Indices, size: int) -> Values:
    """Sums of the last dimension's values by group."""
    return np.stack([np.bincount(group, row, size) for row in values])


def _about_groups(change: Values, group: Indices) -> Values:
    """From the group's median, made larger as a median of few lies too near them; groups of two from all's."""
    counts = np.bincount(group)
    few = counts[group] <= 2
    about = (change - _medians(change, group)[group]) * np.sqrt(counts / np.maximum(counts - 1, 1))[group]
    return np.where(few, change - np.median(change), about)


def _medians(values: Values, group: Indices) -> Values:
    return np.array([np.median(values[group == each]) for each in range(int(group.max()) + 1)])


def _centers(change: Values, error: Values, df: Values, group: Indices) -> Estimates:
    """The most likely center of each group's t distribution, from its median on: what lies far off weighs little."""
    size = int(group.max()) + 1
    center = _medians(change, group)
    for _ in range(_ROUNDS):
        weight = (df + 1) / (df + ((change - center[group]) / error) ** 2) / error**2
        center = np.bincount(group, weight * change, size) / np.bincount(group, weight, size)
    information = np.bincount(group, (df + 1) / (df + 3) / error**2, size)
    return Estimates(center, 1 / np.sqrt(information), np.bincount(group, df, size) / np.bincount(group))


def _verdicts(found: Estimates, alpha: float, smallest: float) -> tuple[Verdict, ...]:
    limit = math.log1p(smallest)
    low, high = found.interval()
    above, below = (_tail(sign * found.change / found.error, found.df) for sign in (1, -1))
    slower = (found.change > limit) & (above <= discovery_threshold(above, alpha))
    faster = (found.change < -limit) & (below <= discovery_threshold(below, alpha))
    same = (low >= -limit) & (high <= limit)
    return tuple(map(_verdict, slower, faster, same))


def _verdict(slower: bool, faster: bool, same: bool) -> Verdict:
    return "slower" if slower else "faster" if faster else "same" if same else "unclear"


def discovery_threshold(p: Values, alpha: float) -> float:
    """The greatest p that is a discovery at this false discovery rate; below 0 where none is."""
    ordered = np.sort(p)
    passed = np.flatnonzero(ordered <= alpha * np.arange(1, len(p) + 1) / len(p))
    return float(ordered[passed[-1]]) if len(passed) else -1.0


def _tail(z: Values, df: Values) -> Values:
    from scipy.special import stdtr

    found: Values = stdtr(df, -z)
    return found


def _quantiles(share: float, df: Values) -> Values:
    from scipy.special import stdtrit

    found: Values = stdtrit(df, share)
    return found


@cache
def _normal_quantiles(count: int) -> Values:
    from scipy.special import ndtri

    found: Values = ndtri((np.arange(count) + 0.5) / count)
    return found


def error_of(low: float | Sequence[float] | Values, high: float | Sequence[float] | Values) -> Values:
    """Standard error of a logarithm whose 95 % interval ends at the logarithms of these."""
    found: Values = (np.log(np.asarray(high, float)) - np.log(np.asarray(low, float))) / (2 * 1.96)
    return found
