"""What interrupted a run, taken out of its times before they are compared: another process, a page fault, a clock.

One call of 20 μs that waits 4 ms for a processor hides any difference of its path, and of all that call it.
Repetitions do the same work, so the same call (the third of this path in a repetition) has a usual time: the median
over the repetitions of base and candidate together. What a call takes beyond `USUAL` times that is an interruption.
Of paths that call others the same is done with their own time in a repetition. A call that is long in every
repetition stays as long.

Both arms have one limit. One of each arm's own would shift all its repetitions together, which pairs can't see: of
simulated equal arms with scattered times, up to half then differed; with one limit, 5 % do. Each has its own only
where the usual times of a path in one arm are more than `USUAL` times those in the other: chance doesn't do that.
A arms, P paths, R repetitions.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from inferometer.analyses.ab.times import COLUMNS, ArmTimes, Clock, Integers, fill
from inferometer.analyses.ab.tree import PathTree

USUAL = 3
"""A call that takes more than so many times its usual time was interrupted. The median of two arms of which one takes
up to so many times as long is at least two thirds of the longer one's, so that its own scatter is hardly cut."""

MOST = 0.5
"""Where the middle half of an arm's repetitions spreads over more than this part of their median, without
interruptions, other work took part in all of it: which arm met more of it is what would be reported."""


def interruptions(
    placed: pl.DataFrame, tree: PathTree, arms: Sequence[str], repetitions: Sequence[int], clock: Clock, times: ArmTimes
) -> Integers:
    """What each path's own time has of interruptions, ns. Shape (A, P, R).

    Args:
        placed: Calls with their `node`, those of a path and repetition in the order in which they ran.
        tree: Of these.
        arms: Their names, the base first.
        repetitions: That all arms have.
        clock: Which of the times.
        times: Their sums.
    """
    calls_others = np.array([tree.ends[i] > i + 1 for i in range(len(tree.nodes))], bool)
    taken = _of_own_times(times, np.flatnonzero(calls_others))
    leaves = pl.Series(np.flatnonzero(~calls_others))
    excess = interruptions_of_calls(placed.filter(pl.col("node").is_in(leaves.implode())), arms, COLUMNS[clock])
    return taken + fill(excess, times.totals.shape, arms, repetitions)


def without(times: ArmTimes, taken: Integers, tree: PathTree) -> ArmTimes:
    """Times less `taken` of the paths' own, which is then missing from all that call them, too."""
    owns = times.owns - taken
    totals = owns.copy()
    for i in range(len(tree.nodes) - 1, -1, -1):
        parent = tree.nodes[i].parent
        if parent is not None:
            totals[:, parent] += totals[:, i]
    return replace(times, owns=owns, totals=totals)


def are_disturbed(steady: ArmTimes, tree: PathTree) -> list[bool]:
    """Whether each arm's repetitions, all the same work, take times too unlike to show anything: see `MOST`."""
    whole_AR = steady.totals[:, tree.roots].sum(axis=1)
    return [_is_unlike(whole_R[whole_R > 0]) for whole_R in whole_AR]


def _is_unlike(times: Integers) -> bool:
    if not len(times):
        return False
    low, middle, high = np.quantile(times, (0.25, 0.5, 0.75))
    return bool(high - low > MOST * middle)


def interruptions_of_calls(leaves: pl.DataFrame, arms: Sequence[str], column: str) -> pl.DataFrame:
    """`arm`, `node`, `repetition`, `ns` beyond the limit; rows of a path and repetition in the order of the calls."""
    nth = pl.int_range(pl.len()).over("arm", "repetition", "path").alias("nth")
    calls = leaves.select("arm", "node", "repetition", "path", pl.col(column).alias("ns"), nth)
    own = calls.group_by("arm", "path", "nth").agg(pl.col("ns").median().alias("own"))
    calls = calls.join(_near(own, arms[0]), ["arm", "path"]).join(own, ["arm", "path", "nth"])
    near = calls.filter("is_near")
    pairs = [
        near.filter(pl.col("arm").is_in([arms[0], arm]))
        .join(near.filter(pl.col("arm") == arm).select("path").unique(), "path", "semi")
        .group_by("path", "nth")
        .agg(pl.col("ns").median())
        for arm in arms[1:]
    ]
    both = (
        pl.concat([calls.select("path", "nth", pl.col("ns").cast(pl.Float64)).clear(), *pairs])
        .group_by("path", "nth")
        .agg(pl.col("ns").max().alias("both"))
    )
    usual = pl.when("is_near").then(pl.coalesce("both", "own")).otherwise("own")
    limited = calls.join(both, ["path", "nth"], "left").with_columns(
        (USUAL * usual).floor().cast(pl.Int64).alias("limit")
    )
    long = limited.filter(pl.col("limit") > 0, pl.col("ns") > pl.col("limit"))
    return long.group_by("arm", "node", "repetition").agg((pl.col("ns") - pl.col("limit")).sum().alias("ns"))


def _near(own: pl.DataFrame, base: str) -> pl.DataFrame:
    """By `arm` and `path`, `is_near`: whether the usual times are like the base's, as the base's own are."""
    sums = own.group_by("arm", "path").agg(pl.col("own").sum())
    against = sums.filter(pl.col("arm") == base).select("path", pl.col("own").alias("base"))
    is_near = pl.col("own").is_between(pl.col("base") / USUAL, pl.col("base") * USUAL).fill_null(value=False)
    return sums.join(against, "path", "left").select("arm", "path", is_near.alias("is_near"))


def _of_own_times(times: ArmTimes, nodes: Integers) -> Integers:
    """The same of whole repetitions of `nodes`; 0 elsewhere."""
    taken = np.zeros_like(times.owns)
    for i in nodes.tolist():
        is_called = times.calls[:, i] > 0
        for a, limit in enumerate(_limits([times.owns[a, i][is_called[a]] for a in range(len(is_called))])):
            if limit > 0:
                taken[a, i] = np.where(is_called[a], np.maximum(times.owns[a, i] - limit, 0), 0)
    return taken


def _limits(owns: Sequence[Integers]) -> list[int]:
    """Of each arm; 0 where it isn't called. `owns`: times of the repetitions of each, those of the base first."""
    own = [float(np.median(each)) if len(each) else 0.0 for each in owns]
    near = [a for a in range(1, len(owns)) if len(owns[a]) and own[0] / USUAL <= own[a] <= own[0] * USUAL]
    both = max((float(np.median(np.concatenate([owns[0], owns[a]]))) for a in near), default=own[0])
    return [int(USUAL * (both if a == 0 or a in near else usual)) for a, usual in enumerate(own)]
