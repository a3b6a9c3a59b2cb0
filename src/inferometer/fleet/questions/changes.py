"""What changed over an engine's versions: at which of them the median step of like traces became another.

A series is what is alike (`alike`) with two versions or more, in the order of their numbers. Where it may have changed
is between two versions. For each such place the rank-sum statistic of Mann and Whitney compares the steps before with
those after, standardised with its exact mean and variance (ties as midranks); the place with the largest one is
judged. Its p-value is the share of permutations of the steps among the versions whose own largest statistic is no
smaller, the permutation at hand among them: so all places count as one question, and no distribution is assumed. There
is a change where it is within the series' level: 5 %, shared by all series (Bonferroni). Then both sides are looked at
again in the same way (binary segmentation), each at half of that level. So the chance of any change that is none, over
the whole fleet, is 5 % at most, where traces of a version are as independent as those of another: whatever changes
there are, the parts between them share one level. There are 1,999 permutations, or 400 for each series, 9,999 at most:
then p-values are 0.0001 at least, so among more than 500 series no change can be found: ask of fewer.

The ratio is that of the medians of the two parts that meet there, its interval a bootstrap of 95 %. Fewer than four
traces on a side say nothing: of 3 and 3 the best p-value is 0.1.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from inferometer.analyses.compare.causes.resampling import median_ratio_interval
from inferometer.analyses.comparison_limits import ALPHA, SEED
from inferometer.analyses.result import Result
from inferometer.fleet.opening import Fleet
from inferometer.fleet.questions.alike import ALIKE, KIND, median_steps
from inferometer.trace.losses import Losses

Values = NDArray[np.float64]
LEAST: Final = 4
_TWO: Final = 2
MOST: Final = 500
"""Series: of more, no p-value of so many permutations is within its level."""
_FEWEST, _EACH, _MOST = 1_999, 400, 9_999  # permutations: at least, for each series, at most
_CELLS: Final = 1 << 17  # steps that are permuted at a time
_SCHEMA: Final = {
    **dict.fromkeys((*KIND, "before", "after"), pl.String),
    **dict.fromkeys(("traces_before", "traces_after"), pl.Int64),
    **dict.fromkeys(("before_ns", "after_ns", "ratio", "low", "high", "p_value"), pl.Float64),
}


@dataclass(frozen=True)
class FleetChanges(Result):
    """`frame`: a row for each change, the largest first.

    `before` and `after` are the versions between which it lies; `before_ns` and `after_ns` the median steps of the
    parts that meet there, `ratio` the one over the other (above 1: slower since), `low` and `high` its interval.
    `p_value` is that of the series' best place. `series` were judged; `short` have too few traces for it.
    """

    view: ClassVar[str] = "fleet.changes"
    source: str
    frame: pl.DataFrame
    series: int
    short: int
    losses: Losses

    def to_polars(self) -> pl.DataFrame:
        """One row for each change."""
        return self.frame

    def as_json(self) -> dict[str, Any]:
        """All of it."""
        return {
            "source": self.source,
            "series": self.series,
            "short": self.short,
            "rows": self.frame.to_dicts(),
            "losses": self.losses.as_dict(),
        }


@dataclass(frozen=True)
class _Series:
    """Steps of like traces in the order of their versions. `starts`: where each version but the first begins."""

    steps: Values
    versions: Sequence[str]
    starts: NDArray[np.int64]

    @property
    def places(self) -> NDArray[np.int64]:
        """Where a change may be: with enough traces on both sides."""
        return self.starts[(self.starts >= LEAST) & (len(self.steps) - self.starts >= LEAST)]

    def part(self, start: int, end: int) -> "_Series":
        """The traces from `start` on, before `end`."""
        inside = self.starts[(self.starts > start) & (self.starts < end)] - start
        return _Series(self.steps[start:end], self.versions[start:end], inside)


def fleet_changes(fleet: Fleet) -> FleetChanges:
    """Changes of the median step between versions."""
    known = median_steps(fleet).filter(pl.col("version").is_not_null())
    judged: list[tuple[dict[str, Any], _Series]] = []
    short = 0
    for key, steps in known.group_by(ALIKE, maintain_order=True):
        if steps["version"].n_unique() < _TWO:
            continue
        series = series_of(steps["version"].to_list(), steps["step_ns"].to_numpy())
        if len(series.places):
            judged.append((dict(zip(KIND, key[: len(KIND)], strict=True)), series))
        else:
            short += 1
    level = ALPHA / max(1, len(judged))
    draws = min(_MOST, max(_FEWEST, _EACH * len(judged)))
    rows = [{**kind, **row} for kind, series in judged for row in _changes(series, level, draws)]
    frame = pl.DataFrame(rows, schema=_SCHEMA, orient="row")
    ordered = frame.sort(pl.col("ratio").log().abs(), *KIND, descending=[True, *[False] * len(KIND)], nulls_last=True)
    return FleetChanges(fleet.source, ordered, len(judged), short, fleet.losses())


def series_of(versions: Sequence[str], steps: Values) -> _Series:
    """Steps in the order of their versions, whose numbers count as such: 0.9 comes before 0.10."""
    order = sorted(range(len(versions)), key=lambda i: (_order(versions[i]), i))
    named = [versions[i] for i in order]
    starts = [i for i in range(1, len(named)) if named[i] != named[i - 1]]
    return _Series(np.asarray(steps, dtype=np.float64)[order], named, np.asarray(starts, dtype=np.int64))


def best_place(series: _Series, draws: int, level: float = 1.0) -> tuple[int, float | None]:
    """Where the steps before and after differ most, and the p-value of that by so many permutations.

    None where it is above `level`: no more are drawn once that is certain, which most often is soon.
    """
    ranks = _midranks(series.steps)
    own = _statistics(ranks[None, :], series.places)[0]
    place = int(series.places[int(own.argmax())])
    draw = np.random.default_rng(SEED)
    as_large = drawn = 0
    while drawn < draws:
        count = min(draws - drawn, max(1, _CELLS // len(ranks)))
        shuffled = draw.permuted(np.broadcast_to(ranks, (count, len(ranks))), axis=1)
        as_large += int(np.count_nonzero(_statistics(shuffled, series.places).max(axis=1) >= own.max() - 1e-9))
        drawn += count
        if 1 + as_large > level * (1 + draws):
            return place, None
    return place, (1 + as_large) / (1 + draws)


def _statistics(ranks: Values, places: NDArray[np.int64]) -> Values:
    """The standardised rank sum before each place, without its sign. Shapes (m, n) and (k,), to (m, k)."""
    n = ranks.shape[1]
    before = np.cumsum(ranks, axis=1)[:, places - 1]
    variance = places * (n - places) / n * ranks[0].var(ddof=1)
    spread = np.sqrt(np.where(variance > 0, variance, np.inf))  # all equal: no difference
    return np.asarray(np.abs(before - places * (n + 1) / 2) / spread)


def _midranks(values: Values) -> Values:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[place], dtype=np.float64)


def _changes(series: _Series, level: float, draws: int) -> Iterator[dict[str, Any]]:
    """The changes of a series, in order."""
    place, p_value = best_place(series, draws, level)
    places = [] if p_value is None else changed_places(series, place, level, draws)
    ends = [0, *places, len(series.steps)]
    for start, at, end in zip(ends, places, ends[2:], strict=False):
        before, after = series.steps[start:at], series.steps[at:end]
        low, high = median_ratio_interval(before, after) or (None, None)
        middle = float(np.median(before)), float(np.median(after))
        yield {
            "before": series.versions[at - 1],
            "after": series.versions[at],
            "traces_before": len(before),
            "traces_after": len(after),
            "before_ns": middle[0],
            "after_ns": middle[1],
            "ratio": middle[1] / middle[0],
            "low": low,
            "high": high,
            "p_value": p_value,
        }


def changed_places(series: _Series, place: int, level: float, draws: int) -> list[int]:
    """`place`, where there is a change, and those of the parts at its sides, which share `level`."""
    found = [place]
    for start, end in ((0, place), (place, len(series.steps))):
        part = series.part(start, end)
        if not len(part.places):
            continue
        at, p_value = best_place(part, draws, level / 2)
        if p_value is not None:
            found += [start + each for each in changed_places(part, at, level / 2, draws)]
    return sorted(found)


def _order(version: str) -> list[tuple[int, int, str]]:
    """Numbers by their size, and before texts."""
    parts = re.findall(r"\d+|[^\d.]+", version)
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts]
