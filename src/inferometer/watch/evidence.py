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
    """Of an `Evidence`: its sums, None where there is none yet, and what was added."""

    log_sums: list[float] | None
    steps: int
    factors: list[tuple[float, ...]]


@dataclass
class Evidence:
    """Adds logarithms of factors, of each step `kinds`; `log_sum` is that of the mean of the sums.

    `steps` were added so far.
    """

    kinds: int = 1

    log_sum: float = -math.inf
    steps: int = 0
    _log_sums: list[float] = field(default_factory=list)
    _factors: deque[tuple[float, ...]] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))

    def add(self, *log_factors: float) -> None:
        """One step more."""
        before = self._log_sums or [-math.inf] * self.kinds
        self._log_sums = [
            min(_MOST, _log_of_sum(log_sum, 0.0) + factor) for log_sum, factor in zip(before, log_factors, strict=True)
        ]
        self.log_sum = _log_of_sum(*self._log_sums) - math.log(self.kinds)
        self.steps += 1
        self._factors.append(log_factors)

    def kept(self) -> KeptEvidence:
        """What another process needs to go on."""
        return KeptEvidence(self._log_sums or None, self.steps, [*self._factors])

    @classmethod
    def of(cls, kept: KeptEvidence, kinds: int = 1) -> "Evidence":
        """As it was.

        Raises:
            ValueError: There are not as many sums, or factors of a step, as `kinds`.
        """
        sums = kept.log_sums or []
        if any(len(each) != kinds for each in (*([sums] if sums else []), *kept.factors)):
            raise ValueError(f"expected evidence of {kinds} kinds, found another number")
        log_sum = _log_of_sum(*sums) - math.log(kinds) if sums else -math.inf
        evidence = cls(kinds, log_sum, kept.steps, [*sums])
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
        self.log_sum = -math.inf
        self._log_sums = []
        self._factors.clear()


def _log_of_sum(*logarithms: float) -> float:
    """Logarithm of the sum of the numbers with these logarithms; -infinity is that of 0."""
    largest = max(logarithms)
    if largest == -math.inf:
        return largest
    return largest + math.log(sum(math.exp(one - largest) for one in logarithms))


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
