"""Series of two runs at the finest granularity that both have, each GPU by its role.

A run may have a metric of each GPU, another only samples of all GPUs together. A program may use another GPU than
before: the k-th that it uses is matched with the k-th, whatever their numbers. A clock in kHz of one run is recognised
by its size next to that of the other, in MHz.
"""

import re
from collections.abc import Sequence

import msgspec
import numpy as np
from msgspec.structs import replace

from inferometer.analyses.compare.activity.activity import HOST, Activity
from inferometer.analyses.compare.causes.counters import BY_CYCLE, OWN, POOLED, Entity

_NUMBER = re.compile(r"\d+")
_CLOCK = re.compile(r"frequency|clock")
_LEAST_RATIO, _MOST_RATIO = 100, 10_000  # of kHz to MHz: no clock falls to a tenth of what it was, or rises tenfold
Pairs = Sequence[tuple[str, str]]


class MatchedSeries(msgspec.Struct, frozen=True):
    """Series of both runs; equal keys are the same thing, named as in the candidate.

    `renumbered`: GPUs of base and candidate that are matched though they have other names. `rescaled`: clocks of one
    run that were divided by 1,000, and of which run, "base" or "candidate".
    """

    base: tuple[Entity, ...]
    candidate: tuple[Entity, ...]
    renumbered: tuple[tuple[str, str], ...] = ()
    rescaled: tuple[tuple[str, str], ...] = ()

    def not_judged(self) -> list[str]:
        """Classes of causes that only samples of all GPUs together show, in both runs."""
        both = {one.key for one in self.base} & {one.key for one in self.candidate}
        pooled = [one.role.cause_class for one in self.base if one.device == POOLED and one.key in both]
        judged = {one.role.cause_class for one in self.base if one.device != POOLED and one.key in both}
        return [cls for cls in dict.fromkeys(pooled) if cls and cls not in judged]


def own_gpus(activity: Activity) -> tuple[str, ...]:
    """The devices that a run's functions used, by rank, process and number."""
    used = activity.functions.select("rank", "process", "device").drop_nulls("device").unique()
    rows = [row for row in used.iter_rows() if row[2] != HOST]
    return tuple(dict.fromkeys(device for _, _, device in sorted(rows, key=_place)))


def match_series(
    base: Sequence[Entity], candidate: Sequence[Entity], own: tuple[Sequence[str], Sequence[str]]
) -> MatchedSeries:
    """Series of two runs that may be compared; what one run alone has stays under its own key.

    Args:
        base: All series of the run.
        candidate: Those of the other.
        own: The GPUs that the programs used, in the order of their roles; empty where not known.
    """
    pairs = _pairs(base, candidate, own)
    found: tuple[list[Entity], list[Entity]] = ([], [])
    for metric in sorted({one.metric for one in (*base, *candidate)}):
        sides = [{one.device: one for one in run if one.metric == metric} for run in (base, candidate)]
        for side, some in zip(found, _of_metric(sides, pairs, own), strict=True):
            side.extend(some)
    renumbered = tuple((one, two) for one, two in pairs if one != two)
    other = [{one.key: one for one in run} for run in reversed(found)]
    scaled = [[_in_mhz(one, of.get(one.key)) for one in run] for run, of in zip(found, other, strict=True)]
    rescaled = [
        (one.metric, side)
        for side, before, after in zip(("base", "candidate"), found, scaled, strict=True)
        for one, new in zip(before, after, strict=True)
        if new is not one
    ]
    return MatchedSeries(tuple(scaled[0]), tuple(scaled[1]), renumbered, tuple(dict.fromkeys(rescaled)))


def _in_mhz(one: Entity, other: Entity | None) -> Entity:
    """A clock as it is, or in MHz where its values are some 1,000 times those of the other run."""
    if other is None or one.role.severity != "drop" or not _CLOCK.search(one.metric.lower()):
        return one
    if any(each.unit is not None and "Hz" not in each.unit for each in (one, other)):
        return one  # a share of the maximum is no clock, however its size compares
    before, after = (float(np.median(each.values)) if len(each.values) else 0.0 for each in (other, one))
    if before <= 0 or not _LEAST_RATIO < after / before < _MOST_RATIO:
        return one
    return replace(one, values=one.values / 1_000, unit=other.unit)


def _place(row: tuple[int | None, int | None, str]) -> tuple[int, int, int, str]:
    rank, process, device = row
    number = _NUMBER.search(device)
    return rank or 0, process or 0, int(number[0]) if number else 0, device


def _pairs(base: Sequence[Entity], candidate: Sequence[Entity], own: tuple[Sequence[str], Sequence[str]]) -> Pairs:
    """GPUs that play the same role; where a run doesn't say which it uses, those of one name that the other uses."""
    if own[0] and len(own[0]) == len(own[1]):
        return list(zip(*own, strict=True))
    used = set(own[0]) & set(own[1]) if own[0] and own[1] else {*own[0], *own[1]}
    names = [{one.device for one in run} - {HOST, POOLED, OWN, BY_CYCLE} for run in (base, candidate)]
    return [(name, name) for name in sorted(names[0] & names[1]) if not used or name in used]


def _of_metric(
    sides: Sequence[dict[str, Entity]], pairs: Pairs, own: tuple[Sequence[str], Sequence[str]]
) -> tuple[list[Entity], list[Entity]]:
    base, candidate = sides
    host = _of_host(base, candidate)
    devices = [(one, two) for one, two in pairs if one in base and two in candidate]
    if devices:
        return (
            [*host[0], *(replace(base[one], device=two) for one, two in devices)],
            [*host[1], *(candidate[two] for _, two in devices)],
        )
    first, second = (_single(run, used) for run, used in zip(sides, own, strict=True))
    if first is not None and second is not None:
        name = second.device if second.device != OWN else first.device
        return [*host[0], replace(first, device=name)], [*host[1], replace(second, device=name)]
    pooled = [[run[POOLED]] if POOLED in run else [] for run in sides]
    return [*host[0], *pooled[0]], [*host[1], *pooled[1]]


def _of_host(base: dict[str, Entity], candidate: dict[str, Entity]) -> tuple[list[Entity], list[Entity]]:
    """By tick where both runs have one unit so, else as either has it in the unit of the other."""
    first, second = ([run[name] for name in (HOST, BY_CYCLE) if name in run] for run in (base, candidate))
    pairs = [(one, two) for one in first for two in second if one.unit == two.unit]
    if pairs:
        one, two = pairs[0]
        return [replace(one, device=HOST)], [replace(two, device=HOST)]
    return first[:1], second[:1]


def _single(run: dict[str, Entity], used: Sequence[str]) -> Entity | None:
    """The series of the only GPU that the program uses; None where several are used, or it isn't known which."""
    if OWN in run:
        return run[OWN]
    own = [run[name] for name in used if name in run]
    return own[0] if len(own) == len(used) == 1 else None
