"""Whether a path differs because of its kernels, or because of what other paths leave behind.

Where an arm has backends of its own for several operators, a slow one makes others take longer: caches are colder, a
clock is lower, threads fell asleep. Neither more repetitions nor a stricter test distinguishes that from a slow kernel,
since it is there in every repetition. The control (`measurement.CONTROL`) does: there both arms' kernels have the same
surroundings. A difference between the arms that isn't one between their kernels is carried over.

P paths, K pairs of completions. The operators at a path and below it count; what is no operator's has no kernel.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from inferometer.analyses.ab.rows import KernelRatio
from inferometer.analyses.ab.statistics import Floats, discoveries, log_ratios, t_interval, t_test
from inferometer.analyses.ab.steady import interruptions_of_calls
from inferometer.analyses.ab.times import COLUMNS, Clock, fill
from inferometer.analyses.ab.tree import PathTree


@dataclass(frozen=True)
class KernelTest:
    """Logarithms of a candidate's kernels over the base's, the ends of their intervals, and p: each of shape (P,)."""

    logs: Floats
    low: Floats
    high: Floats
    p: Floats

    @classmethod
    def of(cls, control: pl.DataFrame, base: str, candidate: str, tree: PathTree, clock: Clock) -> "KernelTest":
        """NaN where nothing was measured. `control`: as `measurement.CONTROL`."""
        rows = tree.nodes_of(control.filter(pl.col("candidate") == candidate)).filter(pl.col("node").is_not_null())
        logs_PK = _logs(rows, (base, candidate), tree, clock)
        return cls(*t_interval(logs_PK), t_test(logs_PK))

    def without(self, known_P: NDArray[np.bool_]) -> "KernelTest":
        """NaN where it isn't `known_P` that the kernels of both do the same."""
        return KernelTest(*(np.where(known_P, each, np.nan) for each in (self.logs, self.low, self.high, self.p)))

    def refuted(
        self, called_P: NDArray[np.bool_], logs_P: Floats, is_leaf_P: NDArray[np.bool_], level: float
    ) -> NDArray[np.bool_]:
        """Which paths are called different by `logs_P` though their kernels weren't found to differ that way.

        Only these are tested, on other completions than those that they are called different by: so of all that are
        left, at most `level` are chance. Paths that call none (`is_leaf_P`) are tested apart from their callers: one
        slow kernel is in the time of a dozen callers, none of which may make an unrelated path more believable.
        """
        asked_P = called_P & ~np.isnan(self.p)
        differ_P = np.zeros(len(asked_P), bool)
        for group_P in (is_leaf_P, ~is_leaf_P):
            differ_P |= discoveries(np.where(asked_P & group_P, self.p, np.nan), level=level)
        return np.asarray(asked_P & ~(differ_P & (np.sign(self.logs) == np.sign(logs_P))))

    def excludes(self, logs_P: Floats) -> NDArray[np.bool_]:
        """Where so large a difference isn't that of the kernels, at 95 %."""
        return np.asarray((logs_P < self.low) | (logs_P > self.high))

    def ratio(self, i: int) -> KernelRatio | None:
        """The ratio of one path; None where it wasn't measured."""
        if np.isnan(self.logs[i]):
            return None
        interval = None if np.isnan(self.low[i]) else (float(np.exp(self.low[i])), float(np.exp(self.high[i])))
        return KernelRatio(float(np.exp(self.logs[i])), interval, None if np.isnan(self.p[i]) else float(self.p[i]))


def _logs(rows: pl.DataFrame, arms: Sequence[str], tree: PathTree, clock: Clock) -> Floats:
    """Shape (P, K)."""
    pairs = rows["repetition"].unique().sort().to_list()
    shape, column = (len(arms), len(tree.nodes), len(pairs)), COLUMNS[clock]
    sums = rows.group_by("arm", "node", "repetition").agg(pl.col(column).sum().alias("ns"))
    times_APK = fill(sums, shape, arms, pairs)
    times_APK -= fill(interruptions_of_calls(rows, arms, column), shape, arms, pairs)
    for i in range(len(tree.nodes) - 1, -1, -1):
        parent = tree.nodes[i].parent
        if parent is not None:
            times_APK[:, parent] += times_APK[:, i]
    return log_ratios(times_APK[0], times_APK[1])
