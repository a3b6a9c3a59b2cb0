"""S of several shapes as one number: over the right ones, and with 0 for those that failed.

`score` defines each way in a formula, and puts operators together.
"""

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from inferometer.bench.ranking.shape_figures import (
    Figure,
    bound_of,
    each_end,
    has_launch_as_bound,
    has_time,
    sol_fraction,
    summed_times,
)
from inferometer.bench.results import ShapeResult


@dataclass(frozen=True)
class Aggregates:
    """S of several shapes as one number, four ways; None where no shape has an S, or the way has no meaning."""

    median: Figure | None = None
    geometric_mean: Figure | None = None
    mean: Figure | None = None
    time_weighted: Figure | None = None


WAYS = ("median", "geometric_mean", "mean", "time_weighted")
"""The fields of `Aggregates`."""


def over_right(results: Sequence[ShapeResult]) -> Aggregates:
    """Aggregates over the shapes that have an S."""
    fractions = [*_fractions(results)]
    if not fractions:
        return Aggregates()
    return Aggregates(
        each_end(fractions, statistics.median),
        each_end(fractions, geometric_mean),
        each_end(fractions, _mean),
        time_weighted(results),
    )


def strict(results: Sequence[ShapeResult]) -> Aggregates:
    """With 0 for each shape that is wrong or has no time; shapes of older files that can have no S are left out."""
    failed = sum(not has_launch_as_bound(each) and not (each.is_right and has_time(each)) for each in results)
    fractions = [*_fractions(results), *([Figure(0.0, 0.0, 0.0)] * failed)]
    if not fractions:
        return Aggregates()
    return Aggregates(median=each_end(fractions, statistics.median), mean=each_end(fractions, _mean))


def time_weighted(results: Sequence[ShapeResult]) -> Figure | None:
    """Sum of bounds over sum of times, of the shapes that have an S."""
    counted = [each for each in results if sol_fraction(each) is not None]
    if not counted:
        return None
    bounds = sum(bound.bound_ns for each in counted if (bound := bound_of(each)) is not None)
    times = summed_times(counted)
    return Figure(bounds / times.value, bounds / times.high, bounds / times.low)


def geometric_mean(values: Sequence[float]) -> float:
    """The geometric mean of numbers above 0."""
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def _fractions(results: Sequence[ShapeResult]) -> Iterator[Figure]:
    return (found for each in results if (found := sol_fraction(each)) is not None)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
