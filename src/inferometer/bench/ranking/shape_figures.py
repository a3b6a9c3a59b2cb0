"""What one shape comes to: its bound and S, its speedup over a base, and why a figure is missing.

Times are of cold caches, ns of one call. Nothing is reported of a shape that is wrong.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from inferometer.bench.results import Bound, Mode, ShapeResult, Versus

LAUNCH_AS_BOUND = "no bound (older file)"
"""In place of S where an older version put what a launch takes in the place of a bound."""
FUNCTIONAL_ONLY = "functional only"


@dataclass(frozen=True)
class Figure:
    """A number with the interval that it lies in."""

    value: float
    low: float
    high: float

    def overlaps(self, other: "Figure") -> bool:
        """Whether the intervals share a point: then nothing tells which of the two is greater."""
        return self.low <= other.high and other.low <= self.high


def each_end(figures: Sequence[Figure], of: Callable[[Sequence[float]], float]) -> Figure:
    """`of` all values, of all lows and of all highs, where it grows with each of them."""
    return Figure(
        of([each.value for each in figures]),
        of([each.low for each in figures]),
        of([each.high for each in figures]),
    )


def has_time(result: ShapeResult) -> bool:
    """Whether it was timed with cold caches."""
    return result.timing("cold") is not None


def has_launch_as_bound(result: ShapeResult) -> bool:
    """Whether what stands for its bound is what a launch takes, as older versions had it: no bound at all."""
    return result.bound is not None and result.bound.binding == "launch"


def bound_of(result: ShapeResult) -> Bound | None:
    """Its bound, where one is known."""
    return None if has_launch_as_bound(result) else result.bound


def is_below_launch(result: ShapeResult) -> bool:
    """Whether its bound is below what a launch takes on the device: its time may be mostly the launch."""
    bound = bound_of(result)
    return bound is not None and bound.launch_ns is not None and bound.bound_ns < bound.launch_ns


def sol_fraction(result: ShapeResult) -> Figure | None:
    """S: bound over median time; None of a wrong or untimed shape, and without a bound."""
    timing, bound = result.timing("cold"), bound_of(result)
    if timing is None or bound is None or not result.is_right:
        return None
    return Figure(*(bound.bound_ns / ns for ns in (timing.median_ns, timing.high_ns, timing.low_ns)))


def versus(result: ShapeResult, base: str | None, mode: Mode = "cold") -> Versus | None:
    """Its comparison with this base, with cold caches if not said; None of a wrong shape, or where none was made."""
    if base is None or not result.is_right:
        return None
    return next((each for each in result.versus if each.base == base and each.mode == mode), None)


def speedup_over(result: ShapeResult, base: str | None) -> Figure | None:
    """Base time over own time; 1 of the base itself."""
    if base is not None and result.candidate == base:
        return Figure(1.0, 1.0, 1.0) if result.is_right and has_time(result) else None
    found = versus(result, base)
    return None if found is None else Figure(found.speedup, found.low, found.high)


def summed_times(results: Sequence[ShapeResult]) -> Figure:
    """Cold times of the timed ones, added up."""
    timings = [timing for each in results if (timing := each.timing("cold")) is not None]
    return Figure(
        math.fsum(timing.median_ns for timing in timings),
        math.fsum(timing.low_ns for timing in timings),
        math.fsum(timing.high_ns for timing in timings),
    )


def why_no_fraction(result: ShapeResult, *, functional_only: bool = False) -> str | None:
    """Why there is no S; None where there is one."""
    if not result.is_right:
        return "wrong"
    if functional_only:
        return FUNCTIONAL_ONLY
    if not has_time(result):
        return "not timed"
    if has_launch_as_bound(result):
        return LAUNCH_AS_BOUND
    return "no bound" if result.bound is None else None


Key = tuple[str, int | None, bytes]


def key_of(result: ShapeResult) -> Key:
    """What makes two results be of the same call: the operator, the published index, and all arguments."""
    return result.operator, result.index, canonical_args(result.args)


def canonical_args(args: Mapping[str, Any]) -> bytes:
    """The same for equal arguments."""
    return msgspec.json.encode(args, order="deterministic")
