"""What a watch saw, as a result: what steps should take and took, each slowdown from onset to end, and its cause."""

from collections import defaultdict, deque
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import polars as pl

from inferometer.analyses.result import Result
from inferometer.trace.losses import Losses
from inferometer.watch.cause import Why
from inferometer.watch.watcher import Change, Judged, Kind, PhaseSlowdown, State, Watcher

_REMEMBERED = 16_384  # steps of a phase, whose medians are given
_SHORT = 1024  # of these, that a watch goes on with
_FEWEST_NORMAL = 30  # steps of a normal time that slow ones are compared with, where there is one of so many
_SHORTEST_NORMAL_NS = 10**9  # and so long: ten samples of counters at 10 Hz
_KEPT = 1000  # slowdowns that a watch goes on with
PHASES = pl.Schema(
    {
        "phase": pl.String(),
        **dict.fromkeys(("steps", "judged"), pl.Int64()),
        **dict.fromkeys(("median_ns", "ratio", "drift"), pl.Float64()),
    }
)


@dataclass(frozen=True)
class Slowdown:
    """From an alarm to what ended it.

    `alarm`: when it was noticed, and since when. `worse`: how it became slower still. `recovered`: None where it was
    slow to the end. `slow`: by phase, the most excess time first, of all of its steps (of the last some thousand).
    `why` is None where nothing could be compared, or it wasn't asked for.
    """

    alarm: Change
    worse: tuple[Change, ...] = ()
    recovered: Change | None = None
    slow: tuple[PhaseSlowdown, ...] = ()
    why: Why | None = None

    def end_ns(self, last_ns: int) -> int:
        """When it ended, `last_ns` where it didn't."""
        return self.recovered.first_ns if self.recovered else last_ns

    @property
    def ratio(self) -> float:
        """Time over expected time, of the phase with the most excess."""
        return self.slow[0].ratio

    def as_json(self) -> dict[str, Any]:
        """All of it; times are ns of the source's clock."""
        alarm = self.alarm
        return {
            "owner": alarm.owner,
            "noticed_ns": alarm.at_ns,
            "since_ns": alarm.since_ns,
            "since_interval_ns": [alarm.first_ns, alarm.last_ns],
            "step": alarm.step,
            "steps_to_alarm": alarm.steps,
            "recovered_ns": self.recovered.since_ns if self.recovered else None,
            "phases": [_phase_json(one) for one in self.slow],
            "worse": [_worse_json(one) for one in self.worse],
            "why": self.why.as_json() if self.why else None,
        }


@dataclass(frozen=True)
class Watched(Result):
    """`steps` were seen from `first_ns` to `last_ns`; `judged` of them could be compared with what was learned.

    `phases`: one row per phase: its steps, the median time of the last `_REMEMBERED` (`median_ns`), the median of time
    over expected time of the last that were judged (`ratio`), and by what part its normal steps take longer now than
    what was learned first (`drift`; both null where none was judged). `unit` is what a step is: `step`, or `interval`
    of an engine's metrics. `least`: the smallest slowdown that was looked for, as a part.
    """

    view: ClassVar[str] = "watched"
    source: str
    unit: str
    state: State
    steps: int
    judged: int
    first_ns: int
    last_ns: int
    least: float
    phases: pl.DataFrame
    slowdowns: tuple[Slowdown, ...]
    losses: Losses

    def to_polars(self) -> pl.DataFrame:
        """One row per slowdown."""
        rows = [{**one.as_json(), "ratio": one.ratio} for one in self.slowdowns]
        return pl.DataFrame([{key: row[key] for key in _FLAT} for row in rows], schema=_FLAT)

    def as_json(self) -> dict[str, Any]:
        """All data; times are ns of the source's clock."""
        return {
            "source": self.source,
            "unit": self.unit,
            "state": self.state,
            "steps": self.steps,
            "judged": self.judged,
            "first_ns": self.first_ns,
            "last_ns": self.last_ns,
            "least": self.least,
            "phases": self.phases.to_dicts(),
            "slowdowns": [one.as_json() for one in self.slowdowns],
            "losses": self.losses.as_dict(),
        }


_FLAT = pl.Schema(
    {
        "owner": pl.String(),
        **dict.fromkeys(("noticed_ns", "since_ns", "step", "steps_to_alarm", "recovered_ns"), pl.Int64()),
        "ratio": pl.Float64(),
    }
)


class Window(NamedTuple):
    """Normal from `begin_ns` to `first_ns`, slow from `last_ns` to `end_ns`; the onset lies between."""

    begin_ns: int
    first_ns: int
    last_ns: int
    end_ns: int


class _Stretch(NamedTuple):
    begin_ns: int
    end_ns: int
    steps: float

    @property
    def long_ns(self) -> int:
        return self.end_ns - self.begin_ns


@dataclass
class Account:
    """Collects what a watcher says, step by step."""

    slowdowns: list[Slowdown] = field(default_factory=list)
    steps: int = 0
    judged: int = 0
    first_ns: int | None = None
    last_ns: int = 0
    _phases: dict[str | None, "_Phase"] = field(default_factory=lambda: defaultdict(_Phase))

    def add(self, judged: Judged, change: Change | None) -> int | None:
        """One step; the number of the slowdown that begins, gets worse or ends with it."""
        step = judged.step
        self.steps += 1
        self.judged += judged.log_ratio is not None
        self.first_ns = step.start_ns if self.first_ns is None else min(self.first_ns, step.start_ns)
        self.last_ns = max(self.last_ns, step.end_ns)
        self._phases[step.phase].add(step.dur_ns, judged.expected_ns)
        return self._change(change) if change else None

    def _change(self, change: Change) -> int:
        if change.kind is Kind.ALARM:
            self.slowdowns.append(Slowdown(change, slow=change.slowdowns))
            return len(self.slowdowns) - 1
        at = next(i for i in reversed(range(len(self.slowdowns))) if self.slowdowns[i].alarm.owner == change.owner)
        last = self.slowdowns[at]
        if change.kind is Kind.RECOVERED:
            self.slowdowns[at] = replace(last, recovered=change, slow=change.slowdowns)
        else:
            self.slowdowns[at] = replace(last, worse=(*last.worse, change))
        return at

    def window(self, number: int) -> Window:
        """The slow time of a slowdown until now, or since it became worse, and the normal time before it.

        Where the time since the slowdown before is too short to compare with, it is the normal time before that.
        """
        one = self.slowdowns[number]
        last_ns = one.worse[-1].last_ns if one.worse else one.alarm.last_ns
        owned = [each for each in self.slowdowns[: number + 1] if each.alarm.owner == one.alarm.owner]
        stretches = [self._normal_before(*pair) for pair in zip([None, *owned], owned, strict=False)]
        enough = [each for each in stretches if each.steps >= _FEWEST_NORMAL and each.long_ns >= _SHORTEST_NORMAL_NS]
        normal = enough[-1] if enough else max(stretches, key=lambda each: each.steps)
        return Window(normal.begin_ns, normal.end_ns, last_ns, one.end_ns(self.last_ns))

    def _normal_before(self, last: Slowdown | None, one: Slowdown) -> "_Stretch":
        begin_ns, first = self.first_ns or 0, 0
        if last is not None:
            begin_ns, first = last.end_ns(self.last_ns), (last.recovered or last.alarm).step
        took_ns = max(one.alarm.since_ns - begin_ns, 1) / max(one.alarm.step - first, 1)
        return _Stretch(begin_ns, one.alarm.first_ns, (one.alarm.first_ns - begin_ns) / took_ns)

    def explain(self, number: int, why: Why | None) -> bool:
        """Set the cause of a slowdown; whether it says something else than before.

        An answer that names no cause takes no other's place: what an older one was found in may be gone.
        """
        one = self.slowdowns[number]
        if why is None or (one.why and one.why.metric and not why.metric):
            return False
        self.slowdowns[number] = replace(one, why=why)
        return one.why is None or (one.why.verdict, one.why.metric) != (why.verdict, why.metric)

    def kept(self) -> "KeptAccount":
        """What another process needs to go on."""
        return KeptAccount(
            self.slowdowns[-_KEPT:],
            self.steps,
            self.judged,
            self.first_ns,
            self.last_ns,
            [(phase, one.kept()) for phase, one in self._phases.items()],
        )

    @classmethod
    def of(cls, kept: "KeptAccount") -> "Account":
        """Goes on with what was kept."""
        account = cls([*kept.slowdowns], kept.steps, kept.judged, kept.first_ns, kept.last_ns)
        account._phases.update((phase, _Phase.of(one)) for phase, one in kept.phases)
        return account

    def _with_all(self, one: Slowdown, watcher: Watcher) -> Slowdown:
        return one if one.recovered else replace(one, slow=watcher.slow_so_far(one.alarm.owner))

    def result(self, watcher: Watcher, *, source: str, unit: str, losses: Losses) -> Watched:
        """All of it until now."""
        drifts: dict[str | None, float] = {}
        for _, phase, drift in watcher.drifts():
            drifts[phase] = max(drifts.get(phase, drift), drift)
        rows = [{"phase": phase, "drift": drifts.get(phase), **one.row()} for phase, one in self._phases.items()]
        return Watched(
            source,
            unit,
            watcher.state,
            self.steps,
            self.judged,
            self.first_ns or 0,
            self.last_ns,
            watcher.least,
            pl.DataFrame(rows, schema=PHASES),
            tuple(self._with_all(one, watcher) for one in self.slowdowns),
            losses,
        )


class KeptPhase(NamedTuple):
    """Of the steps of one phase: how many, and times of the last ones."""

    steps: int
    judged: int
    took: list[int]
    ratios: list[float]


class KeptAccount(NamedTuple):
    """Of an `Account`: the last `_KEPT` slowdowns, and counts of all steps."""

    slowdowns: list[Slowdown]
    steps: int
    judged: int
    first_ns: int | None
    last_ns: int
    phases: list[tuple[str | None, KeptPhase]]


class _Phase:
    """Counts of its steps, and the times of the last ones."""

    def __init__(self) -> None:
        self.steps = self.judged = 0
        self._took: deque[int] = deque(maxlen=_REMEMBERED)
        self._ratios: deque[float] = deque(maxlen=_REMEMBERED)

    def kept(self) -> KeptPhase:
        return KeptPhase(self.steps, self.judged, [*self._took][-_SHORT:], [*self._ratios][-_SHORT:])

    @classmethod
    def of(cls, kept: KeptPhase) -> "_Phase":
        phase = cls()
        phase.steps, phase.judged = kept.steps, kept.judged
        phase._took.extend(kept.took)
        phase._ratios.extend(kept.ratios)
        return phase

    def add(self, took_ns: int, expected_ns: float | None) -> None:
        self.steps += 1
        self._took.append(took_ns)
        if expected_ns is not None:
            self.judged += 1
            self._ratios.append(took_ns / expected_ns)

    def row(self) -> dict[str, Any]:
        return {
            "steps": self.steps,
            "judged": self.judged,
            "median_ns": float(np.median(self._took)),
            "ratio": float(np.median(self._ratios)) if self._ratios else None,
        }


def _worse_json(one: Change) -> dict[str, Any]:
    return {"since_ns": one.since_ns, "phases": [_phase_json(phase) for phase in one.slowdowns]}


def _phase_json(one: PhaseSlowdown) -> dict[str, Any]:
    interval = None if one.low is None else [one.low, one.high]
    return {"phase": one.phase, "steps": one.steps, "ratio": one.ratio, "interval": interval}
