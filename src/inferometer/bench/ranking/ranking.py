"""Candidates in order, over the results of one or several runs of the evaluator: one order per device.

A candidate whose shapes are all right comes before one with a wrong shape. Then the strict importance-weighted score
decides, or where no bounds are known, the geometric mean of the speedup over a base that both were timed against.
Only shapes that all candidates of a device ran count. Leaves out results that a newer run of the same has again.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import msgspec
import polars as pl

from inferometer.analyses.result import Result
from inferometer.bench.ranking.changes import SMALLEST
from inferometer.bench.ranking.differences import Differences, find_differences
from inferometer.bench.ranking.given_weights import GivenWeights, only_given
from inferometer.bench.ranking.score import Score, score
from inferometer.bench.ranking.shape_figures import FUNCTIONAL_ONLY, Figure, key_of, sol_fraction, why_no_fraction
from inferometer.bench.ranking.standing import Group, NamedRun, Standing, Superseded, check_run, common_keys, group_runs
from inferometer.bench.results import Run, ShapeResult
from inferometer.errors import UnknownName
from inferometer.operators.operator import Operator
from inferometer.trace.losses import Losses
from inferometer.trace.tables import ALL_TABLES

OWN = 0.5
"""A candidate whose file defines less than this share of its device time is a library in a wrapper."""

_SCHEMA = {
    "device": pl.String,
    "rank": pl.Int64,
    "is_tied": pl.Boolean,
    "contender": pl.String,
    "right": pl.Int64,
    "asked": pl.Int64,
    **dict.fromkeys(("score", "score_low", "score_high"), pl.Float64),
    **dict.fromkeys(("speedup", "speedup_low", "speedup_high"), pl.Float64),
    "own": pl.Float64,
}

By = Literal["score", "speedup", "nothing"]
_FIGURE: Mapping[By, Callable[[Score], Figure | None]] = {
    "score": lambda found: found.strict.median,
    "speedup": lambda found: found.speedup,
    "nothing": lambda found: None,
}


@dataclass(frozen=True)
class Ranked:
    """A candidate on one device.

    `score` is over the shapes that count, `standing.results` are all that it ran. `rank` is None where that is unknown.
    `own`: share of its device time in kernels that its file defines, None where that is unknown.
    """

    standing: Standing
    score: Score
    own: float | None
    rank: int | None = None
    is_tied: bool = False

    @property
    def name(self) -> str:
        """The candidate's."""
        return self.standing.name

    @property
    def is_library(self) -> bool:
        """Whether most of its time is in kernels of others."""
        return self.own is not None and self.own < OWN

    @property
    def concerns(self) -> Counter[str]:
        """What makes its times doubtful, with the number of its shapes."""
        return Counter(words for each in self.standing.results for words in dict.fromkeys(each.concerns))

    def as_row(self, device: str) -> dict[str, Any]:
        """Its figures, each with its interval."""
        figures = {"score": self.score.strict.median, "speedup": self.score.speedup}
        ends = [(name, figure) for name, figure in figures.items() if figure is not None]
        return {
            "device": device,
            "rank": self.rank,
            "is_tied": self.is_tied,
            "contender": self.name,
            "right": self.score.right,
            "asked": self.score.asked,
            **{name: figure.value for name, figure in ends},
            **{f"{name}_low": figure.low for name, figure in ends},
            **{f"{name}_high": figure.high for name, figure in ends},
            "own": self.own,
        }

    def as_json(self, *, functional_only: bool) -> dict[str, Any]:
        """With every shape."""
        return {
            "rank": self.rank,
            "tied": self.is_tied,
            "contender": self.name,
            "about": msgspec.to_builtins(self.standing.about),
            "right": self.score.is_right,
            "own_share": self.own,
            "library": self.is_library,
            "runs": [name for name, _ in self.standing.runs],
            "score": msgspec.to_builtins(self.score),
            "shapes": [_shape_as_json(each, functional_only=functional_only) for each in self.standing.results],
        }


@dataclass(frozen=True)
class DeviceRanking:
    """The candidates of one device, the best first.

    `by`: what decides. `shapes`: how many count, that all ran; `left_out`: how many only some ran. `base`: the
    candidate that speedups are over.
    """

    device: str
    functional_only: bool
    by: By
    base: str | None
    shapes: int
    left_out: int
    candidates: tuple[Ranked, ...]
    superseded: tuple[Superseded, ...]
    given: GivenWeights | None = None

    @property
    def title(self) -> str:
        """The device, and whether it only shows that kernels run."""
        return f"{self.device} ({FUNCTIONAL_ONLY})" if self.functional_only else self.device

    def results(self) -> Iterator[ShapeResult]:
        """All, by candidate."""
        return (each for one in self.candidates for each in one.standing.results)

    @cached_property
    def operators(self) -> list[tuple[str, list[tuple[str, Score]]]]:
        """By operator, the most important first: the candidates that ran it, over the shapes that all of those ran."""
        by_operator: dict[str, list[Standing]] = defaultdict(list)
        for one in self.candidates:
            own: dict[str, list[ShapeResult]] = defaultdict(list)
            for each in one.standing.results:
                own[each.operator].append(each)
            for name, results in own.items():
                by_operator[name].append(replace(one.standing, results=tuple(results)))
        known = _catalogue()
        order = {name: i for i, name in enumerate(known if self.given is None else self.given.weights)}
        names = sorted(by_operator, key=lambda name: order.get(name, len(order)))
        return [(name, [*self._over_common(by_operator[name], known)]) for name in names]

    def as_json(self) -> dict[str, Any]:
        """With every candidate."""
        return {
            "device": self.device,
            "functional_only": self.functional_only,
            "by": self.by,
            "base": self.base,
            "shapes": self.shapes,
            "shapes_left_out": self.left_out,
            "superseded": msgspec.to_builtins(self.superseded),
            "contenders": [each.as_json(functional_only=self.functional_only) for each in self.candidates],
        }

    def _over_common(
        self, candidates: Sequence[Standing], known: Mapping[str, Operator]
    ) -> Iterator[tuple[str, Score]]:
        common, _ = common_keys(candidates)
        for one in candidates:
            own = [each for each in one.results if key_of(each) in common]
            weights = None if self.given is None else self.given.weights
            yield one.name, score(own, known, base=self.base, functional_only=self.functional_only, given=weights)


@dataclass(frozen=True)
class Ranking(Result):
    """One order per device, functional runs last; `differences` where exactly two runs were given."""

    view: ClassVar[str] = "ranking.ranking"
    devices: tuple[DeviceRanking, ...]
    runs: tuple[NamedRun, ...]
    losses: Losses
    differences: Differences | None = None
    given: GivenWeights | None = None

    def to_polars(self) -> pl.DataFrame:
        """One row per candidate and device, in order."""
        return pl.DataFrame([each.as_row(device) for device, each in self._candidates()], schema=_SCHEMA, orient="row")

    def as_json(self) -> dict[str, Any]:
        """Every result with what it comes to. Runs without their results, which stand at their candidates."""
        return {
            "weighed_by": None if self.given is None else self.given.source,
            "runs": [_run_as_json(name, run) for name, run in self.runs],
            "devices": [each.as_json() for each in self.devices],
            "differences": None if self.differences is None else self.differences.as_json(),
        }

    def _candidates(self) -> Iterator[tuple[str, Ranked]]:
        return ((device.device, each) for device in self.devices for each in device.candidates)


def rank_runs(
    runs: Sequence[NamedRun],
    *,
    base: str | None = None,
    smallest: float = SMALLEST,
    given: GivenWeights | None = None,
) -> Ranking:
    """The candidates of all runs in order, on each device apart.

    A candidate's results of an operator are those of its newest timed run; older ones are listed. Two figures whose
    intervals share a point are a tie. Results of shapes that not all candidates of a device ran don't count for the
    order; where no shape is common to all, there is none.

    Args:
        runs: Each with the name of its file.
        base: The candidate that speedups are over. None: on each device the one that most shapes were timed against.
        smallest: Of two runs, the smallest change of a time that counts, as a share.
        given: Weights in place of the published importance; only results of its shapes count.

    Raises:
        FormatError: A run holds what can't be.
        InputError: A run has none of the shapes `given`.
        UnknownName: Nothing was timed against `base`.
    """
    named = _distinct(runs)
    for name, run in named:
        check_run(name, run)
    if given is not None:
        named = only_given(named, given)
    groups = group_runs(named)
    if base is not None:
        _require_base(base, groups)
    devices = tuple(_rank(group, base, given) for group in groups)
    differences = find_differences(*named, smallest=smallest) if len(named) == 2 else None
    return Ranking(devices, tuple(named), Losses(ALL_TABLES), differences, given)


def _run_as_json(name: str, run: Run) -> dict[str, Any]:
    return {"name": name, **{key: value for key, value in msgspec.to_builtins(run).items() if key != "results"}}


def _shape_as_json(result: ShapeResult, *, functional_only: bool) -> dict[str, Any]:
    fraction = None if functional_only else sol_fraction(result)
    return {
        **msgspec.to_builtins(result),
        "right": result.is_right,
        "sol_fraction": None if fraction is None else fraction.value,
        "no_sol_fraction": why_no_fraction(result, functional_only=functional_only),
    }


def _catalogue() -> dict[str, Operator]:
    from inferometer.operators import operators

    return operators()


def _distinct(runs: Sequence[NamedRun]) -> list[NamedRun]:
    seen: Counter[str] = Counter()
    named = []
    for name, run in runs:
        seen[name] += 1
        named.append((name if seen[name] == 1 else f"{name} ({seen[name]})", run))
    return named


def _require_base(base: str, groups: Sequence[Group]) -> None:
    known = {each for group in groups for each in _bases(group)}
    if base not in known:
        raise UnknownName("base", base, known)


def _bases(group: Group) -> Counter[str]:
    """Who was timed against, with the number of results."""
    return Counter(
        each.base for one in group.candidates for result in one.results for each in result.versus if each.mode == "cold"
    )


def _rank(group: Group, base: str | None, given: GivenWeights | None) -> DeviceRanking:
    bases = Counter[str]() if group.functional_only else _bases(group)
    if base is None:
        base = max(bases, key=lambda name: (bases[name], name), default=None)
    elif base not in bases:
        base = None
    common, left_out = common_keys(group.candidates)
    weights = None if given is None else given.weights
    scored = [
        _scored(one, common, base, functional_only=group.functional_only, given=weights) for one in group.candidates
    ]
    by = _what_decides(scored) if common else "nothing"
    return DeviceRanking(
        group.device,
        group.functional_only,
        by,
        base,
        len(common),
        left_out,
        tuple(_in_order(scored, by)),
        group.superseded,
        given,
    )


def _scored(
    one: Standing,
    common: frozenset[Any],
    base: str | None,
    *,
    functional_only: bool,
    given: Mapping[str, float] | None,
) -> Ranked:
    counted = [each for each in one.results if not common or key_of(each) in common]
    found = score(counted, _catalogue(), base=base, functional_only=functional_only, given=given)
    return Ranked(one, found, _own_share(one.results))


def _own_share(results: Sequence[ShapeResult]) -> float | None:
    """Of device time: shapes weigh as long as a call takes."""
    known = [
        (timing.median_ns, each.attribution.own)
        for each in results
        if (timing := each.timing("cold")) is not None
        and each.attribution is not None
        and each.attribution.of == "device"
        and each.attribution.own is not None
    ]
    total = sum(ns for ns, _ in known)
    return sum(ns * own for ns, own in known) / total if total else None


def _what_decides(scored: Sequence[Ranked]) -> By:
    ways: tuple[By, ...] = ("score", "speedup")
    return next((by for by in ways if any(_FIGURE[by](each.score) for each in scored)), "nothing")


def _in_order(scored: Sequence[Ranked], by: By) -> Iterator[Ranked]:
    """With ranks: 1, 2, 2, 4. A figure ties with the first of its rank; whoever has none comes last, without one."""
    figure = _FIGURE[by]

    def order(each: Ranked) -> tuple[bool, bool, int, float, str]:
        found = figure(each.score)
        wrong = each.score.asked - each.score.right
        counted = 0 if by == "score" else wrong  # a score has them as 0 already
        return found is None, wrong > 0, counted, -found.value if found else 0.0, each.name

    ordered = sorted(scored, key=order)
    ranks = _ranks([(figure(each.score), order(each)[1:3]) for each in ordered])
    counts = Counter(ranks)
    for each, rank in zip(ordered, ranks, strict=True):
        yield replace(each, rank=rank, is_tied=rank is not None and counts[rank] > 1)


def _ranks(figures: Sequence[tuple[Figure | None, object]]) -> list[int | None]:
    ranks: list[int | None] = []
    first, first_class, rank = None, None, 0
    for place, (figure, right) in enumerate(figures, start=1):
        if figure is None:
            ranks.append(None)
            continue
        if first is None or right != first_class or not figure.overlaps(first):
            first, first_class, rank = figure, right, place
        ranks.append(rank)
    return ranks
