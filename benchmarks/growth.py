"""How a command's cost grows with its input: exponents fitted on logarithms, and a peer's cost over ours, with spread.

`cost = a * bytes ** exponent`, fitted by least squares to the logarithms of every timed run on every size but the
start: 1 is linear. Its standard error comes from the scatter of the runs around the line; it holds noise and whatever
is no power of the size. A run that only starts costs something, too, which hides how the rest grows. So the exponent
is fitted a second time to what is above the start's cost: the median of the same command on the smallest file.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from benchmarks.cases import Case, Point
from benchmarks.processes import Measurement, Run

LIMIT: Final = 1.15
_LEAST_SIZES: Final = 3
_LEAST_RISE: Final = 1.5  # of the largest file's cost over the start's; below, there is nothing to fit above the start
_CERTAIN: Final = 2.0  # standard errors
_COSTS: Final[Mapping[str, Callable[[Run], int]]] = {
    "time": lambda run: run.wall_ns,
    "cpu": lambda run: run.cpu_ns,
    "memory": lambda run: run.peak_bytes,
}


@dataclass(frozen=True, slots=True)
class Exponent:
    """A fitted exponent with its standard error."""

    value: float
    error: float

    @property
    def above(self) -> bool:
        """Whether it is above the limit."""
        return self.value > LIMIT

    @property
    def certain(self) -> bool:
        """Whether it stays above the limit when two standard errors are taken off."""
        return self.value - _CERTAIN * self.error > LIMIT


@dataclass(frozen=True, slots=True)
class Growth:
    """One command on one kind of file.

    `whole` and `above_start` go by `time`, `cpu` and `memory`; None: it can't be known.
    """

    what: str
    kind: str
    peer: bool
    bytes: Sequence[int]
    whole: Mapping[str, Exponent | None]
    above_start: Mapping[str, Exponent | None]

    @property
    def faster_than_linear(self) -> list[str]:
        """What grows faster than the limit allows, in words."""
        found = []
        for cost in ("time", "memory"):
            both = [fit for fit in (self.whole[cost], self.above_start[cost]) if fit is not None and fit.above]
            if both:
                found.append(cost if any(fit.certain for fit in both) else f"{cost}, within its error")
        return found


@dataclass(frozen=True, slots=True)
class Ratio:
    """A peer's cost over ours on one file: of the medians, and from the least to the greatest that two runs give."""

    kind: str
    bytes: int
    peer: str
    ours: str
    time: float
    time_range: tuple[float, float]
    memory: float


def find_growths(cases: Sequence[Case], results: Mapping[str, Measurement]) -> list[Growth]:
    """Every series of the cases, in their order."""
    series: dict[tuple[str, str, bool], list[tuple[Point, Measurement]]] = defaultdict(list)
    for case in cases:
        if case.point is not None:
            series[case.point.kind, case.point.what, case.peer].append((case.point, results[case.name]))
    return [_growth(*key, points) for key, points in series.items()]


def fit_exponent(points: Sequence[tuple[float, float]]) -> Exponent | None:
    """Of costs against bytes; None for fewer than three sizes, or where a cost isn't above 0."""
    if len({size for size, _ in points}) < _LEAST_SIZES or min(cost for _, cost in points) <= 0:
        return None
    xs, ys = ([math.log(pair[i]) for pair in points] for i in (0, 1))
    middle_x, middle_y = sum(xs) / len(xs), sum(ys) / len(ys)
    spread = sum((x - middle_x) ** 2 for x in xs)
    value = sum((x - middle_x) * (y - middle_y) for x, y in zip(xs, ys, strict=True)) / spread
    rest = sum((y - middle_y - value * (x - middle_x)) ** 2 for x, y in zip(xs, ys, strict=True))
    return Exponent(value, math.sqrt(rest / (len(xs) - 2) / spread))


def find_ratios(cases: Sequence[Case], results: Mapping[str, Measurement], beside: Sequence[str]) -> list[Ratio]:
    """Each peer's cost over ours on the same file, for those of our commands that are in `beside`."""
    points = [(case, case.point) for case in cases if case.point is not None]
    return [
        _ratio(theirs, ours, results[peer.name], results[case.name])
        for peer, theirs in points
        if peer.peer
        for case, ours in points
        if not case.peer and ours.what in beside and (ours.kind, ours.bytes) == (theirs.kind, theirs.bytes)
    ]


def growth_data(growth: Growth) -> dict[str, object]:
    """For JSON."""
    fits = {"whole": growth.whole, "above_start": growth.above_start}
    return {
        "what": growth.what,
        "kind": growth.kind,
        "peer": growth.peer,
        "bytes": growth.bytes,
        **{name: {cost: fit and {"exponent": fit.value, "error": fit.error} for cost, fit in some.items()}
           for name, some in fits.items()},
        "faster_than_linear": growth.faster_than_linear,
    }  # fmt: skip


def growth_lines(growths: Sequence[Growth]) -> Iterator[str]:
    """A table: exponents of the whole process and of what is above its start."""
    yield f"| file | command | time | time above start | memory | memory above start | above {LIMIT} |"
    yield "| --- | --- | ---: | ---: | ---: | ---: | --- |"
    for growth in growths:
        fits = (some[cost] for cost in ("time", "memory") for some in (growth.whole, growth.above_start))
        shown = " | ".join(_show(fit) for fit in fits)
        flag = f"**{'; '.join(growth.faster_than_linear)}**" if growth.faster_than_linear else "no"
        yield f"| {growth.kind} | {growth.what} | {shown} | {flag if any(growth.whole.values()) else '–'} |"


def ratio_lines(ratios: Sequence[Ratio]) -> Iterator[str]:
    """A table: the peer's time and memory as multiples of ours."""
    yield "| file | MB | the peer | over ours | time (least to greatest) | peak memory |"
    yield "| --- | ---: | --- | --- | ---: | ---: |"
    for ratio in ratios:
        least, most = ratio.time_range
        times = f"{ratio.time:.1f} × ({least:.1f} to {most:.1f})"
        size = f"{ratio.bytes / 1e6:,.0f}"
        yield f"| {ratio.kind} | {size} | {ratio.peer} | {ratio.ours} | {times} | {ratio.memory:.1f} × |"


def _growth(kind: str, what: str, peer: bool, points: Sequence[tuple[Point, Measurement]]) -> Growth:
    sizes = [(point.bytes, measured) for point, measured in points if not point.start]
    start = next((measured for point, measured in points if point.start), None)
    whole, above = {}, {}
    for name, cost in _COSTS.items():
        costs = [(size, float(cost(run))) for size, measured in sizes for run in measured.runs]
        whole[name] = fit_exponent(costs)
        above[name] = None if start is None else _fit_above(costs, median(cost(run) for run in start.runs))
    return Growth(what, kind, peer, sorted(size for size, _ in sizes), whole, above)


def _fit_above(costs: Sequence[tuple[int, float]], start: float) -> Exponent | None:
    """Without sizes on which a run costs no more than starting does: they say nothing of growth."""
    largest = [cost for size, cost in costs if size == max(size for size, _ in costs)]
    if median(largest) < _LEAST_RISE * start:
        return None
    lost = {size for size, cost in costs if cost <= start}
    return fit_exponent([(size, cost - start) for size, cost in costs if size not in lost])


def _ratio(theirs: Point, ours: Point, their: Measurement, our: Measurement) -> Ratio:
    (their_least, their_most), (our_least, our_most) = their.wall_range_ns, our.wall_range_ns
    return Ratio(
        kind=theirs.kind,
        bytes=theirs.bytes,
        peer=theirs.what,
        ours=ours.what,
        time=their.wall_ns / our.wall_ns,
        time_range=(their_least / our_most, their_most / our_least),
        memory=their.peak_bytes / our.peak_bytes,
    )


def _show(fit: Exponent | None) -> str:
    return "–" if fit is None else f"{fit.value:.2f} ± {fit.error:.2f}"
