"""Watches steps: learning, then normal; slow since an onset, perhaps worse; then normal again.

Each process has its own normal and its own evidence, since one rank may be slow by itself. An alarm is raised when the
evidence passes the number of steps that one false alarm is allowed in, times the processes. It is over when the
evidence fell to a thousandth of its height; both are dated back to where it turned.

There are two sums of evidence: that steps are slower, and that they are slower by more than `WORSE`. Each may pass
twice the number, so that both together are allowed one false alarm. The second is quicker where steps are much slower,
and dates that apart from a small slowdown before it: then it says that the slow steps became worse. Slow steps that
become slower than those before by less are found by their own level (`level.py`).
"""

import math
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice
from typing import NamedTuple

import numpy as np

from inferometer.watch.evidence import SUSPECT, Evidence, KeptEvidence, Recovery
from inferometer.watch.expected import Floats
from inferometer.watch.level import KeptLevel, Level
from inferometer.watch.normal import LEAST, KeptNormal, Normal
from inferometer.watch.steps import WatchedStep
from inferometer.watch.surprise import SIZES, STRONG

WEEK_NS = 7 * 24 * 3600 * 10**9
WORSE = STRONG
"""Slow steps that become slower by this factor are a change of their own."""

_RECOVERED = math.log(1000)
_REMEMBERED = 4096  # judged steps of a process, to date changes in and to say how slow they are
_FEWEST_NEEDED = 30  # steps between two false alarms, where so many haven't been seen in the time that is allowed
_FEWEST = 10
_FEW = 3
_MOST_ALIKE = 0.9  # correlation of neighbours that widens an interval, at most
_SURE = 2.326  # standard errors on both sides: 98 %
_TESTS = 2  # sums of evidence


class State(StrEnum):
    """What a process is doing, as far as its steps show."""

    LEARNING = "learning"
    NORMAL = "normal"
    SLOW = "slow"


class Kind(StrEnum):
    """What changed."""

    ALARM = "alarm"
    WORSE = "worse"
    RECOVERED = "recovered"


@dataclass(frozen=True)
class PhaseSlowdown:
    """The slow steps of one phase: `ratio` is their time over what they should have taken, between `low` and `high`.

    That is a 98 % interval, None of fewer than `_FEWEST` steps.
    """

    phase: str | None
    steps: int
    ratio: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Change:
    """What became of a process at `at_ns`, when it was noticed.

    `since_ns`: when it likely began, between `first_ns` and `last_ns`, 95 %. `step` is the number of the step that it
    began with, `steps` how many judged steps it took to notice, counted from there. `slowdowns`: by phase, the one with
    the most excess time first, of the steps since; where it is over, of those that were slow.
    """

    kind: Kind
    owner: str | None
    at_ns: int
    since_ns: int
    first_ns: int
    last_ns: int
    step: int
    steps: int
    slowdowns: tuple[PhaseSlowdown, ...]


@dataclass(frozen=True)
class Judged:
    """A step: its number in its process, its time next to the expected one (None: it can't be judged).

    `band`: the logarithms of ratios between which 98 % of normal steps lie.
    """

    step: WatchedStep
    number: int
    state: State
    log_ratio: float | None
    band: tuple[float, float] | None = None

    @property
    def expected_ns(self) -> float | None:
        """What it should have taken."""
        return None if self.log_ratio is None else self.step.dur_ns / math.exp(self.log_ratio)

    @property
    def between_ns(self) -> tuple[float, float] | None:
        """Where 98 % of normal steps with this work would lie."""
        if self.expected_ns is None or self.band is None:
            return None
        return self.expected_ns * math.exp(self.band[0]), self.expected_ns * math.exp(self.band[1])


class Watcher:
    """Takes steps in order of time, and says what changed.

    Args:
        least: The smallest slowdown that is looked for, as a part.
        false_alarm_ns: The time in which one false alarm is accepted, of all processes together.
    """

    def __init__(self, *, least: float = LEAST, false_alarm_ns: int = WEEK_NS) -> None:
        self.least, self._false_alarm_ns = least, false_alarm_ns
        self._lanes: dict[str | None, _Lane] = {}

    @property
    def state(self) -> State:
        """Slow where a process is, learning where none can be judged yet."""
        states = {lane.state for lane in self._lanes.values()}
        return next((state for state in (State.SLOW, State.NORMAL) if state in states), State.LEARNING)

    def add(self, step: WatchedStep) -> tuple[Judged, Change | None]:
        """Judge one step more."""
        lane = self._lanes.get(step.owner)
        if lane is None:
            lane = self._lanes[step.owner] = _Lane(step.owner, self.least)
        return lane.add(step, self._false_alarm_ns * len(self._lanes))

    def slow_so_far(self, owner: str | None) -> tuple[PhaseSlowdown, ...]:
        """Of the slow steps of an owner until now; empty where they aren't slow."""
        return self._lanes[owner].slow_so_far()

    def kept(self) -> "list[KeptLane]":
        """What another process needs to go on."""
        return [lane.kept() for lane in self._lanes.values()]

    def resume(self, kept: "Iterable[KeptLane]") -> None:
        """Go on with what was kept."""
        for one in kept:
            self._lanes[one.owner] = _Lane.of(one, self.least)

    def drifts(self) -> Iterator[tuple[str | None, str | None, float]]:
        """Owner, phase, and by what part its normal steps take longer than at first."""
        for owner, lane in self._lanes.items():
            for phase, normal in lane.normals.items():
                if normal.is_known:
                    yield owner, phase, normal.drift()


class KeptLane(NamedTuple):
    """Of one process: what is normal, by phase, the evidence, and the slow state with the steps that it is about."""

    owner: str | None
    normals: list[tuple[str | None, KeptNormal]]
    evidence: KeptEvidence
    strong: KeptEvidence
    recovery: Recovery | None
    judged: list[Judged]
    seen: int
    begin_ns: int | None
    onset: int
    level: KeptLevel
    level_onset: int
    is_strong: bool
    is_far: bool


class _Lane:
    """One process."""

    def __init__(self, owner: str | None, least: float) -> None:
        self.owner = owner
        self.normals: dict[str | None, Normal] = defaultdict(lambda: Normal(least))
        self._evidence, self._strong = Evidence(len(SIZES)), Evidence()
        self._is_strong = False  # whether the evidence that steps are much slower has passed
        self._is_far = False  # whether slow steps lie far from normal ones
        self._recovery: Recovery | None = None
        self._judged: deque[Judged] = deque(maxlen=_REMEMBERED)
        self._seen = 0
        self._begin_ns: int | None = None
        self._onset = 0  # of the slow state, in judged steps
        self._level = Level()  # of the slow state
        self._level_onset = 0  # of it, in judged steps

    def kept(self) -> KeptLane:
        return KeptLane(
            self.owner,
            [(phase, normal.kept()) for phase, normal in self.normals.items()],
            self._evidence.kept(),
            self._strong.kept(),
            self._recovery,
            [*self._judged],
            self._seen,
            self._begin_ns,
            self._onset,
            self._level.kept(),
            self._level_onset,
            self._is_strong,
            self._is_far,
        )

    @classmethod
    def of(cls, kept: KeptLane, least: float) -> "_Lane":
        lane = cls(kept.owner, least)
        lane.normals.update((phase, Normal.of(normal, least)) for phase, normal in kept.normals)
        lane._evidence, lane._strong = Evidence.of(kept.evidence, len(SIZES)), Evidence.of(kept.strong)
        lane._is_strong, lane._is_far = kept.is_strong, kept.is_far
        lane._recovery = kept.recovery
        lane._judged.extend(kept.judged)
        lane._seen, lane._begin_ns = kept.seen, kept.begin_ns
        lane._onset, lane._level = kept.onset, Level.of(kept.level)
        lane._level_onset = kept.level_onset
        return lane

    @property
    def state(self) -> State:
        if self._recovery is not None:
            return State.SLOW
        return State.NORMAL if any(normal.is_known for normal in self.normals.values()) else State.LEARNING

    def add(self, step: WatchedStep, false_alarm_ns: float) -> tuple[Judged, Change | None]:
        normal = self.normals[step.phase]
        log_ratio = normal.log_ratio(step)
        judged = Judged(step, self._seen, self.state, log_ratio, normal.band)
        self._seen += 1
        if self._begin_ns is None:
            self._begin_ns = step.start_ns
        change = None
        if log_ratio is not None:
            self._judged.append(judged)
            self._strong.add(normal.surprise.log_strong_evidence(log_ratio))
            elapsed_ns = max(step.end_ns - self._begin_ns, 1)
            needed = math.log(max(_TESTS * false_alarm_ns * self._seen / elapsed_ns, _FEWEST_NEEDED))
            if self._recovery is None:
                self._evidence.add(*normal.surprise.log_evidence(log_ratio))
                change = self._suspect(needed)
            else:
                self._level.add(step.start_ns, log_ratio)
                change = self._go_on(normal.surprise.log_evidence_of_slow(log_ratio, is_far=self._is_far), needed)
        if self._recovery is None:
            normal.add(step, is_suspect=self._evidence.log_sum >= SUSPECT)
        return judged, change

    def _suspect(self, needed: float) -> Change | None:
        self._is_strong = self._strong.log_sum >= needed
        if self._evidence.log_sum < needed and not self._is_strong:
            return None
        onset = (self._strong if self._is_strong else self._evidence).onset()
        change = self._change(Kind.ALARM, onset.step, onset.first, onset.last)
        self._onset = onset.step
        self._is_far = self._is_strong or change.slowdowns[0].ratio > WORSE
        for normal in self.normals.values():
            normal.drop(change.first_ns)
        self._begin_level(onset.step)
        self._recovery = Recovery(_RECOVERED, height_at=self._evidence.steps)
        return change

    def _go_on(self, factor: float, needed: float) -> Change | None:
        assert self._recovery is not None
        self._evidence.steps += 1
        if self._recovery.add(factor, self._evidence.steps):
            ended = self._recovery.height_at
            change = self._change(Kind.RECOVERED, ended, ended, self._evidence.steps - 1)
            change = replace(change, slowdowns=_slowdowns(self._between(self._onset, ended)))
            self._recovery = None
            self._evidence.forget()
            self._strong.forget()
            return change
        if not self._is_strong and self._strong.log_sum >= needed:
            return self._strengthen()
        return self._worsen() if self._level.log_sum >= needed else None

    def _strengthen(self) -> Change | None:
        """A change where much slower steps came after less slow ones; None where all were alike."""
        self._is_strong = self._is_far = True
        onset = self._strong.onset()
        before, now = self._log_ratios(self._level_onset, onset.step), self._log_ratios(onset.step)
        if len(before) < _FEW or now.mean() < before.mean() + math.log(WORSE) + self._doubt(len(before)):
            return None
        self._begin_level(onset.step)
        return self._change(Kind.WORSE, onset.step, onset.first, onset.last)

    def _doubt(self, steps: int) -> float:
        """By how much the mean of few slow steps may be off, as much as normal ones vary; as a logarithm."""
        band = self._judged[-1].band
        return 0.0 if steps >= _FEWEST or band is None else (band[1] - band[0]) / 2 / math.sqrt(steps)

    def _worsen(self) -> Change:
        """A change where slow steps became slower than the slow steps before."""
        onset, last = self._level.onset(), self._evidence.steps - 1
        self._begin_level(last + onset.step)
        return self._change(Kind.WORSE, last + onset.step, last + onset.first, last + onset.last)

    def _begin_level(self, onset: int) -> None:
        self._level, self._level_onset = Level(), onset
        for judged in self._between(onset):
            assert judged.log_ratio is not None
            self._level.add(judged.step.start_ns, judged.log_ratio)

    def slow_so_far(self) -> tuple[PhaseSlowdown, ...]:
        """Of the slow steps until now; empty where it isn't slow."""
        return _slowdowns(self._between(self._onset)) if self._recovery is not None else ()

    def _between(self, first: int, end: int | None = None) -> list[Judged]:
        """Judged steps from a number on, before another, as `Evidence` counts them."""
        forgotten = self._evidence.steps - len(self._judged)
        return [*islice(self._judged, max(0, first - forgotten), None if end is None else max(0, end - forgotten))]

    def _log_ratios(self, since: int, end: int | None = None) -> Floats:
        return np.array([judged.log_ratio for judged in self._between(since, end)], dtype=np.float64)

    def _change(self, kind: Kind, onset: int, first: int, last: int) -> Change:
        steps = self._between(onset)
        return Change(
            kind,
            self.owner,
            self._judged[-1].step.end_ns,
            steps[0].step.start_ns,
            self._between(first)[0].step.start_ns,
            self._between(last)[0].step.start_ns,
            steps[0].number,
            len(steps),
            _slowdowns(steps),
        )


def _slowdowns(steps: list[Judged]) -> tuple[PhaseSlowdown, ...]:
    found: dict[str | None, list[Judged]] = {}
    for judged in steps:
        found.setdefault(judged.step.phase, []).append(judged)
    excess = {phase: sum(one.step.dur_ns - (one.expected_ns or 0) for one in some) for phase, some in found.items()}
    return tuple(_slowdown(phase, found[phase]) for phase in sorted(found, key=lambda phase: -excess[phase]))


def _slowdown(phase: str | None, steps: list[Judged]) -> PhaseSlowdown:
    took = np.array([judged.step.dur_ns for judged in steps], dtype=np.float64)
    expected = np.array([judged.expected_ns for judged in steps], dtype=np.float64)
    ratio = float(took.sum() / expected.sum())
    if len(steps) < _FEWEST:
        return PhaseSlowdown(phase, len(steps), ratio, None, None)
    off = took - ratio * expected
    neighbours = float(off[1:] @ off[:-1] / max(float(off @ off), 1.0))
    alike = min(max(neighbours, 0.0), _MOST_ALIKE)
    error = _SURE * math.sqrt(float(off @ off) * (1 + alike) / (1 - alike)) / float(expected.sum())
    return PhaseSlowdown(phase, len(steps), ratio, ratio - error, ratio + error)
