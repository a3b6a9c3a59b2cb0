"""Which of the metrics that changed may have slowed a run: severity, evidence, and how well the slowed functions agree.

One candidate a metric and device. The test is of the harmful direction alone: over all orders of the ticks where these
are few, or many drawn ones where there are ties; over metrics the false discovery rate is held (Benjamini, Hochberg).
"""

import math
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

from inferometer.analyses.compare.causes.counters import POOLED, Entity
from inferometer.analyses.compare.causes.explained import LongerStep, part_explained
from inferometer.analyses.compare.causes.metric_roles import CauseClass, MetricRole
from inferometer.analyses.compare.causes.resampling import Values, median_ratio_interval
from inferometer.analyses.comparison_limits import (
    ALPHA,
    ASYMPTOTIC,
    DISAGREES,
    FEWEST_TICKS,
    FULL,
    HOT_C,
    MIN_EXPLAINED,
    MIN_SEVERITY,
    RESAMPLES,
    SEED,
    THROTTLING_C,
    TYPICAL,
)


class Cause(msgspec.Struct, frozen=True):
    """A candidate. `score` = `severity` x agreement x (1 - `q`), all 0 to 1; `interval`: of candidate over base.

    `base` and `candidate` are medians over `ticks`, in `unit`; of states, which are 0 or 1 at each tick, means: the
    median of one that holds for less than half of the time is 0. `agreement` weighs how well the functions that slowed
    fit, and is low where another cause makes the metric worse, too (`MetricRole.yields_to`), or where it can't account
    for half of what a step takes longer: `explains` is the part that it does, and the most that this may be, None where
    it doesn't say how long anything waited. `assumed` says what was taken for a capacity that wasn't given, where one
    was needed. `tick_s`: the longer of both runs' usual times between ticks; None where not known. `tested`: metrics
    over which `q` is held.
    """

    metric: str
    device: str
    cause_class: CauseClass
    family: str
    score: float
    severity: float
    base: float
    candidate: float
    unit: str | None
    p: float
    q: float
    interval: tuple[float, float] | None
    ticks: tuple[int, int]
    agreement: float
    assumed: str | None = None
    tick_s: float | None = None
    tested: int = 1
    explains: tuple[float, float] | None = None

    @property
    def has_ticks(self) -> bool:
        """Whether there are enough samples to claim it: it was told, or the clearest change of so many could be."""
        return min(self.ticks) >= FEWEST_TICKS and min(self.q, _least_q(*self.ticks, self.tested)) <= ALPHA

    @property
    def is_too_small(self) -> bool:
        """Whether it accounts for less than half of what a step takes longer, beyond chance."""
        return self.explains is not None and self.explains[1] < MIN_EXPLAINED

    @property
    def needed_ticks(self) -> int:
        """How many would be enough, if both runs had as many."""
        return next(ticks for ticks in count(FEWEST_TICKS) if _least_q(ticks, ticks, self.tested) <= ALPHA)

    def as_json(self) -> dict[str, Any]:
        return {
            "metric": self.metric,
            "device": self.device,
            "class": self.cause_class,
            "role": "cause",
            "score": self.score,
            "base": self.base,
            "candidate": self.candidate,
            "unit": self.unit,
            "p": self.p,
            "q": self.q,
            "severity": self.severity,
            "interval": self.interval,
            "ticks": self.ticks,
            "agreement": self.agreement,
            "family": self.family,
            "assumed": self.assumed,
            "explains": self.explains,
        }


class Capacities(msgspec.Struct, frozen=True):
    """What a device can carry: bytes/s of link and PCIe, bytes of memory, degrees of throttling; None where unknown."""

    link: float | None = None
    pcie: float | None = None
    memory: float | None = None
    limit_c: float | None = None


def rank_causes(
    base: Sequence[Entity],
    candidate: Sequence[Entity],
    *,
    agreement: Callable[[MetricRole], float],
    capacities: Capacities,
    step: LongerStep | None = None,
) -> list[Cause]:
    """Candidates that changed in their harmful direction, the highest score first.

    Args:
        base: Series of the normal run.
        candidate: Series of the run in question.
        agreement: How well a metric fits the functions that slowed, 0 to 1.
        capacities: What severity of traffic is measured against.
        step: Where the step is longer: what a cause must account for.
    """
    other = {entity.key: entity for entity in candidate}
    claimable = [one for one in base if one.role.kind == "cause" and one.device != POOLED]  # whose GPU, nobody knows
    pairs = [(one, other[one.key]) for one in claimable if one.key in other]
    pairs = [(one, two) for one, two in pairs if len(one.values) and len(two.values)]
    pairs = [(one, two) for one, two in pairs if one.unit == two.unit]
    ps = [_harmful_p(one, two) for one, two in pairs]
    found = [
        replace(_cause(one, two, p, q, agreement(one.role), capacities), tested=len(pairs))
        for (one, two), p, q in zip(pairs, ps, _false_discovery(ps), strict=True)
    ]
    roles = {one.key: one.role for one, _ in pairs}
    if step is not None:
        found = [_sized(cause, roles[cause.metric, cause.device], (base, candidate), step) for cause in found]
    found = [_yielding(cause, roles[cause.metric, cause.device], found) for cause in found]
    return sorted(found, key=lambda cause: (-cause.score, -cause.severity, cause.p, cause.metric, cause.device))


def _yielding(cause: Cause, role: MetricRole, found: Sequence[Cause]) -> Cause:
    """`cause`, made light of where another one makes its metric worse, or what must show it doesn't.

    The other one is certain, or has too few ticks to be told; one that is too small for the slower step makes little.
    """
    moved = [one for one in found if one.severity >= MIN_SEVERITY and not one.is_too_small]
    certain = {one.cause_class for one in moved if one.q <= ALPHA or not one.has_ticks}
    shown = [one.q <= ALPHA for one in found if one.metric == role.shown_by and one.has_ticks]
    return cause if role.yields_to not in certain and all(shown) else _made_light(cause)


def _sized(cause: Cause, role: MetricRole, runs: tuple[Sequence[Entity], Sequence[Entity]], step: LongerStep) -> Cause:
    """`cause` with the part of the longer step that it, or what must show it, accounts for; made light if small."""
    found = part_explained(*runs, role.shown_by or cause.metric, step)
    if found is None:
        return cause
    sized = replace(cause, explains=found)
    return _made_light(sized) if sized.is_too_small else sized


def _made_light(cause: Cause) -> Cause:
    if cause.agreement <= DISAGREES:
        return cause
    return replace(cause, agreement=DISAGREES, score=cause.severity * DISAGREES * (1 - cause.q))


def _cause(one: Entity, two: Entity, p: float, q: float, agreement: float, capacities: Capacities) -> Cause:
    role = one.role
    assert role.cause_class is not None
    base, candidate = _typical(one.values, two.values)
    severity, assumed = _severity(one, base, candidate, capacities)
    return Cause(
        metric=one.metric,
        device=one.device,
        cause_class=role.cause_class,
        family=role.family,
        score=severity * agreement * (1 - q),
        severity=severity,
        base=base,
        candidate=candidate,
        unit=one.unit,
        p=p,
        q=q,
        interval=median_ratio_interval(one.values, two.values),
        ticks=(len(one.values), len(two.values)),
        agreement=agreement,
        assumed=assumed,
        tick_s=_tick_s(one, two),
    )


def _tick_s(*entities: Entity) -> float | None:
    gaps = [
        float(np.median(np.diff(one.times_ns)))
        for one in entities
        if one.times_ns is not None and len(one.times_ns) > 1
    ]
    return max(gaps) / 1e9 if gaps else None


def _typical(one: Values, two: Values) -> tuple[float, float]:
    """Medians; of states the part of the ticks in which they hold."""
    typical = np.mean if np.isin(np.concatenate((one, two)), (0.0, 1.0)).all() else np.median
    return float(typical(one)), float(typical(two))


def _harmful_p(one: Entity, two: Entity) -> float:
    """One-sided Mann-Whitney: how often the ticks would stand so by chance if the runs were alike."""
    from scipy import stats

    if min(len(one.values), len(two.values)) < 2 or np.ptp(np.concatenate((one.values, two.values))) == 0:
        return 1.0
    alternative = "greater" if one.role.harmful == "up" else "less"
    return float(stats.mannwhitneyu(two.values, one.values, alternative=alternative, method=_method(one, two)).pvalue)


def _method(one: Entity, two: Entity) -> Any:
    """Over all orders of few ticks, over drawn orders where there are ties, by the normal approximation of many.

    Where the median moved to the good side nothing is at stake, and the approximation will do.
    """
    from scipy import stats

    harmed = (np.median(two.values) > np.median(one.values)) == (one.role.harmful == "up")
    if not harmed or max(len(one.values), len(two.values)) > ASYMPTOTIC:
        return "asymptotic"
    both = np.concatenate((one.values, two.values))
    if len(np.unique(both)) == len(both):
        return "exact"
    return stats.PermutationMethod(n_resamples=RESAMPLES, rng=np.random.default_rng(SEED))


def _least_q(base: int, candidate: int, tested: int) -> float:
    """`q` of one metric of so many whose ticks in one run all lie beyond those of the other: the least that can be."""
    orders = math.lgamma(base + candidate + 1) - math.lgamma(base + 1) - math.lgamma(candidate + 1)
    return tested * math.exp(-orders)


def _false_discovery(ps: Sequence[float]) -> list[float]:
    if not ps:
        return []
    from scipy import stats

    return [float(q) for q in stats.false_discovery_control(ps)]


def _severity(entity: Entity, base: float, candidate: float, capacities: Capacities) -> tuple[float, str | None]:
    """How bad the change is, 0 to 1, and what was assumed to say so."""
    role, assumed, severity = entity.role, None, 0.0
    grown = candidate - base
    match role.severity:
        case "drop":
            severity = 1 - candidate / base if base > 0 else 0.0
        case "usage":
            severity = grown / 100
        case "fraction":
            severity = grown / (100 if entity.unit == "%" else 1)
        case "temperature":
            limit = capacities.limit_c or THROTTLING_C
            assumed = None if capacities.limit_c else f"throttling at {THROTTLING_C:.0f} degrees Celsius"
            cool = min(HOT_C, limit - 1)
            severity = (candidate - max(base, cool)) / (limit - cool)
        case "share":
            severity = grown / 100 if entity.unit == "%" else _share(entity, grown, capacities)
        case "full":
            severity = grown / 100 if entity.unit == "%" else _share(entity, grown, capacities)
            whole = 100.0 if entity.unit == "%" else capacities.memory
            severity = severity if whole and candidate >= FULL * whole else 0.0
        case "traffic":
            severity, assumed = _traffic(entity, base, candidate, capacities)
    return float(np.clip(severity, 0.0, 1.0)), assumed


def _share(entity: Entity, grown: float, capacities: Capacities) -> float:
    """Of the device's memory; how much the host has isn't known, so bytes there have no share."""
    is_device = entity.role.cause_class == "gpu_memory"
    return grown / capacities.memory if is_device and capacities.memory else 0.0


def _traffic(entity: Entity, base: float, candidate: float, capacities: Capacities) -> tuple[float, str | None]:
    """The geometric mean of the share of capacity that was added and of the fold change; of a network the share."""
    if candidate <= base:
        return 0.0, None
    cause_class = entity.role.cause_class
    capacity, assumed = _capacity(str(cause_class), capacities)
    share, fold = min(1.0, (candidate - base) / capacity), 1 - max(base, 0.0) / candidate
    return share if cause_class == "network" else float(np.sqrt(share * fold)), assumed


def _capacity(cause_class: str, capacities: Capacities) -> tuple[float, str | None]:
    """Bytes per second that the resource can carry; where none is given, what is usual, and that it was assumed."""
    known = {"nvlink_traffic": capacities.link, "pcie_traffic": capacities.pcie}.get(cause_class)
    return (known, None) if known else TYPICAL[cause_class]
