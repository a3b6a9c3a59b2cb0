"""What is normal for one kind of steps: what they should take, and how far they lie off, learned as they come.

Steps are learned from late: only when the steps after them were normal, too (`LATE`, fewer while few are known), so
that the first slow ones, before anyone can know that they are slow, never become normal. What was learned first stays
as the `anchor`, so that a slow drift, which the rest follows, can be told.
"""

import math
from collections import deque
from typing import NamedTuple

import numpy as np

from inferometer.watch.expected import Expected, Floats, learn_expected
from inferometer.watch.steps import WatchedStep, times_of, work_of
from inferometer.watch.surprise import Surprise

FEWEST = 30
"""Steps to learn from before any is judged."""

LATE = 128
"""Steps that a step waits for before it is learned from: half of those known, from `FEWEST` up to so many."""

LEAST = 0.05
"""A slowdown below this part isn't one."""

_REMEMBERED = 2048
_AT_ONCE = 2  # steps that are learned from when one comes
_GROWTH = 1.25  # learned anew when there are so many times more steps than the last time
_EVERY = 512  # or so many more
_ANCHOR = 512  # steps that the anchor is made of, at most


class KeptNormal(NamedTuple):
    """Of a `Normal`: the steps that it remembers and those that wait, how many were learned from, and the anchor."""

    steps: list[WatchedStep]
    waiting: list[WatchedStep]
    learned: int
    new: int
    anchor: Expected | None


class Normal:
    """Of steps of one phase.

    Args:
        least: The smallest slowdown that is looked for, as a part: 0.05 is 5 %.
    """

    def __init__(self, least: float = LEAST) -> None:
        self._allowed = math.log1p(least)
        self._steps: deque[WatchedStep] = deque(maxlen=_REMEMBERED)
        self._waiting: deque[WatchedStep] = deque(maxlen=_REMEMBERED)
        self._learned = self._new = 0
        self._expected: Expected | None = None
        self._anchor: Expected | None = None
        self._surprise: Surprise | None = None

    @property
    def is_known(self) -> bool:
        """Whether steps can be judged."""
        return self._surprise is not None

    @property
    def band(self) -> tuple[float, float] | None:
        """Of logarithms of ratios: 98 % of normal steps lie between; None before any can be judged."""
        return self._surprise.band if self._surprise else None

    def log_ratio(self, step: WatchedStep) -> float | None:
        """Logarithm of its time over the expected one; None where it can't be judged: unknown, or of much more work."""
        expected_ns = self._expected.time_ns(step.work) if self._expected else None
        return None if expected_ns is None else math.log(step.dur_ns / expected_ns)

    @property
    def surprise(self) -> Surprise:
        """How unusual a step is, by its `log_ratio`; only where steps can be judged."""
        assert self._surprise is not None
        return self._surprise

    def add(self, step: WatchedStep, *, is_suspect: bool = False) -> None:
        """A step that is to be learned from once those after it seem normal, too.

        `is_suspect`: steps may have become slower. Until that is known all of them wait: to leave out those that look
        slow by chance would make normal steps faster than they are.
        """
        self._waiting.append(step)
        if is_suspect and self.is_known:
            return
        for _ in range(_AT_ONCE):
            if len(self._waiting) <= (self._late if self.is_known else 0):
                return
            self._steps.append(self._waiting.popleft())
            self._new += 1
            if self._is_due():
                self._learn()

    def drop(self, since_ns: int) -> None:
        """Never learn from what waits and began at `since_ns` or later."""
        self._waiting = deque((one for one in self._waiting if one.start_ns < since_ns), maxlen=_REMEMBERED)

    def kept(self) -> KeptNormal:
        """What another process needs to go on."""
        return KeptNormal([*self._steps], [*self._waiting], self._learned, self._new, self._anchor)

    @classmethod
    def of(cls, kept: KeptNormal, least: float) -> "Normal":
        """Goes on with what was kept.

        Raises:
            ValueError: These can't be steps.
        """
        if any(step.dur_ns <= 0 or not all(amount >= 0 for amount in step.work) for step in kept.steps + kept.waiting):
            raise ValueError("a step takes no time, or does less than no work")
        normal = cls(least)
        normal._steps.extend(kept.steps)
        normal._waiting.extend(kept.waiting)
        if kept.learned and normal._steps:
            normal._new = kept.learned  # so that learning counts as many as before
            normal._anchor = kept.anchor
            normal._learn()
            normal._anchor = kept.anchor or normal._expected
        normal._new = kept.new
        return normal

    def drift(self) -> float:
        """How much longer the remembered steps take than the anchor expects, as a part; 0 until it is known."""
        if self._anchor is None or not self._steps:
            return 0.0
        ratios = _log_ratios(self._anchor, list(self._steps))
        return math.expm1(float(np.median(ratios))) if len(ratios) else 0.0

    @property
    def _late(self) -> int:
        return min(LATE, max(FEWEST, len(self._steps) // 2))

    def _is_due(self) -> bool:
        if len(self._steps) < FEWEST:
            return False
        return self._new >= _EVERY or self._learned + self._new >= _GROWTH * self._learned

    def _learn(self) -> None:
        steps = list(self._steps)
        self._learned, self._new = self._learned + self._new, 0
        self._expected = learn_expected(times_of(steps), work_of(steps))
        if self._learned <= _ANCHOR or self._anchor is None:
            self._anchor = self._expected
        self._surprise = Surprise(_log_ratios(self._expected, steps), self._allowed)


def _log_ratios(expected: Expected, steps: list[WatchedStep]) -> Floats:
    """Logarithms of measured over expected time, of steps that can be judged. Shape (steps,)."""
    pairs = ((step.dur_ns, expected.time_ns(step.work)) for step in steps)
    return np.array([math.log(dur_ns / expected_ns) for dur_ns, expected_ns in pairs if expected_ns])
