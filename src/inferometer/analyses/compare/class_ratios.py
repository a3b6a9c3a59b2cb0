"""Which class of functions slowed: the ratio of the duration of one call, whatever a cycle is.

Over the functions that both runs have, weighted by the time each took in the base: the geometric mean of the ratios of
the mean time of a call. Collectives count with the least time of any rank, since waiting for a slow rank is no fault
of theirs.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from inferometer.analyses.compare.contributions import Side
from inferometer.analyses.compare.matches import Match
from inferometer.analyses.compare.sampling_units import Values
from inferometer.analyses.compare.significance import interval
from inferometer.analyses.comparison_limits import MIN_CHANGE, MIN_SHARE

_TINY = 1e-9


class ClassRatio(msgspec.Struct, frozen=True):
    """Duration of a call, candidate over base, of the functions of one class; above 1 the candidate's calls are longer.

    `interval` is None where the spread is unknown. `share` of the base's step; `functions` that both runs have.
    """

    cls: str
    ratio: float
    interval: tuple[float, float] | None
    functions: int
    share: float

    @property
    def is_slower(self) -> bool:
        """Whether it slowed beyond noise."""
        return self.interval is not None and self.interval[0] > 1 + MIN_CHANGE and self.share >= MIN_SHARE

    def as_json(self) -> dict[str, Any]:
        return {
            "class": self.cls,
            "ratio": self.ratio,
            "interval": None if self.interval is None else list(self.interval),
            "functions": self.functions,
            "share": self.share,
        }


class Domain(msgspec.Struct, frozen=True):
    """`cls` is the class that slowed most beyond noise; None where none did. `classes`: all, the most slowed first."""

    cls: str | None
    classes: tuple[ClassRatio, ...]


def find_domain(base: Side, candidate: Side, matches: Sequence[Match], step_ns: int) -> Domain:
    """The class of functions whose calls slowed most.

    Args:
        base: The run.
        candidate: The other.
        matches: Functions of both; those that are one to one count.
        step_ns: The base's step, for shares.
    """
    pairs: dict[str, list[tuple[int, int]]] = {}
    for match in matches:
        if match.kind in ("same", "renamed") and len(match.base) == len(match.candidate) == 1:
            left, right = base.at(match.base), candidate.at(match.candidate)
            if left and right:
                pairs.setdefault(match.base[0][1], []).append((left[0], right[0]))
    found = [ratio for cls, rows in pairs.items() if (ratio := _ratio(base, candidate, cls, rows, step_ns))]
    ordered = tuple(sorted(found, key=lambda one: (-one.ratio, one.cls)))
    return Domain(next((one.cls for one in ordered if one.is_slower), None), ordered)


def _ratio(base: Side, candidate: Side, cls: str, rows: list[tuple[int, int]], step_ns: int) -> ClassRatio | None:
    left, right = (np.array(side) for side in zip(*rows, strict=True))
    before, after = _per_call(base, left), _per_call(candidate, right)
    usable = (before.mean > 0) & (after.mean > 0)
    weights = base.dur[left] * usable
    if not weights.sum():
        return None
    weights = weights / weights.sum()
    logs = _log(after.mean) - _log(before.mean)
    draws = logs[:, None] + after.off - before.off
    spread_known = np.isfinite(draws).all(axis=1) & usable
    between = None
    if weights[spread_known].sum() > 1 - MIN_CHANGE:  # what was seen once adds its ratio without a spread
        drawn = np.where(spread_known[:, None], draws, logs[:, None])[usable]
        between = interval(np.exp(weights[usable] @ drawn))
    ratio = float(np.exp(weights[usable] @ logs[usable]))
    share = float(base.dur[left].sum() / step_ns) if step_ns > 0 else 0.0
    return ClassRatio(cls, ratio, between, int(usable.sum()), share)


class _PerCall(msgspec.Struct, frozen=True):
    """Mean time of a call by row, and how far the logarithms of its samples are off that of the mean."""

    mean: Values
    off: Values


def _per_call(side: Side, rows: NDArray[np.int64]) -> _PerCall:
    known = np.isfinite(side.cost[rows])
    mean = np.where(known, side.cost[rows], side.dur[rows])[:, None]
    draws = np.where(known[:, None], side.cost_draws[rows], side.dur_draws[rows])
    calls = np.maximum(side.calls[rows], _TINY)[:, None]
    wide = np.nan_to_num(side.units.widened[rows], nan=1.0)[:, None]  # widened as logarithms: times stay above 0
    drawn_calls = np.where(np.isfinite(side.calls_draws[rows]), side.calls_draws[rows], calls)
    drawn, drawn_calls = mean + (draws - mean) / wide, calls + (drawn_calls - calls) / wide
    off = (_log(drawn) - _log(drawn_calls) - _log(mean) + _log(calls)) * wide
    return _PerCall((mean / calls)[:, 0], off)


def _log(values: Values) -> Values:
    return np.asarray(np.log(np.maximum(values, _TINY)))
