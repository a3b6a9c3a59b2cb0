"""How good one candidate is over all shapes that were asked for: several aggregates, each with its definition.

Source of the aggregates: Atrex-Bench's page describes an importance-weighted S, and has no code for it; KernelBench's
`fast_p`. Only `score` adds up; what a shape comes to by itself stands in `shape_figures.py`. Leaves out warm caches.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from inferometer.bench.ranking.aggregates import WAYS, Aggregates, geometric_mean, over_right, strict, time_weighted
from inferometer.bench.ranking.shape_figures import (
    Figure,
    bound_of,
    each_end,
    has_time,
    is_below_launch,
    sol_fraction,
    speedup_over,
    versus,
)
from inferometer.bench.results import ShapeResult
from inferometer.operators.operator import Operator

FAST = (1.0, 1.5, 2.0)
"""Each p of `fast_p`."""


@dataclass(frozen=True)
class OperatorScore:
    """The shapes of one operator. `importance` is as published or given, None of an operator without one."""

    operator: str
    importance: float | None
    asked: int
    right: int
    with_fraction: int
    below_launch: int
    over_right: Aggregates
    strict: Aggregates
    speedup: Figure | None


@dataclass(frozen=True)
class Score:
    """What `score` defines. Shares are of 1; `fast` is by p as text (`1`, `1.5`, `2`), None without a base.

    `below_launch`: shapes whose bound is below what a launch takes; they count as all others do.
    """

    asked: int
    right: int
    timed: int
    with_fraction: int
    above_one: int
    importance_asked: float
    importance_covered: float | None
    over_right: Aggregates
    strict: Aggregates
    pooled: Figure | None
    speedup: Figure | None
    compared: int
    fast: Mapping[str, float] | None
    below_launch: int
    operators: tuple[OperatorScore, ...] = field(default=())
    functional_only: bool = False

    @property
    def is_right(self) -> bool:
        """Whether every shape is."""
        return self.right == self.asked


def score(
    results: Sequence[ShapeResult],
    operators: Mapping[str, Operator],
    *,
    base: str | None = None,
    functional_only: bool = False,
    given: Mapping[str, float] | None = None,
) -> Score:
    """All aggregates of one candidate: no shape that was asked for is left out in silence.

    For a shape i of operator o, with bound b_i, cold median t_i, S_i = b_i / t_i where the shape is right, timed and
    has a bound. Above 1 it is counted in `above_one`, and never clipped. w_o is the published importance; as those of
    all operators add up to 1.09, weights are normalised: w_o / sum of w over the operators
    that have the figure.

    - over_right.median: sum of w_o * median of S_i (of two middles their mean) / sum of w_o
    - over_right.geometric_mean: sum of w_o * exp(mean of ln S_i) / sum of w_o
    - over_right.mean: sum of w_o * mean of S_i / sum of w_o
    - over_right.time_weighted: sum of w_o * (sum of b_i / sum of t_i) / sum of w_o
    - strict.median, strict.mean: the same, where S_i = 0 for a shape that is wrong, or right without a time. The other
      two have no strict form: a 0 makes a geometric mean 0 whatever the rest is, and a wrong shape has no time. None
      where no shape at all has a bound. Shapes of older files with a launch for a bound are in no figure of S.
    - pooled: sum of b_i / sum of t_i over all shapes with an S, without weights
    - importance_asked: sum of w_o of the operators asked for / sum of w_o of the catalogue
    - importance_covered: sum of w_o of the operators with an S / sum of w_o of the operators asked for
    - speedup: exp(mean of ln(base time / own time)) of right shapes that have it
    - fast[p]: shapes that are right, with the verdict "faster" and a speedup above p / shapes asked for
    - below_launch: shapes whose b_i is below what a launch takes on the device; no figure leaves them out

    Each figure's `low` to `high` is from every shape at the slow end of its 95 % interval to every shape at the quick
    end. An operator that the catalogue lacks has no weight, and counts in `pooled`, `speedup`, `fast` alone.

    Args:
        results: All of one candidate, each shape once.
        operators: The catalogue, for importance.
        base: The candidate that speedups are over; None: there are none.
        functional_only: It ran on a CPU: right and wrong are counted, and nothing else is reported.
        given: w_o in place of the published importance; operators without one have no weight.
    """
    published = {name: operator.catalogue().importance for name, operator in operators.items()}
    weights = published if given is None else given
    per_operator = tuple(_operators(results, weights, base, functional_only=functional_only))
    own = [] if functional_only else list(results)
    asked = [each for each in per_operator if each.importance is not None]
    covered = [each for each in asked if each.with_fraction]
    return Score(
        asked=len(results),
        right=sum(each.is_right for each in results),
        timed=sum(has_time(each) for each in own),
        with_fraction=sum(sol_fraction(each) is not None for each in own),
        above_one=sum((found := sol_fraction(each)) is not None and found.value > 1 for each in own),
        importance_asked=_weight(asked) / sum(weights.values()) if weights else 0.0,
        importance_covered=_weight(covered) / _weight(asked) if _weight(asked) else None,
        over_right=_weighted(asked, lambda each: each.over_right),
        strict=_weighted(asked, lambda each: each.strict),
        pooled=time_weighted(own),
        speedup=_mean_speedup(own, base),
        compared=len([*_speedups(own, base)]),
        fast=_fast(own, base),
        below_launch=sum(map(is_below_launch, own)),
        operators=per_operator,
        functional_only=functional_only,
    )


def _operators(
    results: Sequence[ShapeResult], weights: Mapping[str, float], base: str | None, *, functional_only: bool
) -> Iterator[OperatorScore]:
    """In the order of the catalogue, then of the results."""
    by_operator: dict[str, list[ShapeResult]] = defaultdict(list)
    for each in results:
        by_operator[each.operator].append(each)
    is_bounded = any(bound_of(each) is not None for each in results)  # else nothing tells which shapes should have an S
    order = {name: i for i, name in enumerate(weights)}
    for name in sorted(by_operator, key=lambda name: order.get(name, len(order))):
        asked = by_operator[name]
        own = [] if functional_only else asked
        yield OperatorScore(
            operator=name,
            importance=weights.get(name),
            asked=len(asked),
            right=sum(each.is_right for each in asked),
            with_fraction=sum(sol_fraction(each) is not None for each in own),
            below_launch=sum(map(is_below_launch, own)),
            over_right=over_right(own),
            strict=strict(own) if is_bounded else Aggregates(),
            speedup=_mean_speedup(own, base),
        )


def _weighted(operators: Sequence[OperatorScore], of: Callable[[OperatorScore], Aggregates]) -> Aggregates:
    return Aggregates(**{way: _weighted_mean(operators, of, way) for way in WAYS})


def _weighted_mean(
    operators: Sequence[OperatorScore], of: Callable[[OperatorScore], Aggregates], way: str
) -> Figure | None:
    known: list[tuple[float, Figure]] = [
        (each.importance, figure)
        for each in operators
        if each.importance is not None and (figure := getattr(of(each), way)) is not None
    ]
    total = sum(weight for weight, _ in known)
    if not total:
        return None
    return each_end([figure for _, figure in known], lambda values: _dot(values, known) / total)


def _dot(values: Sequence[float], known: Sequence[tuple[float, Figure]]) -> float:
    return math.fsum(weight * value for value, (weight, _) in zip(values, known, strict=True))


def _weight(operators: Sequence[OperatorScore]) -> float:
    return math.fsum(each.importance or 0.0 for each in operators)


def _speedups(results: Sequence[ShapeResult], base: str | None) -> Iterator[Figure]:
    return (found for each in results if (found := speedup_over(each, base)) is not None)


def _mean_speedup(results: Sequence[ShapeResult], base: str | None) -> Figure | None:
    found = [*_speedups(results, base)]
    return each_end(found, geometric_mean) if found else None


def _fast(results: Sequence[ShapeResult], base: str | None) -> dict[str, float] | None:
    """None without a base, and of the base itself."""
    if base is None or not results or not any(each.candidate != base for each in results):
        return None
    found = [versus(each, base) for each in results]
    quick = [each.speedup for each in found if each is not None and each.verdict == "faster"]
    return {f"{p:g}": sum(speedup > p for speedup in quick) / len(results) for p in FAST}
