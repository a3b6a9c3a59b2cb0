"""Evidence that steps have become slower, added up step by step until chance is ruled out, and since when.

The sum is that of Shiryaev and Roberts: with each step's factor e, R becomes (R + 1) e. Where factors are at least as
likely to be small as large (their mean is at most 1 while nothing has changed), the mean number of steps until R
first passes A by chance is at least A (M. Pollak, Ann. Statist. 13, 1985). So A is the number of steps between two
false alarms that one is ready to accept. The onset is where the product of factors from there on is largest; its
interval has 95 % of these products.

Where steps have several factors, of which one fits best, each has a sum of its own. The mean of the sums is held
against A: on average it grows no faster by chance than one of them.
"""

import math
from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

SUSPECT = math.log(20)
"""Evidence from which on steps may have become slower: they are not learned from until it has gone."""

_REMEMBERED = 4096  # factors that an onset is looked for among
_INTERVAL = 0.95
_MOST = 700.0  # a logarithm beyond which exp() overflows


@dataclass(frozen=True)
class Onset:
    """Numbers of steps, counted by `Evidence`: the likeliest first slow step, and the interval's ends."""

    step: int
    first: int
    last: int


class KeptEvidence(NamedTuple):
    """Of an `Evidence`: its sums, empty before any step, and what was added."""

    log_sums: list[float]
    steps: int
    factors: list[tuple[float, ...]]


@dataclass
class Evidence:
    """Adds logarithms of factors, of each step `kinds`; `steps` were added so far."""

    kinds: int = 1
    steps: int = 0
    _log_sums: list[float] = field(default_factory=list)
    _factors: deque[tuple[float, ...]] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))

    @property
    def log_sum(self) -> float:
        """Logarithm of the mean of the sums; -infinity before any step."""
        return float(np.logaddexp.reduce(self._log_sums)) - math.log(self.kinds)

    def add(self, *log_factors: float) -> None:
        """One step more."""
        before = self._log_sums or [-math.inf] * self.kinds
        self._log_sums = [
            min(_MOST, float(np.logaddexp(log_sum, 0.0)) + factor)
            for log_sum, factor in zip(before, log_factors, strict=True)
        ]
        self.steps += 1
        self._factors.append(log_factors)

    def kept(self) -> KeptEvidence:
        """What another process needs to go on."""
        return KeptEvidence([*self._log_sums], self.steps, [*self._factors])

    @classmethod
    def of(cls, kept: KeptEvidence, kinds: int = 1) -> "Evidence":
        """As it was.

        Raises:
            ValueError: There are not as many sums, or factors of a step, as `kinds`.
        """
        if len(kept.log_sums) not in (0, kinds) or any(len(each) != kinds for each in kept.factors):
            raise ValueError(f"expected evidence of {kinds} kinds, found another number")
        evidence = cls(kinds, kept.steps, [*kept.log_sums])
        evidence._factors.extend(kept.factors)
        return evidence

    def onset(self) -> Onset:
        """Since when it is slower, if it is. At least one step must have been added."""
        factors = np.array(self._factors)
        since = np.logaddexp.reduce(np.cumsum(factors[::-1], axis=0)[::-1], axis=1)
        likely = np.exp(since - since.max())
        at = np.cumsum(likely) / likely.sum()
        before = self.steps - len(factors)
        first, last = np.searchsorted(at, ((1 - _INTERVAL) / 2, (1 + _INTERVAL) / 2))
        return Onset(before + int(since.argmax()), before + int(first), before + min(int(last), len(factors) - 1))

    def forget(self) -> None:
        """Begin anew; the count of steps goes on."""
        self._log_sums = []
        self._factors.clear()


@dataclass
class Recovery:
    """Whether slow steps have ended: the evidence fell from its height by `fall`, since the step `height_at`."""

    fall: float
    height: float = 0.0
    level: float = 0.0
    height_at: int = 0

    def add(self, log_factor: float, step: int) -> bool:
        """One step of the slow state more; True where it is over."""
        self.level += log_factor
        if self.level >= self.height:
            self.height, self.height_at = self.level, step
        return self.height - self.level >= self.fall
