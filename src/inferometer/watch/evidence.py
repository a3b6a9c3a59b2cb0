"""Evidence that steps have become slower, added up step by step until chance is ruled out, and since when.

The sum is that of Shiryaev and Roberts: with each step's factor e, R becomes (R + 1) e. Where factors are at least as
likely to be small as large (their mean is at most 1 while nothing has changed), the mean number of steps until R
first passes A by chance is at least A (M. Pollak, Ann. Statist. 13, 1985). So A is the number of steps between two
false alarms that one is ready to accept. The onset is where the product of factors from there on is largest; its
interval has 95 % of these products.
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
    """Of an `Evidence`; `log_sum` is None where there is none."""

    log_sum: float | None
    steps: int
    factors: list[float]


@dataclass
class Evidence:
    """Adds logarithms of factors; `log_sum` is that of R. `steps` were added so far."""

    log_sum: float = -math.inf
    steps: int = 0
    _factors: deque[float] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))

    def add(self, log_factor: float) -> None:
        """One step more."""
        self.log_sum = min(_MOST, float(np.logaddexp(self.log_sum, 0.0)) + log_factor)
        self.steps += 1
        self._factors.append(log_factor)

    def kept(self) -> KeptEvidence:
        """What another process needs to go on."""
        return KeptEvidence(self.log_sum if math.isfinite(self.log_sum) else None, self.steps, [*self._factors])

    @classmethod
    def of(cls, kept: KeptEvidence) -> "Evidence":
        """As it was."""
        evidence = cls(-math.inf if kept.log_sum is None else kept.log_sum, kept.steps)
        evidence._factors.extend(kept.factors)
        return evidence

    def onset(self) -> Onset:
        """Since when it is slower, if it is. At least one step must have been added."""
        factors = np.array(self._factors)
        since = np.cumsum(factors[::-1])[::-1]
        likely = np.exp(since - since.max())
        at = np.cumsum(likely) / likely.sum()
        before = self.steps - len(factors)
        first, last = np.searchsorted(at, ((1 - _INTERVAL) / 2, (1 + _INTERVAL) / 2))
        return Onset(before + int(since.argmax()), before + int(first), before + min(int(last), len(factors) - 1))

    def forget(self) -> None:
        """Begin anew; the count of steps goes on."""
        self.log_sum = -math.inf
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
