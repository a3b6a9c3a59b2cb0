"""The level of slow steps, learned as they come, and the evidence that they have become slower still.

The ratios of slow steps to their expected times are steps of their own to `Normal`: how much they vary is learned of
them, not of the normal ones, so that a slowdown within a slowdown is found as the first was, at the same rate of false
alarms.
"""

import math
from typing import NamedTuple

from inferometer.watch.evidence import SUSPECT, Evidence, KeptEvidence, Onset
from inferometer.watch.normal import KeptNormal, Normal
from inferometer.watch.steps import WatchedStep
from inferometer.watch.surprise import SIZES

LEAST = 0.1
"""Slow steps that take less than this part longer than before are as slow as before."""

_UNIT_NS = 1e9  # the time of a step whose ratio is 1


class KeptLevel(NamedTuple):
    """Of a `Level`."""

    normal: KeptNormal
    evidence: KeptEvidence


class Level:
    """Of one process since it is slow.

    Args:
        least: The smallest slowdown within the slowdown that is looked for, as a part.
    """

    def __init__(self, least: float = LEAST) -> None:
        self._least = least
        self._normal, self._evidence = Normal(least), Evidence(len(SIZES))

    @property
    def log_sum(self) -> float:
        """Logarithm of the evidence that they have become slower still."""
        return self._evidence.log_sum

    def add(self, start_ns: int, log_ratio: float) -> None:
        """One slow step more."""
        step = WatchedStep(start_ns, max(1, round(_UNIT_NS * math.exp(log_ratio))))
        own = self._normal.log_ratio(step)
        if own is not None:
            self._evidence.add(*self._normal.surprise.log_evidence(own))
        self._normal.add(step, is_suspect=self._evidence.log_sum >= SUSPECT)

    def onset(self) -> Onset:
        """Since when they are slower still, if they are; its numbers count back from the last step, which is 0."""
        onset, last = self._evidence.onset(), self._evidence.steps - 1
        return Onset(onset.step - last, onset.first - last, onset.last - last)

    def kept(self) -> KeptLevel:
        """What another process needs to go on."""
        return KeptLevel(self._normal.kept(), self._evidence.kept())

    @classmethod
    def of(cls, kept: KeptLevel, least: float = LEAST) -> "Level":
        """Goes on with what was kept.

        Raises:
            ValueError: It can't be that of steps.
        """
        level = cls(least)
        level._normal, level._evidence = Normal.of(kept.normal, least), Evidence.of(kept.evidence, len(SIZES))
        return level
