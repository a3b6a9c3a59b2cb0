"""Two runs side by side: what was different about them, then every shape that both have.

The runs are not paired: each was timed by itself, so what changed between them (clocks, other load, versions) is in the
ratio, and in no interval. Only candidates timed in turns in one process are paired, in `Versus`. Warm times count only
where neither run has cold ones.
"""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import msgspec
import polars as pl

from inferometer.analyses.result import Result
from inferometer.bench.ranking.run_facts import Change, find_changes
from inferometer.bench.ranking.shape_figures import Figure, key_of
from inferometer.bench.ranking.standing import NamedRun
from inferometer.bench.results import Run, ShapeResult, Timing, Verdict
from inferometer.trace.losses import Losses
from inferometer.trace.tables import ALL_TABLES

SAME = 1.02
"""A ratio between 1 / SAME and SAME is the same: a convention, as intervals of runs that aren't paired hold nothing of
what changed from one to the other, such as clocks and temperature."""

Became = Literal["right", "wrong"]
_SCHEMA = {
    **dict.fromkeys(("operator", "shape", "contender", "became", "verdict"), pl.String),
    **dict.fromkeys(("speedup", "low", "high"), pl.Float64),
    "mode": pl.String,
    **dict.fromkeys(("base_ns", "candidate_ns"), pl.Float64),
    "why": pl.String,
}


@dataclass(frozen=True)
class ShapeDifference:
    """One shape in both runs. `speedup` is base over candidate: above 1, the candidate is faster.

    `speedup` and `verdict` are None where the times may not be compared; `why` says why.
    """

    base: ShapeResult
    candidate: ShapeResult
    mode: str | None = None
    base_ns: float | None = None
    candidate_ns: float | None = None
    speedup: Figure | None = None
    verdict: Verdict | None = None
    why: str | None = None

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
            "contender": self.candidate.contender,
            "became": self.became,
            "verdict": self.verdict,
            "speedup": speedup and speedup.value,
            "low": speedup and speedup.low,
            "high": speedup and speedup.high,
            "mode": self.mode,
            "base_ns": self.base_ns,
            "candidate_ns": self.candidate_ns,
            "why": self.why,
        }

    def as_json(self) -> dict[str, Any]:
        return {
            "operator": self.base.operator,
            "shape": self.base.shape,
            "index": self.base.index,
            "args": self.base.args,
            "base": self.base.contender,
            "candidate": self.candidate.contender,
            "base_right": self.base.is_right,
            "candidate_right": self.candidate.is_right,
            "became": self.became,
            "mode": self.mode,
            "base_ns": self.base_ns,
            "candidate_ns": self.candidate_ns,
            "speedup": None if self.speedup is None else msgspec.to_builtins(self.speedup),
            "verdict": self.verdict,
            "why": self.why,
        }


@dataclass(frozen=True)
class Differences(Result):
    """Two runs. `incomparable`: why no times are compared, None where they are.

    `unpaired`: candidates that stand in one run alone. `only_base`, `only_candidate`: shapes of the others that do.
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
        """Whether a shape became wrong or slower; or nothing tells: no shape in both, or times not comparable."""
        if not self.shapes or (self.incomparable is not None and not self.is_functional):
            return True
        return any(each.became == "wrong" or each.verdict == "slower" for each in self.shapes)

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
            "changes": msgspec.to_builtins(self.changes),
            "unpaired": list(self.unpaired),
            "only_base": self.only_base,
            "only_candidate": self.only_candidate,
            "shapes": [each.as_json() for each in self.shapes],
        }


def find_differences(base: NamedRun, candidate: NamedRun) -> Differences:
    """Candidates of one name are compared with each other; or the only one of each run, whatever their names."""
    before, after = base[1], candidate[1]
    pairs, unpaired = _pairs(before, after)
    incomparable = _incomparable(before, after)
    shapes: list[ShapeDifference] = []
    only_base = only_candidate = 0
    for left, right in pairs:
        own = {key_of(each): each for each in before.results if each.contender == left}
        other = {key_of(each): each for each in after.results if each.contender == right}
        shapes += [_difference(each, other[key], incomparable) for key, each in own.items() if key in other]
        only_base += len(own.keys() - other.keys())
        only_candidate += len(other.keys() - own.keys())
    return Differences(
        base,
        candidate,
        tuple(find_changes(before, after)),
        tuple(shapes),
        unpaired,
        only_base,
        only_candidate,
        incomparable,
        Losses(ALL_TABLES),
    )


def _pairs(before: Run, after: Run) -> tuple[list[tuple[str, str]], tuple[str, ...]]:
    left, right = (list(dict.fromkeys(each.contender for each in run.results)) for run in (before, after))
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
    if incomparable is not None:
        return ShapeDifference(base, candidate, why=incomparable)
    if not (base.is_right and candidate.is_right):
        return ShapeDifference(base, candidate, why="only times of right answers are compared")
    found = next(_timings(base, candidate), None)
    if found is None:
        return ShapeDifference(base, candidate, why="not timed alike in both")
    before, after = found
    times = (before.mode, before.median_ns, after.median_ns)
    if before.timer != after.timer:
        return ShapeDifference(base, candidate, *times, why=f"timed by {before.timer}, then by {after.timer}")
    speedup = ratio_of(before, after)
    return ShapeDifference(base, candidate, *times, speedup, _verdict(speedup))


def _timings(base: ShapeResult, candidate: ShapeResult) -> Iterator[tuple[Timing, Timing]]:
    """Of both, cold ones first."""
    for mode in ("cold", "warm"):
        before, after = base.timing(mode), candidate.timing(mode)
        if before is not None and after is not None:
            yield before, after


def ratio_of(base: Timing, candidate: Timing) -> Figure:
    """Base over candidate of two medians that aren't paired.

    Their intervals' halves are independent, so they add up as squares, of logarithms as it is a ratio: the low end is
    ratio * exp(-sqrt(ln(base / base low)^2 + ln(candidate high / candidate)^2)), the high end likewise.
    """
    ratio = base.median_ns / candidate.median_ns
    slower = math.hypot(_log(base.median_ns, base.low_ns), _log(candidate.high_ns, candidate.median_ns))
    faster = math.hypot(_log(base.high_ns, base.median_ns), _log(candidate.median_ns, candidate.low_ns))
    return Figure(ratio, ratio * math.exp(-slower), ratio * math.exp(faster))


def _log(greater: float, less: float) -> float:
    return max(0.0, math.log(greater / less))


def _verdict(speedup: Figure) -> Verdict:
    """Same: the whole interval within SAME. Faster, slower: beyond SAME, and the interval leaves 1 out."""
    if speedup.low >= 1 / SAME and speedup.high <= SAME:
        return "same"
    if speedup.value > SAME and speedup.low > 1:
        return "faster"
    if speedup.value < 1 / SAME and speedup.high < 1:
        return "slower"
    return "unclear"
