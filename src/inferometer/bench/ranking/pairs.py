"""Which times of two runs are compared, and what of their change is drift of the machine.

A candidate that was timed in turns with a base in both runs is compared by its times over those of the base: what
slowed both alike cancels. That is drift only where the base is the same kernel in both runs: the same file, settings,
and versions of all libraries. Over 20 shapes and more, either each shape's own base time is taken, or the median
change of the base over all shapes, whichever leaves the changes spread less.

Without such a base nothing tells drift from a slower kernel. A common change of many shapes is taken for drift while it
is within the smallest effect, and no further: beyond that the times are compared as they are.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from inferometer.bench.ranking.changes import USUAL, Indices, Values, error_of, fit_spread
from inferometer.bench.ranking.shape_figures import Key, key_of, versus
from inferometer.bench.results import Mode, Run, ShapeResult, Timing

MANY = 20
"""Shapes from which on a median over all of them says what is common."""

By = Literal["shape", "median"]
Estimated = tuple[Values, Values]
"""Changes, and their standard errors."""


@dataclass(frozen=True)
class TimedPair:
    """One shape of a candidate, right and timed alike in both runs."""

    base: ShapeResult
    candidate: ShapeResult
    mode: Mode
    before: Timing
    after: Timing

    @property
    def ratio(self) -> float:
        """Time in the base's run over time in the candidate's, as they are."""
        return self.before.median_ns / self.after.median_ns


@dataclass(frozen=True)
class Paired:
    """A candidate's changes, ln of candidate's over base's time: `change` without drift, and its standard error.

    `base`: the kernel timed in turns with it in both runs; None: there is none, `why` says why. `by`: whose change of
    the base is taken out: each shape's own, or the median. `base_change`: that median. `common`: the median change
    taken for drift where there is no base; None: none was. `base_spread`: of the base's changes, beyond its intervals.
    """

    change: Values
    error: Values
    base: str | None = None
    why: str | None = None
    by: By | None = None
    base_change: float | None = None
    base_shapes: int = 0
    base_spread: float | None = None
    common: float | None = None


def pair_changes(pairs: Sequence[TimedPair], before: Run, after: Run, *, smallest: float) -> Paired:
    """What changed of one candidate's shapes, of which there is at least one."""
    base = find_base(pairs, before, after)
    if base is None:
        return take_common(*_own(pairs), "nothing was timed in turns with it in both runs", smallest=smallest)
    why = why_not_same(before, after, base)
    if why is not None:
        return take_common(*_own(pairs), f"{base} was, but {why}", smallest=smallest)
    changes = _changes_of_base(base, pairs, before, after)
    if not changes:
        return take_common(*_own(pairs), f"{base} was, but has no times of the same shapes", smallest=smallest)
    return _with_base(pairs, base, changes)


def find_base(pairs: Sequence[TimedPair], before: Run, after: Run) -> str | None:
    """What most shapes were timed in turns with in both runs; or else what both runs name as their base."""
    one = Counter(each.base for pair in pairs for each in pair.base.versus)
    common = one & Counter(each.base for pair in pairs for each in pair.candidate.versus)
    named = {run.settings.get("base") for run in (before, after)}
    if common:
        return max(common, key=lambda name: (common[name], name))
    name = named.pop() if len(named) == 1 else None
    return name if isinstance(name, str) and name != pairs[0].candidate.candidate else None


def why_not_same(before: Run, after: Run, base: str) -> str | None:
    """Why a base may be another kernel in the second run; None where nothing says so."""
    one, other = (next((each for each in run.candidates if each.name == base), None) for run in (before, after))
    if one is not None and other is not None:
        if one.sha256 != other.sha256:
            return "its file isn't the same"
        if (one.kind, one.settings) != (other.kind, other.settings):
            return "its settings aren't the same"
    if before.inferometer != after.inferometer:
        return "the version of inferometer isn't the same"
    names = dict.fromkeys((*before.versions, *after.versions))
    apart = next((name for name in names if before.versions.get(name) != after.versions.get(name)), None)
    return None if apart is None else f"the version of {apart} isn't the same"


def take_common(change: Values, error: Values, why: str, *, smallest: float) -> Paired:
    """Changes without a base: what is common to many shapes is drift, within the smallest effect."""
    common = float(np.median(change))
    if len(change) < MANY or abs(common) > math.log1p(smallest):
        return Paired(change, error, why=why)
    return Paired(change - common, error, why=why, common=common)


def take_base(own: Estimated, turns: Estimated, of_base: Estimated, base: str) -> Paired:
    """Changes without those of a base.

    Args:
        own: The candidate's, and their standard errors.
        turns: The same over the base's of each shape; NaN where they aren't known.
        of_base: The base's, of as many shapes as are known; at least one.
        base: Its name.
    """
    drift = float(np.median(of_base[0]))
    spread = fit_spread(of_base[0] - drift, of_base[1], np.zeros(len(of_base[0]), dtype=np.int64), most=1.0)
    by_median = own[0] - drift, np.hypot(own[1], USUAL / math.sqrt(len(of_base[0])))
    known = ~np.isnan(turns[0])
    by_shape = tuple(np.where(known, one, other) for one, other in zip(turns, by_median, strict=True))
    is_by_shape = len(own[0]) < MANY or _off(by_shape[0]) <= _off(by_median[0])
    change, error = by_shape if is_by_shape else by_median
    return Paired(
        change,
        error,
        base,
        by="shape" if is_by_shape else "median",
        base_change=drift,
        base_shapes=len(of_base[0]),
        base_spread=float(spread.scale[0]),
    )


def _own(pairs: Sequence[TimedPair]) -> Estimated:
    change = np.array([-math.log(each.ratio) for each in pairs])
    errors = [error_of([t.low_ns for t in own], [t.high_ns for t in own]) for own in zip(*_timings(pairs), strict=True)]
    return change, np.array([math.hypot(*each) for each in errors])


def _timings(pairs: Sequence[TimedPair]) -> tuple[list[Timing], list[Timing]]:
    return [each.before for each in pairs], [each.after for each in pairs]


def _changes_of_base(
    base: str, pairs: Sequence[TimedPair], before: Run, after: Run
) -> dict[tuple[Key, Mode], tuple[float, float]]:
    """Of the base's own times of these shapes, with their errors."""
    found = {}
    one, other = (_results_of(run, base) for run in (before, after))
    for pair in pairs:
        key = key_of(pair.base)
        if key not in one or key not in other:
            continue
        first, second = one[key].timing(pair.mode), other[key].timing(pair.mode)
        if first is not None and second is not None and first.timer == second.timer:
            (error,) = _own([TimedPair(one[key], other[key], pair.mode, first, second)])[1]
            found[key, pair.mode] = (math.log(second.median_ns / first.median_ns), float(error))
    return found


def _results_of(run: Run, name: str) -> dict[Key, ShapeResult]:
    return {key_of(each): each for each in run.results if each.candidate == name and each.is_right}


def _with_base(
    pairs: Sequence[TimedPair], base: str, changes: Mapping[tuple[Key, Mode], tuple[float, float]]
) -> Paired:
    own = _own(pairs)
    turns = np.full((2, len(pairs)), np.nan)
    for place, pair in enumerate(pairs):
        one, other = (_versus(each, base, pair.mode) for each in (pair.base, pair.candidate))
        if one is not None and other is not None:
            turns[:, place] = math.log(one[0] / other[0]), math.hypot(one[1], other[1])
        elif (found := changes.get((key_of(pair.base), pair.mode))) is not None:
            turns[:, place] = own[0][place] - found[0], math.hypot(own[1][place], found[1])
    of_base = np.array(list(changes.values()))
    return take_base(own, (turns[0], turns[1]), (of_base[:, 0], of_base[:, 1]), base)


def _versus(result: ShapeResult, base: str, mode: Mode) -> tuple[float, float] | None:
    """The speedup over the base, and the standard error of its logarithm."""
    found = versus(result, base, mode)
    return None if found is None else (found.speedup, float(error_of(found.low, found.high)))


def _off(values: Values) -> float:
    return float(np.median(np.abs(values - np.median(values))))


def numbered(names: Sequence[object]) -> Indices:
    """A number for each name, 0 and up in the order of their first."""
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return np.array([numbers[name] for name in names], dtype=np.int64)
