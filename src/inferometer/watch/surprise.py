"""How unusual a step's time is: the part of normal steps that took at least as much longer than expected.

Up to where steps were seen, it is counted; above, the tail goes on as a generalised Pareto distribution whose shape is
fixed to a heavy one, so that a time that was never seen is unusual, and no more so than the others allow.

A part `p` becomes evidence against "nothing has changed" by a calibrator whose mean is 1 where `p` is uniform, such as
`k p^(k - 1)` with k between 0 and 1 (V. Vovk and R. Wang, Ann. Statist. 49, 2021). The smaller k is, the more unusual
must steps be to count, and the more they count. Which k fits isn't known before, so each of `SIZES` has a sum of its
own. Mixing them within each step instead, by the integral over k, tells less of a shift within the spread of normal
steps: half as much where that is 0.8 standard deviations.

Steps resemble their neighbours, so evidence counts less than one step's: its logarithm times (1 - r) / (1 + r), as if
there were only so many independent steps, where r is the correlation of neighbouring factors: neighbours that resemble
each other below what is unusual don't matter. The weight is less where the product of factors over a block of normal
steps is more than 1 in the mean, for blocks of several lengths.

Much longer steps are judged apart: `log_strong_evidence` asks, with the integral over k, whether a step is longer by
more than `STRONG`.
"""

import math

import numpy as np

from inferometer.watch.expected import Floats

SHAPE = 0.5
"""Of the tail: its mean is finite, its variance isn't. Times of steps have lighter tails, so this claims too little."""

_BAND = (0.01, 0.99)  # of normal steps: 98 % lie between
_TAIL = 0.1  # the part of normal steps that the tail is fitted to
_FEWEST = 8  # steps in it
_LEAST_EXCESS = 0.01  # mean excess in the tail, as a part of the step's time
_LEAST_WEIGHT = 0.1
SIZES = (0.2, 0.4)
"""Values of k: a step counts for a slowdown where fewer than 13 %, or 22 %, of normal steps are as long."""

STRONG = 1.25
"""Steps that take more than so many times the expected time are much longer."""

_BLOCKS = (4, 16, 64)  # steps of a block
_FEWEST_BLOCKS = 4
_LESS = 0.9  # the next weight to try


class Surprise:
    """Of steps that are longer than expected by a logarithm of a ratio, next to those of normal steps.

    Args:
        normal: The logarithms of time over expected time of normal steps, in order of time. Shape (steps,); at least
            one.
        allowed: What `log_evidence` allows a step to be longer by, as a logarithm.

    Attributes:
        band: Between these two lie 98 % of them.
        weights: What the evidence of each of `SIZES` counts, above 0, at most 1.
        strong_weight: What that of much longer steps counts.
    """

    def __init__(self, normal: Floats, allowed: float = 0.0) -> None:
        ordered = np.sort(normal)
        tail = max(_FEWEST, int(_TAIL * len(ordered)))
        self._ordered, self._allowed = ordered, allowed
        self._begin = float(ordered[max(0, len(ordered) - tail - 1)])
        self._above = min(tail, len(ordered)) / (len(ordered) + 1)
        self._scale = max(float(np.mean(ordered[-tail:] - self._begin)), _LEAST_EXCESS) * (1 - SHAPE)
        logarithms = np.log(self._parts(normal - allowed))
        self.weights = tuple(_weight(math.log(size) + (size - 1) * logarithms) for size in SIZES)
        self.strong_weight = _weight(_log_evidence_of(self._parts(normal - _LOG_STRONG)))
        low, high = np.quantile(ordered, _BAND)
        self.band = float(low), float(high)

    def part(self, log_ratio: float) -> float:
        """The part of normal steps that are at least this much longer, above 0, at most 1."""
        if log_ratio <= self._ordered[-1]:
            at_least = len(self._ordered) - int(np.searchsorted(self._ordered, log_ratio, side="left"))
            return (at_least + 1) / (len(self._ordered) + 1)
        beyond = (log_ratio - self._begin) / self._scale
        tail = self._above * (1 + SHAPE * beyond) ** (-1 / SHAPE)
        return float(min(tail, 1 / (len(self._ordered) + 1)))

    def log_evidence(self, log_ratio: float) -> tuple[float, ...]:
        """Logarithms of the factors by which a step makes "it is slower" more likely than "nothing has changed".

        One of each of `SIZES`.
        """
        logarithm = math.log(self.part(log_ratio - self._allowed))
        return tuple(
            weight * (math.log(size) + (size - 1) * logarithm) for weight, size in zip(self.weights, SIZES, strict=True)
        )

    def log_evidence_of_slow(self, log_ratio: float, *, is_far: bool) -> float:
        """The same of a step among slow ones, of all k together.

        `is_far`: they are much longer, where it doesn't matter how alike normal neighbours are.
        """
        weight = 1.0 if is_far else min(self.weights)
        return weight * math.log(evidence_of(self.part(log_ratio - self._allowed)))

    def log_strong_evidence(self, log_ratio: float) -> float:
        """The same of "it is slower by more than `STRONG`", or than what is allowed where that is more."""
        return self.strong_weight * math.log(evidence_of(self.part(log_ratio - max(_LOG_STRONG, self._allowed))))

    def _parts(self, log_ratios: Floats) -> Floats:
        """Of many that are no longer than the longest normal one. Shape (steps,)."""
        at_least = len(self._ordered) - np.searchsorted(self._ordered, log_ratios, side="left")
        return (at_least + 1) / (len(self._ordered) + 1)


_LOG_STRONG = math.log(STRONG)


def evidence_of(part: float) -> float:
    """The calibrator: 1/2 where `part` is 1, without limit as it nears 0, 1 in the mean where it is uniform.

    `part`: above 0, at most 1.
    """
    if part > 0.999:
        return 0.5
    logarithm = math.log(part)
    return (1 - part + part * logarithm) / (part * logarithm * logarithm)


def _log_evidence_of(parts: Floats) -> Floats:
    """Of many, of which most are alike. Shape (steps,)."""
    values, at = np.unique(parts, return_inverse=True)
    return np.array([math.log(evidence_of(part)) for part in values.tolist()])[at]


def _weight(factors: Floats) -> float:
    """The largest weight at which neighbours count once, and blocks of normal steps are no evidence in the mean."""
    weight = _independence(factors)
    for length in _BLOCKS:
        blocks = factors[: len(factors) // length * length].reshape(-1, length).sum(axis=1)
        while len(blocks) >= _FEWEST_BLOCKS and weight > _LEAST_WEIGHT and np.exp(weight * blocks).mean() > 1:
            weight *= _LESS
    return max(weight, _LEAST_WEIGHT)


def _independence(factors: Floats) -> float:
    """(1 - r) / (1 + r), where r is the correlation of neighbours; 1 where there is none."""
    if np.ptp(factors[:-1]) == 0 or np.ptp(factors[1:]) == 0:
        return 1.0
    r = float(np.corrcoef(factors[:-1], factors[1:])[0, 1])
    return max(_LEAST_WEIGHT, (1 - r) / (1 + r)) if r > 0 else 1.0
