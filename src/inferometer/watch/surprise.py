"""How unusual a step's time is: the part of normal steps that took at least as much longer than expected.

Up to where steps were seen, it is counted; above, the tail goes on as a generalised Pareto distribution whose shape is
fixed to a heavy one, so that a time that was never seen is unusual, and no more so than the others allow.

A part `p` becomes evidence against "nothing has changed" by a calibrator whose mean is 1 where `p` is uniform: the
integral of `k p^(k - 1)` over k from 0 to 1 (V. Vovk and R. Wang, Ann. Statist. 49, 2021). Steps resemble their
neighbours, so evidence counts less than one step's: its logarithm times (1 - r) / (1 + r), where r is the correlation
of neighbours, as if there were only so many independent steps.

Much longer steps are judged apart: `log_strong_evidence` asks whether a step is longer by more than `STRONG`.
Neighbours that resemble each other in small things need not do so there, so r is that of these factors, and the weight
is less where the product of factors over a block of normal steps is more than 1 in the mean, for blocks of several
lengths.
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

    Attributes:
        band: Between these two lie 98 % of them.
    """

    def __init__(self, normal: Floats) -> None:
        ordered = np.sort(normal)
        tail = max(_FEWEST, int(_TAIL * len(ordered)))
        self._ordered = ordered
        self._begin = float(ordered[max(0, len(ordered) - tail - 1)])
        self._above = min(tail, len(ordered)) / (len(ordered) + 1)
        self._scale = max(float(np.mean(ordered[-tail:] - self._begin)), _LEAST_EXCESS) * (1 - SHAPE)
        self.weight = _independence(normal)
        self.strong_weight = self._strong_independence(normal)
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

    def log_evidence(self, log_ratio: float) -> float:
        """Logarithm of the factor by which a step makes "it is slower" more likely than "nothing has changed"."""
        return self.weight * math.log(evidence_of(self.part(log_ratio)))

    def log_evidence_of_slow(self, log_ratio: float) -> float:
        """The same next to steps that are much longer, where it doesn't matter how alike normal neighbours are."""
        return math.log(evidence_of(self.part(log_ratio)))

    def log_strong_evidence(self, log_ratio: float) -> float:
        """The same of "it is slower by more than `STRONG`"."""
        return self.strong_weight * math.log(evidence_of(self.part(log_ratio - _LOG_STRONG)))

    def _strong_independence(self, normal: Floats) -> float:
        """The largest weight at which blocks of normal steps are no evidence in the mean."""
        factors = np.full(len(normal), math.log(evidence_of(1.0)))
        for at in np.flatnonzero(normal - _LOG_STRONG > self._ordered[0]).tolist():
            factors[at] = math.log(evidence_of(self.part(float(normal[at]) - _LOG_STRONG)))
        weight = _weight(factors)
        for length in _BLOCKS:
            blocks = factors[: len(factors) // length * length].reshape(-1, length).sum(axis=1)
            while len(blocks) >= _FEWEST_BLOCKS and weight > _LEAST_WEIGHT and np.exp(weight * blocks).mean() > 1:
                weight *= _LESS
        return max(weight, _LEAST_WEIGHT)


_LOG_STRONG = math.log(STRONG)


def evidence_of(part: float) -> float:
    """The calibrator: 1/2 where `part` is 1, without limit as it nears 0, 1 in the mean where it is uniform.

    `part`: above 0, at most 1.
    """
    if part > 0.999:
        return 0.5
    logarithm = math.log(part)
    return (1 - part + part * logarithm) / (part * logarithm * logarithm)


def _independence(normal: Floats) -> float:
    """The weight by neighbours' ranks."""
    if len(normal) <= _FEWEST or np.ptp(normal) == 0:
        return 1.0
    return _weight(np.argsort(np.argsort(normal)).astype(float))


def _weight(values: Floats) -> float:
    """(1 - r) / (1 + r), where r is the correlation of neighbours; 1 where there is none."""
    if np.ptp(values[:-1]) == 0 or np.ptp(values[1:]) == 0:
        return 1.0
    r = float(np.corrcoef(values[:-1], values[1:])[0, 1])
    return min(1.0, max(_LEAST_WEIGHT, (1 - r) / (1 + r)))
