"""What each function adds to the change of a step: times per step in both runs, the difference, its interval, its kind.

Lines that are `added` sum up, with `unexplained`, to the change of the step exactly: the device's functions and what
the lane did besides (`idle` and `overlap` from launches, else `not on the device`). Overlap is negative time: moments
in which two launches ran are in both their times. Functions of the host run at the same moments as the device's, on
several threads: they have lines with changes of their own, and are never added. Collectives that several ranks ran
have two lines, one for the least time of any rank and one for what ranks waited for each other within.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec
import numpy as np
from msgspec.structs import replace

from inferometer.analyses.compare.matches import Key, Match
from inferometer.analyses.compare.sampling_units import REMAINDERS, Units, Values
from inferometer.analyses.compare.significance import interval, largest_discovery, p_of_calls, p_of_difference
from inferometer.analyses.comparison_limits import MIN_CHANGE, MORE_CALLS, NOT_REPEATED
from inferometer.names import decode
from inferometer.names.demangle import demangle

ChangeKind = Literal[
    "same", "slower", "faster", "new", "gone", "renamed", "fused", "split", "more calls", "fewer calls"
]
WAITING = "waiting for other ranks"


class Contribution(msgspec.Struct, frozen=True):
    """One line, per step: `delta_ns` = `candidate_ns` - `base_ns`, `share` of the step's change.

    `interval_ns` holds the difference in 95 of 100 samples; None where a run shows the function once. `cls` is the
    class of functions, or `idle`, `overlap`, `not on the device`. `of` are the raw names in base and candidate;
    `shared` those that are called elsewhere, too, with their whole time in the line. `basis` says why they are one.
    """

    name: str
    cls: str
    kind: ChangeKind
    base_ns: int
    candidate_ns: int
    share: float | None
    interval_ns: tuple[int, int] | None
    base_calls: float
    candidate_calls: float
    basis: str
    of: tuple[tuple[str, ...], tuple[str, ...]]
    added: bool
    shared: tuple[str, ...] = ()

    @property
    def delta_ns(self) -> int:
        """Time per step in the candidate less that in the base, ns."""
        return self.candidate_ns - self.base_ns

    @property
    def label(self) -> str:
        """What tables and charts call it: the kernel's short name, or both where it has another name in each run.

        A line of several functions keeps its own name.
        """
        if max(map(len, self.of)) != 1:
            return self.name
        names = dict.fromkeys(name for names in self.of for name in names)
        if len(names) < 2:
            return decode(self.name).short_name
        return " -> ".join(dict.fromkeys(decode(name).short_name for name in names))

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "class": self.cls,
            "kind": self.kind,
            "base_ns": self.base_ns,
            "candidate_ns": self.candidate_ns,
            "delta_ns": self.delta_ns,
            "share": self.share,
            "interval_ns": None if self.interval_ns is None else list(self.interval_ns),
            "base_calls": self.base_calls,
            "candidate_calls": self.candidate_calls,
            "basis": self.basis,
            "base_names": list(self.of[0]),
            "candidate_names": list(self.of[1]),
            "added": self.added,
        }


class Side(msgspec.Struct, frozen=True):
    """A run ready for lines: what a step holds by row, and its resampled values.

    `scale` divides times and calls where the run's cycles were normalised.
    """

    units: Units
    scale: float
    dur: Values
    calls: Values
    cost: Values
    dur_draws: Values
    calls_draws: Values
    cost_draws: Values
    rows: dict[Key, int]

    @classmethod
    def of(cls, units: Units, scale: float = 1.0, *, salt: int) -> "Side":
        """Resamples the run once for all lines; `salt` is another number for each run."""
        step = units.per_step
        keys = {(name, kind): row for row, (name, kind) in enumerate(units.functions.iter_rows())}
        return cls(
            units=units,
            scale=scale,
            dur=step["dur_ns"].to_numpy() / scale,
            calls=step["calls"].to_numpy() / scale,
            cost=step["cost_ns"].fill_null(np.nan).to_numpy() / scale,
            dur_draws=units.resample(units.dur, salt=salt) / scale,
            calls_draws=units.resample(units.calls) / scale,
            cost_draws=units.resample(units.cost) / scale,
            rows=keys,
        )

    @property
    def step(self) -> float:
        """Mean time of a step, ns."""
        return float(self.dur[self.units.added].sum())

    @property
    def step_times(self) -> Values:
        """Time of a step in each unit, ns, shape (U,); none where the run has no cycles."""
        if self.units.windowed or not self.units.lanes.size:
            return np.empty(0)
        some = self.units.lanes > 0
        sums = self.units.dur[self.units.added].sum(0)
        return np.asarray(sums[some] / self.units.lanes[some] / self.scale)

    @property
    def step_draws(self) -> Values:
        """Resampled times of the step; rows of unknown spread keep their time."""
        draws = np.where(np.isfinite(self.dur_draws), self.dur_draws, self.dur[:, None])
        return np.asarray(draws[self.units.added].sum(0))

    def at(self, keys: Sequence[Key]) -> list[int]:
        """The rows of these functions; those that have no complete step have none."""
        return [self.rows[key] for key in keys if key in self.rows]


class _Part(msgspec.Struct, frozen=True):
    """A line's time in one run: the mean and its samples."""

    mean: float
    draws: Values

    @classmethod
    def nothing(cls, like: Values) -> "_Part":
        return cls(0.0, np.zeros(like.shape[1]))


def contribution_lines(base: Side, candidate: Side, matches: Sequence[Match], step_delta_ns: int) -> list[Contribution]:
    """All lines, the added ones first, those that changed beyond noise before the others, then by size.

    Args:
        base: The run.
        candidate: The other.
        matches: Every function of either run, once.
        step_delta_ns: What shares are of.
    """
    every = [line for match in matches for line in _lines(base, candidate, match)]
    every += list(_remainders(base, candidate))
    judged = _judged(every, round(base.step))
    shared = [
        replace(line, share=line.delta_ns / step_delta_ns if step_delta_ns and line.added else None) for line in judged
    ]
    return sorted(shared, key=lambda line: (not line.added, line.kind == "same", -abs(line.delta_ns), line.name))


class _Unjudged(msgspec.Struct, frozen=True):
    """A line whose kind isn't decided yet: `p` of no difference, None where the spread is unknown."""

    line: Contribution
    p: float | None


def _lines(base: Side, candidate: Side, match: Match) -> Iterator[_Unjudged]:
    left, right = base.at(match.base), candidate.at(match.candidate)
    waits = any(np.isfinite(side.cost[rows]).any() for side, rows in ((base, left), (candidate, right)))
    parts = [(_time(side, rows), _cost(side, rows)) for side, rows in ((base, left), (candidate, right))]
    (all_base, own_base), (all_candidate, own_candidate) = parts
    if not waits:
        yield _line(match, base, candidate, all_base, all_candidate)
        return
    yield _line(match, base, candidate, own_base, own_candidate)
    idle = [_Part(whole.mean - own.mean, whole.draws - own.draws) for whole, own in parts]
    waiting = _line(match, base, candidate, *idle)
    basis = "time of collectives beyond the least of any rank"
    yield _Unjudged(replace(waiting.line, name=f"{waiting.line.name}: {WAITING}", basis=basis), waiting.p)


def _time(side: Side, rows: list[int]) -> _Part:
    return _Part(float(side.dur[rows].sum()), side.dur_draws[rows].sum(0)) if rows else _Part.nothing(side.dur_draws)


def _cost(side: Side, rows: list[int]) -> _Part:
    """The least time of any rank; all of it where only one rank ran it."""
    if not rows:
        return _Part.nothing(side.dur_draws)
    known = np.isfinite(side.cost[rows])
    means = np.where(known, side.cost[rows], side.dur[rows])
    draws = np.where(known[:, None], side.cost_draws[rows], side.dur_draws[rows])
    return _Part(float(means.sum()), draws.sum(0))


def _line(match: Match, base: Side, candidate: Side, left: _Part, right: _Part) -> _Unjudged:
    delta = right.draws - left.draws
    known = bool(np.isfinite(delta).all())
    rows = base.at(match.base), candidate.at(match.candidate)
    line = Contribution(
        name=_name(match),
        cls=(match.base or match.candidate)[0][1],
        kind=match.kind,
        base_ns=round(left.mean),
        candidate_ns=round(right.mean),
        share=None,
        interval_ns=_rounded(interval(delta)) if known else None,
        base_calls=_calls(base, rows[0]),
        candidate_calls=_calls(candidate, rows[1]),
        basis=match.basis,
        of=(tuple(key[0] for key in match.base), tuple(key[0] for key in match.candidate)),
        added=(match.base or match.candidate)[0][1] != "host",
        shared=match.shared,
    )
    if not known:
        return _Unjudged(line, None)
    p = p_of_difference(right.mean - left.mean, float(delta.std()))
    if len(rows[0]) == len(rows[1]) == 1:
        p = min(1.0, 2 * min(p, p_of_calls(base.units.log_calls[rows[0][0]], candidate.units.log_calls[rows[1][0]])))
    return _Unjudged(line, p)


def _rounded(times: tuple[float, float]) -> tuple[int, int]:
    return round(times[0]), round(times[1])


def _calls(side: Side, rows: list[int]) -> float:
    return float(max(side.calls[rows], default=0.0))


def _name(match: Match) -> str:
    """The base's name; where they differ, both, each as people read it."""
    left, right = (" + ".join(demangle(key[0]) for key in keys) for keys in (match.base, match.candidate))
    if not left or not right or match.kind == "same":
        return left or right
    return f"{left} -> {right}"


def _remainders(base: Side, candidate: Side) -> Iterator[_Unjudged]:
    """What a lane did besides running functions."""
    for name in REMAINDERS:
        keys = ((name, name),)
        if (name, name) in base.rows or (name, name) in candidate.rows:
            match = Match(keys, keys, "same", "what is left of the step")
            yield _line(match, base, candidate, _time(base, base.at(keys)), _time(candidate, candidate.at(keys)))


def _judged(lines: Sequence[_Unjudged], step_ns: int) -> list[Contribution]:
    """Each line's kind. Of many lines some differ by chance, so the false discovery rate over them is held."""
    passing = largest_discovery([item.p for item in lines if item.p is not None])
    return [replace(item.line, kind=_kind(item, passing, step_ns)) for item in lines]


def _kind(item: _Unjudged, passing: float, step_ns: int) -> ChangeKind:
    line = item.line
    if line.kind != "same":
        return line.kind
    size = max(abs(line.base_ns), abs(line.candidate_ns))
    if line.cls in REMAINDERS:  # they take up what functions leave: a change of theirs is one of the step
        size = max(size, step_ns)
    if item.p is None:
        is_changed = abs(line.delta_ns) > NOT_REPEATED * size
    else:
        low, high = line.interval_ns or (0, 0)
        beyond = item.p <= passing and not low <= 0 <= high
        is_changed = beyond and abs(line.delta_ns) > MIN_CHANGE * size
    if not is_changed:
        return "same"
    if line.cls not in REMAINDERS and not line.name.endswith(WAITING):
        ratio = line.candidate_calls / line.base_calls if line.base_calls else 1.0
        if ratio > 1 + MORE_CALLS and line.delta_ns > 0:
            return "more calls"
        if ratio < 1 / (1 + MORE_CALLS) and line.delta_ns < 0:
            return "fewer calls"
    return "slower" if line.delta_ns > 0 else "faster"
