"""Two runs side by side: what was different about them, then every shape that both have, every operator, the whole.

Times of a candidate are compared by those of a base that was timed in turns with it in both runs, see `pairs.py`; which
changes are real is judged over all shapes together, see `changes.py`. Warm times count only where neither run has cold
ones.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import msgspec
import numpy as np
import polars as pl

from inferometer.analyses.result import Result
from inferometer.bench.ranking.changes import SMALLEST, Estimates, judge_changes
from inferometer.bench.ranking.pairs import By, Paired, TimedPair, numbered, pair_changes
from inferometer.bench.ranking.run_facts import Change, find_changes
from inferometer.bench.ranking.shape_figures import Figure, key_of
from inferometer.bench.ranking.standing import NamedRun
from inferometer.bench.results import Mode, Run, ShapeResult, Verdict
from inferometer.trace.losses import Losses
from inferometer.trace.tables import ALL_TABLES

Became = Literal["right", "wrong"]
_SCHEMA = {
    **dict.fromkeys(("operator", "shape", "contender", "became", "verdict"), pl.String),
    **dict.fromkeys(("speedup", "low", "high"), pl.Float64),
    "mode": pl.String,
    **dict.fromkeys(("base_ns", "candidate_ns", "ratio"), pl.Float64),
    "why": pl.String,
}


@dataclass(frozen=True)
class ShapeDifference:
    """One shape in both runs. `speedup` is base over candidate without drift: above 1, the candidate is faster.

    `speedup` and `verdict` are None where the times may not be compared; `why` says why. `ratio`: of the times as they
    are.
    """

    base: ShapeResult
    candidate: ShapeResult
    mode: str | None = None
    base_ns: float | None = None
    candidate_ns: float | None = None
    ratio: float | None = None
    speedup: Figure | None = None
    verdict: Verdict | None = None
    why: str | None = None

    @property
    def base_name(self) -> str:
        """The candidate's name in the first run."""
        return self.base.candidate

    @property
    def candidate_name(self) -> str:
        """The candidate's name in the second run."""
        return self.candidate.candidate

    @property
    def became(self) -> Became | None:
        """What the candidate's run is and the base's isn't."""
        if self.base.is_right == self.candidate.is_right:
            return None
        return "right" if self.candidate.is_right else "wrong"

    def as_row(self) -> dict[str, Any]:
        """Its cells in a table; the name is that of the second run."""
        speedup = self.speedup
        return {
            "operator": self.base.operator,
            "shape": self.base.shape,
            "contender": self.candidate_name,
            "became": self.became,
            "verdict": self.verdict,
            "speedup": speedup and speedup.value,
            "low": speedup and speedup.low,
            "high": speedup and speedup.high,
            "mode": self.mode,
            "base_ns": self.base_ns,
            "candidate_ns": self.candidate_ns,
            "ratio": self.ratio,
            "why": self.why,
        }

    def as_json(self) -> dict[str, Any]:
        return {
            "operator": self.base.operator,
            "shape": self.base.shape,
            "index": self.base.index,
            "args": self.base.args,
            "base": self.base_name,
            "candidate": self.candidate_name,
            "base_right": self.base.is_right,
            "candidate_right": self.candidate.is_right,
            "became": self.became,
            "mode": self.mode,
            "base_ns": self.base_ns,
            "candidate_ns": self.candidate_ns,
            "ratio": self.ratio,
            "speedup": None if self.speedup is None else msgspec.to_builtins(self.speedup),
            "verdict": self.verdict,
            "why": self.why,
        }


@dataclass(frozen=True)
class LevelChange:
    """Of one operator of a candidate, or of all its shapes together: `operator` None. `shapes`: how many are in it."""

    candidate: str
    operator: str | None
    shapes: int
    speedup: Figure
    verdict: Verdict


@dataclass(frozen=True)
class Drift:
    """What is known of the drift between the runs for one candidate.

    `base`: the kernel that was timed in turns with it in both; None: none was, and `why` says why. `by`: whether each
    shape's own times of the base are taken, or the median of all. `base_change`: candidate's over base's time of that
    kernel, median over `base_shapes`. `common`: without such a kernel, the median of all shapes' changes that was taken
    for drift; None: none was.
    """

    candidate: str
    base: str | None
    why: str | None
    by: By | None
    base_change: float | None
    base_shapes: int
    common: float | None


@dataclass(frozen=True)
class Differences(Result):
    """Two runs. `incomparable`: why no times are compared, None where they are.

    `drifts` and `wholes`: one per candidate whose times were compared; `operators`: one per operator of these.
    `smallest`: the smallest effect that counts. `unpaired`: candidates that stand in one run alone. `only_base`,
    `only_candidate`: shapes of the others that do.
    """

    view: ClassVar[str] = "ranking.differences"
    base: NamedRun
    candidate: NamedRun
    changes: tuple[Change, ...]
    shapes: tuple[ShapeDifference, ...]
    unpaired: tuple[str, ...]
    only_base: int
    only_candidate: int
    incomparable: str | None
    losses: Losses
    drifts: tuple[Drift, ...] = ()
    operators: tuple[LevelChange, ...] = ()
    wholes: tuple[LevelChange, ...] = ()
    smallest: float = SMALLEST

    @property
    def verdicts(self) -> Counter[str]:
        """How many shapes have each."""
        return Counter(each.verdict for each in self.shapes if each.verdict is not None)

    @property
    def speedup(self) -> float | None:
        """Geometric mean over the shapes whose times were compared."""
        logs = [math.log(each.speedup.value) for each in self.shapes if each.speedup is not None]
        return math.exp(math.fsum(logs) / len(logs)) if logs else None

    @property
    def is_functional(self) -> bool:
        """Whether both ran on a CPU, or neither was timed: right and wrong is all there is to compare."""
        runs = self.base[1], self.candidate[1]
        return all(run.functional_only for run in runs) or all(run.stage == "correct" for run in runs)

    @property
    def regressed(self) -> bool:
        """Whether a shape became wrong, or a shape, operator or candidate slower; or that is unknown.

        That is unknown where no shape is in both runs, or their times may not be compared.
        """
        if not self.shapes or (self.incomparable is not None and not self.is_functional):
            return True
        verdicts = [each.verdict for each in (*self.operators, *self.wholes)] + [each.verdict for each in self.shapes]
        return "slower" in verdicts or any(each.became == "wrong" for each in self.shapes)

    def to_polars(self) -> pl.DataFrame:
        """One row per shape that both runs have."""
        return pl.DataFrame([each.as_row() for each in self.shapes], schema=_SCHEMA, orient="row")

    def as_json(self) -> dict[str, Any]:
        return {
            "base": self.base[0],
            "candidate": self.candidate[0],
            "incomparable": self.incomparable,
            "regressed": self.regressed,
            "verdicts": dict(self.verdicts),
            "speedup": self.speedup,
            "smallest_effect": self.smallest,
            "drift": msgspec.to_builtins(self.drifts),
            "candidates": msgspec.to_builtins(self.wholes),
            "operators": msgspec.to_builtins(self.operators),
            "changes": msgspec.to_builtins(self.changes),
            "unpaired": list(self.unpaired),
            "only_base": self.only_base,
            "only_candidate": self.only_candidate,
            "shapes": [each.as_json() for each in self.shapes],
        }


def find_differences(base: NamedRun, candidate: NamedRun, *, smallest: float = SMALLEST) -> Differences:
    """Candidates of one name are compared with each other; or the only one of each run, whatever their names.

    Args:
        base: The run before, with the name of its file.
        candidate: The run after.
        smallest: The smallest effect that counts, as a share of the time.
    """
    before, after = base[1], candidate[1]
    pairs, unpaired = _pairs(before, after)
    incomparable = _incomparable(before, after)
    shapes: list[ShapeDifference] = []
    only_base = only_candidate = 0
    for left, right in pairs:
        own = {key_of(each): each for each in before.results if each.candidate == left}
        other = {key_of(each): each for each in after.results if each.candidate == right}
        shapes += [_difference(each, other[key], incomparable) for key, each in own.items() if key in other]
        only_base += len(own.keys() - other.keys())
        only_candidate += len(other.keys() - own.keys())
    found = Differences(
        base,
        candidate,
        tuple(find_changes(before, after)),
        tuple(shapes),
        unpaired,
        only_base,
        only_candidate,
        incomparable,
        Losses(ALL_TABLES),
        smallest=smallest,
    )
    return _judged(found, before, after)


def _pairs(before: Run, after: Run) -> tuple[list[tuple[str, str]], tuple[str, ...]]:
    left, right = (list(dict.fromkeys(each.candidate for each in run.results)) for run in (before, after))
    common = [(name, name) for name in left if name in set(right)]
    if not common and len(left) == len(right) == 1:
        return [(left[0], right[0])], ()
    alone = set(left) ^ set(right)
    return common, tuple(name for name in dict.fromkeys((*left, *right)) if name in alone)


def _incomparable(before: Run, after: Run) -> str | None:
    if before.device != after.device:
        return f"the runs are of different devices: {before.device}, and {after.device}"
    if before.functional_only or after.functional_only:
        return "times of a CPU show that the kernels run, not how fast they are"
    if "correct" in (before.stage, after.stage):
        return "only one of the runs timed its kernels" if before.stage != after.stage else "neither run has times"
    return None


def _difference(base: ShapeResult, candidate: ShapeResult, incomparable: str | None) -> ShapeDifference:
    """What is known before times are judged: without a verdict, and `why` where there will be none."""
    if incomparable is not None:
        return ShapeDifference(base, candidate, why=incomparable)
    if not (base.is_right and candidate.is_right):
        return ShapeDifference(base, candidate, why="only times of right answers are compared")
    found = next(_timed(base, candidate), None)
    if found is None:
        return ShapeDifference(base, candidate, why="not timed alike in both")
    times = (found.mode, found.before.median_ns, found.after.median_ns, found.ratio)
    if found.before.timer != found.after.timer:
        why = f"timed by {found.before.timer}, then by {found.after.timer}"
        return ShapeDifference(base, candidate, *times, why=why)
    return ShapeDifference(base, candidate, *times)


def _timed(base: ShapeResult, candidate: ShapeResult) -> Iterator[TimedPair]:
    """Pairs of timings that both have, cold ones first."""
    modes: tuple[Mode, ...] = ("cold", "warm")
    for mode in modes:
        before, after = base.timing(mode), candidate.timing(mode)
        if before is not None and after is not None:
            yield TimedPair(base, candidate, mode, before, after)


def _judged(found: Differences, before: Run, after: Run) -> Differences:
    """With a verdict for what can be compared, and what is known of drift."""
    by_candidate: dict[str, list[int]] = {}
    for place, each in enumerate(found.shapes):
        if each.ratio is not None and each.why is None:
            by_candidate.setdefault(each.candidate_name, []).append(place)
    pairs = {name: [_pair(found.shapes[place]) for place in places] for name, places in by_candidate.items()}
    paired = {name: pair_changes(own, before, after, smallest=found.smallest) for name, own in pairs.items()}
    bases = {each.base for each in paired.values() if each.base is not None and each.base in paired}
    shapes = [_as_base(each) if _is_of(each, bases) else each for each in found.shapes]
    judged = {name: each for name, each in paired.items() if name not in bases}
    found = replace(found, shapes=tuple(shapes))
    return _with_verdicts(found, judged, by_candidate) if judged else found


def _pair(each: ShapeDifference) -> TimedPair:
    return next(_timed(each.base, each.candidate))


def _is_of(each: ShapeDifference, bases: set[str]) -> bool:
    return each.candidate_name in bases and each.ratio is not None and each.why is None


def _as_base(each: ShapeDifference) -> ShapeDifference:
    return replace(each, why="the base, which others are compared by")


def _with_verdicts(found: Differences, paired: dict[str, Paired], by_candidate: dict[str, list[int]]) -> Differences:
    places = [place for name in paired for place in by_candidate[name]]
    names = [(name, found.shapes[place].base.operator) for name in paired for place in by_candidate[name]]
    own, operator = list(dict.fromkeys(names)), numbered(names)
    spreads = [each.base_spread for each in paired.values() if each.base_spread is not None]
    result = judge_changes(
        np.concatenate([each.change for each in paired.values()]),
        np.concatenate([each.error for each in paired.values()]),
        operator,
        numbered([name for name, _ in own]),
        smallest=found.smallest,
        base_spread=max(spreads, default=None),
    )
    shapes, counts = list(found.shapes), Counter(names)
    for place, speedup, verdict in zip(places, _speedups(result.shapes), result.shapes.verdicts, strict=True):
        shapes[place] = replace(shapes[place], speedup=speedup, verdict=verdict)
    whole = [(name, None) for name in paired]
    sizes = [counts[each] for each in own], [len(by_candidate[name]) for name in paired]
    return replace(
        found,
        shapes=tuple(shapes),
        drifts=tuple(_drift(name, each) for name, each in paired.items()),
        operators=tuple(_changes(own, sizes[0], result.operators)),
        wholes=tuple(_changes(whole, sizes[1], result.candidates)),
    )


def _changes(
    names: Sequence[tuple[str, str | None]], shapes: Sequence[int], estimates: Estimates
) -> Iterator[LevelChange]:
    rows = zip(names, shapes, _speedups(estimates), estimates.verdicts, strict=True)
    return (LevelChange(name, operator, count, speedup, verdict) for (name, operator), count, speedup, verdict in rows)


def _speedups(estimates: Estimates) -> list[Figure]:
    low, high = estimates.interval()
    rows = zip(estimates.change, high, low, strict=True)
    return [Figure(*(math.exp(-float(value)) for value in row)) for row in rows]


def _drift(name: str, paired: Paired) -> Drift:
    of_base = None if paired.base_change is None else math.exp(paired.base_change)
    common = None if paired.common is None else math.exp(paired.common)
    return Drift(name, paired.base, paired.why, paired.by, of_base, paired.base_shapes, common)
