"""Times of each arm, path and repetition as whole nanoseconds, with self times that add up to the root.

A arms, P paths (callers before what they call), R repetitions that all arms have.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from inferometer.analyses.ab.tree import PathTree

Integers = NDArray[np.int64]
Clock = Literal["host", "span"]
COLUMNS: dict[Clock, str] = {"host": "dur_ns", "span": "span_ns"}
"""The column of `measurement.CALLS` for each clock."""


@dataclass(frozen=True)
class ArmTimes:
    """Calls of each repetition, their sums, and what each path took itself: shape (A, P, R), 0 where not called."""

    calls: Integers
    totals: Integers
    owns: Integers


def common_repetitions(calls: pl.DataFrame) -> list[int]:
    """The repetitions of which every arm that ran has calls, in order."""
    by_arm = calls.select("arm", "repetition").unique().group_by("repetition").len()
    return by_arm.filter(pl.col("len") == calls["arm"].n_unique())["repetition"].sort().to_list()


def sum_times(
    placed: pl.DataFrame, tree: PathTree, arms: Sequence[str], repetitions: Sequence[int], clock: Clock
) -> ArmTimes:
    """Calls with their `node`, summed."""
    shape = len(arms), len(tree.nodes), len(repetitions)
    by_path = placed.group_by("arm", "node", "repetition")
    calls_APR = fill(by_path.agg(pl.len().alias("ns")), shape, arms, repetitions)
    total_APR = fill(by_path.agg(pl.col(COLUMNS[clock]).sum().alias("ns")), shape, arms, repetitions)
    self_APR = total_APR.copy()
    for i, node in enumerate(tree.nodes):
        if node.parent is not None:
            self_APR[:, node.parent] -= total_APR[:, i]
    return ArmTimes(calls_APR, total_APR, self_APR)


def fill(sums: pl.DataFrame, shape: tuple[int, ...], arms: Sequence[str], repetitions: Sequence[int]) -> Integers:
    """The column `ns`, whatever it counts, by `arm`, `node`, `repetition`; 0 where no row is. Shape (A, P, R)."""
    filled_APR = np.zeros(shape, np.int64)
    arm_at, repetition_at = ({name: i for i, name in enumerate(names)} for names in (arms, repetitions))
    at = (
        [arm_at[arm] for arm in sums["arm"].to_list()],
        sums["node"].to_list(),
        [repetition_at[repetition] for repetition in sums["repetition"].to_list()],
    )
    filled_APR[at] = sums["ns"].to_numpy()
    return filled_APR


def whole_means(self_APR: Integers, ends: Sequence[int]) -> tuple[Integers, Integers]:
    """Mean self and total time over repetitions, whole ns, that still add up exactly; each within 1 ns of the mean.

    Rounded is the running sum over the paths, and a mean is the step between two of its values, so that the rounding
    of one path is made good by the next. Both of shape (A, P).
    """
    n = self_APR.shape[2]
    running = np.cumsum(self_APR.sum(axis=2), axis=1)
    running = np.concatenate([np.zeros((len(running), 1), np.int64), running], axis=1)
    rounded = (2 * running + n) // (2 * n) if n else running
    own = np.diff(rounded, axis=1)
    total = rounded[:, list(ends)] - rounded[:, :-1] if own.shape[1] else own
    return own, total
