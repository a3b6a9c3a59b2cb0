"""One model with several kernel backends, compared by call path: which path differs, by how much, and how sure.

All arms do the same work; their paths are joined by name, never by position. On a GPU the times between events on the
stream are compared, since host times are times of launching there; on a CPU the host's. A mean over repetitions is
compared, without interruptions (`steady`), and whole nanoseconds of the paths' own times add up to the root,
with and without these. Leaves out what one repetition's calls looked like one by one: recordings in `stores` have that.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl

from inferometer.analyses.ab.answers import AnswerFault, as_errors, find_faults
from inferometer.analyses.ab.arms import Means, Summed, arm_paths, backends_of, operators_of, worst_errors
from inferometer.analyses.ab.control import KernelTest
from inferometer.analyses.ab.measurement import PathMeasurement
from inferometer.analyses.ab.path_frame import path_frame
from inferometer.analyses.ab.root import PhasePass, compare_passes
from inferometer.analyses.ab.rows import ArmPath, PathDifference, PathError, PathRow
from inferometer.analyses.ab.same_code import ArmColumns
from inferometer.analyses.ab.statistics import LEVEL
from inferometer.analyses.ab.steady import are_disturbed, interruptions, without
from inferometer.analyses.ab.times import ArmTimes, Clock, common_repetitions, sum_times
from inferometer.analyses.ab.tree import PathTree, join_paths
from inferometer.analyses.ab.versus import AgainstBase, compare_with_base, without_verdicts
from inferometer.analyses.result import Result
from inferometer.errors import InputError
from inferometer.trace.losses import Losses
from inferometer.trace.tables import ALL_TABLES


@dataclass(frozen=True)
class PathComparison(Result):
    """An A/B by call path.

    Attributes:
        measured: What it is made from.
        rows: Paths, callers before what they call, in the order of the calls.
        clock: Whether times between events (`span`) or the host's are compared.
        repetitions: That all arms have.
        passes: Without scopes: tokens per second, and what scopes cost.
        differences: By candidate, the paths that differ by themselves, the largest first.
        carried_ns: By candidate, what it takes more in paths of the same code and others that are carried over.
        is_pooled: Whether layers are one path.
        level: Of all differences called one, at most this part is chance.
        unplaced: By candidate, checked paths that no arm called in the timed passes.
        faults: By arm, also the base, where its answers of the timed passes are first wrong.
        disturbed: Arms whose repetitions took times so unlike that no path has a verdict.
    """

    view: ClassVar[str] = "ab.comparison"
    measured: PathMeasurement
    rows: Sequence[PathRow]
    clock: Clock
    repetitions: int
    passes: Sequence[PhasePass]
    differences: Mapping[str, Sequence[PathDifference]]
    carried_ns: Mapping[str, int]
    is_pooled: bool
    level: float
    unplaced: Sequence[str]
    faults: Mapping[str, AnswerFault]
    disturbed: Sequence[str]
    losses: Losses

    @property
    def arms(self) -> Sequence[str]:
        """Names, the base first."""
        return self.measured.arms

    @property
    def candidates(self) -> Sequence[str]:
        """All arms but the base."""
        return self.arms[1:]

    @property
    def is_good(self) -> bool:
        """Whether no path of any candidate is slower than the base's, beyond chance, and nothing is wrong."""
        return not self.faults and not any(
            each.verdict == "slower" or each.error.failure is not None
            for row in self.rows
            for each in row.versus.values()
        )

    def is_in_doubt(self, candidate: str) -> bool:
        """Whether of several paths with other kernels one is called different: others may have left that behind."""
        base = self.arms[0]
        other = [
            row
            for row in self.rows
            if row.operator is not None
            and {base, candidate} <= row.arms.keys()
            and row.arms[base].ran != row.arms[candidate].ran
        ]
        called = [
            each for row in other if (each := row.versus[candidate]).verdict in ("faster", "slower") or each.is_own
        ]
        return len({row.name for row in other}) > 1 and bool(called)

    def control_pairs(self, candidate: str) -> int:
        """How many pairs of completions compare its kernels with the base's; 0: there is no control."""
        control = self.measured.control
        return control.filter(pl.col("candidate") == candidate)["repetition"].n_unique()

    def agreement(self, arm: str) -> dict[str, Any] | None:
        """How far next tokens and their probabilities are the base's; None of the base, or where not measured."""
        rows = self.measured.agreement.filter(pl.col("arm") == arm).drop("arm").to_dicts()
        return rows[0] if rows else None

    def to_polars(self) -> pl.DataFrame:
        """One row per path, exact."""
        return path_frame(self.rows, self.arms)

    def as_json(self) -> dict[str, Any]:
        return {
            "arms": list(self.arms),
            "paths": [self._path_as_json(row) for row in self.rows],
            "root": self._root_as_json(),
            "overhead": self._overhead_as_json(),
            "differences": {arm: [each.as_json() for each in found] for arm, found in self.differences.items()},
            "carried_over_ns": dict(self.carried_ns),
            "compared": f"{self.clock}_ns",
            "repetitions": self.repetitions,
            "level": self.level,
            "layers": "pooled" if self.is_pooled else "apart",
            "facts": dict(self.measured.facts),
            "ended": self.measured.ended,
            "faults": {arm: fault.as_json() for arm, fault in self.faults.items()},
            "disturbed": list(self.disturbed),
            "refused": {arm: list(why) for arm, why in self.measured.refused.items()},
            "stores": dict(self.measured.stores),
            "losses": self.losses.as_dict(),
        }

    def _path_as_json(self, row: PathRow) -> dict[str, Any]:
        candidates = {arm: each.as_json() for arm, each in row.versus.items()}
        first = next(iter(candidates.values()), {})
        return {
            "path": row.path,
            "name": row.name,
            "depth": row.depth,
            "operator": row.operator,
            "calls": row.calls,
            "arms": {arm: each.as_json() for arm, each in row.arms.items()},
            **{name: first.get(name) for name in ("ratio", "interval", "verdict", "max_error")},
            "candidates": candidates,
        }

    def _root_as_json(self) -> dict[str, Any]:
        arms = {}
        for arm in self.arms:
            totals = [row.arms[arm].time_ns for row in self.rows if row.parent is None and arm in row.arms]
            arms[arm] = {
                "time_ns": sum(totals) if totals else None,
                "phases": {each.phase: each.as_json() for each in self.passes if each.arm == arm},
                "agreement": self.agreement(arm),
            }
        return {"path": self.rows[0].path if self.rows else None, "arms": arms}

    def _overhead_as_json(self) -> dict[str, Any]:
        return {
            arm: {
                each.phase: {"ratio": each.overhead, "interval": each.overhead_interval}
                for each in self.passes
                if each.arm == arm
            }
            for arm in self.arms
        }


def compare_paths(measurement: PathMeasurement, *, pool_layers: bool = True, level: float = LEVEL) -> PathComparison:
    """Every path of every arm, each candidate compared with the first arm.

    All joined paths of a candidate are judged together (Benjamini and Hochberg). A path is `faster` or `slower`; or
    `carried over`, where it differs and yet both arms run the same code, or the control finds no difference of the
    kernels (see `versus` and `control`); else `same` where the interval of the ratio is within 2 % of 1, else
    `unclear`; `too few` with fewer than 3 repetitions. An interval is at 95 %, of its path alone.

    Args:
        measurement: Of two arms or more; what ended early has what was measured so far, and may be empty.
        pool_layers: One row for `layers.0`, `layers.1`, …: `layers.*`.
        level: Of all differences called one, at most this part is chance: 0 to 1.

    Raises:
        InputError: Two arms of one name, calls of an unknown arm, or a level that is no share.
    """
    _check(measurement, level)
    arms, calls = measurement.arms, measurement.calls
    repetitions = common_repetitions(calls)
    calls = calls.filter(pl.col("repetition").is_in(repetitions))
    clock: Clock = "span" if calls.height and not calls["span_ns"].null_count() else "host"
    tree = join_paths(calls, arms, pool_layers=pool_layers)
    placed = calls.join(tree.found, ["arm", "path"])
    host = sum_times(placed, tree, arms, repetitions, "host")
    times = host if clock == "host" else sum_times(placed, tree, arms, repetitions, clock)
    taken = interruptions(placed, tree, arms, repetitions, clock, times)
    steady = without(times, taken, tree)
    summed = Summed(host, times, taken, clock)
    means = Means.of(summed, tree)
    columns = _arm_columns(arms, placed, tree, steady, means)
    faults = find_faults(measurement)
    found = as_errors(faults, tree.nodes[0].key if tree.nodes else "")
    errors, unplaced = worst_errors(pl.concat([found, measurement.errors]), tree)
    disturbed = [arm for arm, is_so in zip(arms, are_disturbed(steady, tree), strict=True) if is_so]
    against = {}
    for each in columns[1:]:
        base = columns[0]
        kernels = KernelTest.of(measurement.control, base.name, each.name, tree, clock)
        own_errors = errors.get(each.name, dict[int, PathError]())
        one = compare_with_base(base, each, tree, own_errors, kernels, level)
        against[each.name] = without_verdicts(one) if {base.name, each.name} & set(disturbed) else one
    return PathComparison(
        measured=measurement,
        rows=_rows(tree, arm_paths(measurement, placed, tree, summed, means), against),
        clock=clock,
        repetitions=len(repetitions),
        passes=compare_passes(measurement.passes, arms, measurement.facts, level),
        differences={arm: found.differences for arm, found in against.items()},
        carried_ns={arm: found.carried_ns for arm, found in against.items()},
        is_pooled=pool_layers,
        level=level,
        unplaced=unplaced,
        faults=faults,
        disturbed=disturbed,
        losses=Losses(ALL_TABLES),
    )


def _arm_columns(
    arms: Sequence[str], placed: pl.DataFrame, tree: PathTree, steady: ArmTimes, means: Means
) -> list[ArmColumns]:
    count = len(tree.nodes)
    return [
        ArmColumns(
            arm,
            steady.totals[a],
            steady.owns[a],
            means.steady_totals[a],
            means.steady_owns[a],
            np.any(steady.calls[a] > 0, axis=1),
            backends_of(placed, arm, count),
            operators_of(placed, arm, count),
        )
        for a, arm in enumerate(arms)
    ]


def _rows(
    tree: PathTree, by_arm: Mapping[str, Mapping[int, ArmPath]], against: Mapping[str, AgainstBase]
) -> Sequence[PathRow]:
    """A row per path, with each arm that calls it and each candidate against the base."""
    return [
        PathRow(
            path=node.key,
            name=node.name,
            parent=node.parent,
            depth=node.depth,
            operator=node.operator,
            arms={arm: paths[i] for arm, paths in by_arm.items() if i in paths},
            versus={arm: each.paths[i] for arm, each in against.items()},
        )
        for i, node in enumerate(tree.nodes)
    ]


def _check(measurement: PathMeasurement, level: float) -> None:
    problem = next(_problems(measurement, level), None)
    if problem is not None:
        raise InputError(problem)


def _problems(measurement: PathMeasurement, level: float) -> Iterator[str]:
    arms = measurement.arms
    twice = [arm for i, arm in enumerate(arms) if arm in arms[:i]]
    if twice:
        yield f"two arms are named {twice[0]}: give each its own name"
    unknown = sorted(set(measurement.calls["arm"].unique()) - set(arms))
    if unknown:
        yield f"calls of an arm {unknown[0]}: expected one of {', '.join(arms) or 'none'}"
    if not 0 < level < 1:
        yield f"expected a level between 0 and 1, found {level}"
