"""Each path of a candidate compared with the base: ratio, verdict, and where the difference comes from.

P paths, R repetitions. A path that one arm alone calls has no ratio: it stands for something that the other does
elsewhere, in other paths or in the caller itself. So its time counts with the own time of the nearest caller that
both have, and the two together are tested as one.

A path below which both arms ran the same backends of the same operators is the same code: it is no faster and no
slower, whatever it takes. What it takes differently is carried over from other paths (caches, clocks, threads that
fell asleep). It is tested apart from the others, so that one large difference, and what it leaves behind, makes
no discoveries of unrelated paths.

A path of other code that differs is asked once more where there is a control (`control`): only a difference of the
kernels in the same surroundings counts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from inferometer.analyses.ab.control import KernelTest
from inferometer.analyses.ab.rows import Interval, PathDifference, PathError, Versus
from inferometer.analyses.ab.same_code import (
    ArmColumns,
    call_the_same,
    is_own_code_same,
    is_same_code,
    owners_of,
)
from inferometer.analyses.ab.statistics import Floats, Verdict, discoveries, judge, log_ratios, t_interval, t_test
from inferometer.analyses.ab.times import Integers
from inferometer.analyses.ab.tree import PathTree


@dataclass(frozen=True)
class AgainstBase:
    """A candidate against the base: a `Versus` per path, and the places that differ, the largest first.

    `carried_ns`: what places of the same code, and operators that are carried over, take more, all together.
    """

    paths: Sequence[Versus]
    differences: Sequence[PathDifference]
    carried_ns: int


def compare_with_base(
    base: ArmColumns,
    candidate: ArmColumns,
    tree: PathTree,
    errors: Mapping[int, PathError],
    kernels: KernelTest,
    level: float,
) -> AgainstBase:
    """All paths of `candidate` against those of `base`, whose pairs of repetitions stand in the same columns."""
    both_P = base.is_called & candidate.is_called
    owners = owners_of(tree, both_P)
    ratios = _Ratios.of(np.where(both_P[:, None], log_ratios(base.totals, candidate.totals), np.nan))
    totals = _Paired.of(base.totals, candidate.totals)
    owns = _Paired.of(base.owns, candidate.owns)
    grouped = _Paired.of(_grouped(base.owns, owners), _grouped(candidate.owns, owners))
    same_P = is_same_code(base, candidate, tree)
    own_same_P = is_own_code_same(base, candidate, owners)
    discovered_P = _discoveries_apart(ratios.p, same_P, level)
    own_P = _differing(tree, owners, ratios.p, grouped, both_P, own_same_P, level)
    kernels = kernels.without(call_the_same(base, candidate, tree))
    is_leaf_P = np.array([end == i + 1 for i, end in enumerate(tree.ends)], bool)
    refuted_P = kernels.refuted((discovered_P | own_P) & ~same_P, ratios.log, is_leaf_P, level)
    evidence = _Evidence(discovered_P, same_P, refuted_P, ~kernels.excludes(ratios.log))
    paths = [
        Versus(
            ratio=ratios.ratio(i),
            interval=ratios.interval(i),
            p=None if np.isnan(ratios.p[i]) else float(ratios.p[i]),
            pairs=ratios.pairs(i),
            verdict=evidence.verdict(i, ratios) if both_P[i] else None,
            difference_ns=int(candidate.mean_totals[i] - base.mean_totals[i]),
            difference_interval_ns=totals.interval(i),
            self_difference_ns=int(candidate.mean_owns[i] - base.mean_owns[i]),
            self_interval_ns=owns.interval(i),
            is_own=bool(own_P[i] & ~refuted_P[i]),
            absent=None if both_P[i] else _absent(i, base, candidate),
            error=errors.get(i, PathError()),
            control=kernels.ratio(i),
        )
        for i in range(len(tree.nodes))
    ]
    carried_P = own_same_P | (is_leaf_P & np.array([each.verdict == "carried over" for each in paths], bool))
    carried_ns = int((candidate.mean_owns - base.mean_owns)[carried_P].sum())
    return AgainstBase(paths, _differences(base, candidate, tree, owners, grouped, own_P & ~refuted_P), carried_ns)


def without_verdicts(found: AgainstBase) -> AgainstBase:
    """The same numbers, of which none is called a difference, nor the same: other work was in the way."""
    paths = [
        replace(each, verdict=each.verdict if each.verdict in (None, "too few") else "unclear", is_own=False)
        for each in found.paths
    ]
    return AgainstBase(paths, (), found.carried_ns)


@dataclass(frozen=True)
class _Ratios:
    """Candidate over base: logarithms by repetition, shape (P, R), their mean, its interval and p, shape (P,).

    NaN where one of them isn't called, or too few repetitions have both.
    """

    logs: Floats
    log: Floats
    low: Floats
    high: Floats
    p: Floats

    @classmethod
    def of(cls, logs_PR: Floats) -> "_Ratios":
        return cls(logs_PR, *t_interval(logs_PR), t_test(logs_PR))

    def ratio(self, i: int) -> float | None:
        return None if np.isnan(self.log[i]) else float(np.exp(self.log[i]))

    def interval(self, i: int) -> Interval | None:
        return _interval(np.exp(self.low[i]), np.exp(self.high[i]))

    def pairs(self, i: int) -> int:
        return int((~np.isnan(self.logs[i])).sum())


@dataclass(frozen=True)
class _Evidence:
    """What is known of each path beyond its ratio, each of shape (P,). See `judge`."""

    is_discovery: NDArray[np.bool_]
    is_same_code: NDArray[np.bool_]
    is_refuted: NDArray[np.bool_]
    is_possible: NDArray[np.bool_]

    def verdict(self, i: int, ratios: _Ratios) -> Verdict:
        return judge(
            ratios.ratio(i) or 1.0,
            ratios.interval(i),
            pairs=ratios.pairs(i),
            is_discovery=bool(self.is_discovery[i]),
            is_same_code=bool(self.is_same_code[i]),
            is_refuted=bool(self.is_refuted[i]),
            is_possible=bool(self.is_possible[i]),
        )


@dataclass(frozen=True)
class _Paired:
    """Differences by repetition, shape (P, R), and the ends of the interval of their mean, shape (P,)."""

    values: Floats
    low: Floats
    high: Floats

    @classmethod
    def of(cls, base_PR: Integers, candidate_PR: Integers) -> "_Paired":
        values_PR = (candidate_PR - base_PR).astype(np.float64)
        _, low_P, high_P = t_interval(values_PR)
        return cls(values_PR, low_P, high_P)

    def interval(self, i: int) -> Interval | None:
        return _interval(self.low[i], self.high[i])


def _discoveries_apart(p_P: Floats, same_P: NDArray[np.bool_], level: float) -> NDArray[np.bool_]:
    """Discoveries among paths of other code, and among those of the same."""
    other_P, alike_P = np.where(same_P, np.nan, p_P), np.where(same_P, p_P, np.nan)
    return np.asarray(discoveries(other_P, level=level) | discoveries(alike_P, level=level))


def _grouped(self_PR: Integers, owners: Sequence[int]) -> Integers:
    """Own times with those of paths that one arm alone calls."""
    grouped_PR = np.zeros_like(self_PR)
    np.add.at(grouped_PR, list(owners), self_PR)
    return grouped_PR


def _differing(
    tree: PathTree,
    owners: Sequence[int],
    p_P: Floats,
    grouped: _Paired,
    both_P: NDArray[np.bool_],
    own_same_P: NDArray[np.bool_],
    level: float,
) -> NDArray[np.bool_]:
    """Which paths differ by themselves. A path that calls nothing is tested by its ratio, as its verdict is.

    Own times of others may be 0, so that their differences are tested. What has no caller in both arms differs, and
    what is the same code doesn't.
    """
    own_p_P = t_test(grouped.values)
    for i in range(len(tree.nodes)):
        if owners[i] != i or own_same_P[i]:  # counts with its owner, or is carried over
            own_p_P[i] = np.nan
        elif tree.ends[i] == i + 1 and both_P[i]:
            own_p_P[i] = p_P[i]
    alone_P = np.array([owners[i] == i and not both_P[i] for i in range(len(tree.nodes))], bool)
    return np.asarray(discoveries(np.where(alone_P, np.nan, own_p_P), level=level) | alone_P)


def _differences(
    base: ArmColumns,
    candidate: ArmColumns,
    tree: PathTree,
    owners: Sequence[int],
    grouped: _Paired,
    own_P: NDArray[np.bool_],
) -> list[PathDifference]:
    before_P, after_P = (_grouped(arm.mean_owns[:, None], owners)[:, 0] for arm in (base, candidate))
    whole = int((candidate.mean_totals - base.mean_totals)[tree.roots].sum())
    found = []
    for i in np.flatnonzero(own_P).tolist():
        delta = int(after_P[i] - before_P[i])
        top = [j for j, owner in enumerate(owners) if owner == i != j and tree.nodes[j].parent == i]
        found.append(
            PathDifference(
                path=tree.nodes[i].key,
                gone=tuple(tree.nodes[j].name for j in top if base.is_called[j]),
                new=tuple(tree.nodes[j].name for j in top if not base.is_called[j]),
                base_ns=int(before_P[i]),
                candidate_ns=int(after_P[i]),
                difference_ns=delta,
                interval_ns=grouped.interval(i),
                share=delta / whole if whole else None,
            )
        )
    depth = {node.key: node.depth for node in tree.nodes}
    return sorted(found, key=lambda each: (-abs(each.difference_ns), -depth[each.path]))


def _absent(i: int, base: ArmColumns, candidate: ArmColumns) -> str:
    missing = [arm.name for arm in (base, candidate) if not arm.is_called[i]]
    return f"not called by {' or '.join(missing)}"


def _interval(low: float, high: float) -> Interval | None:
    return None if np.isnan(low) else (float(low), float(high))
