"""How much of a slower step a cause can account for: for which part of the time the program stood still.

A program whose threads waited for a processor for 7 % of the time takes a quarter longer for another reason, whatever
else says that this wait is new. The wait per step is that part of the time, over the part that steps took: at most all
of it lay within them. What threads waited is summed over threads, so it is taken times the cores that they used. Both
are upper bounds: the thread that a step hangs on waits no longer than all of them together.

Left out are waits for disks or memory, since what has to be read anew costs processor time, too, and the run queue as a
share of traced functions, which needn't be all that threads do.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np
import polars as pl

from inferometer.analyses.compare.activity.activity import HOST, LANE, Activity
from inferometer.analyses.compare.causes.counters import Entity

_CPU, _OF_A_CORE = "process_cpu_usage", "% of one core"
_PERCENT = 100.0
_ONE_IN_20 = 1.6448536269514722  # standard errors on one side: 95 %


class LongerStep(msgspec.Struct, frozen=True):
    """Mean steps of base and candidate, ns, the second longer, and which part of the recorded time steps took."""

    step_ns: tuple[float, float]
    covered: tuple[float, float]

    @property
    def delta_ns(self) -> float:
        """By how much the step is longer, above 0."""
        return self.step_ns[1] - self.step_ns[0]


def find_longer_step(base: Activity, candidate: Activity, step_ns: tuple[float, float]) -> LongerStep | None:
    """None where the step isn't longer, or the source doesn't say when steps began."""
    covered = [_covered(run) for run in (base, candidate)]
    if step_ns[1] <= step_ns[0] or None in covered:
        return None
    return LongerStep(step_ns, (covered[0] or 0.0, covered[1] or 0.0))


def part_explained(
    base: Sequence[Entity], candidate: Sequence[Entity], metric: str, step: LongerStep
) -> tuple[float, float] | None:
    """The part of what a step takes longer that a metric of the host can account for, and the most that it may be.

    Both from 0 to 1; chance exceeds the second once in 20 times. None where the metric doesn't say how long anything
    waited, or one of the runs lacks what it takes to know.

    Args:
        base: Series of the normal run.
        candidate: Series of the run in question.
        metric: As both runs have it.
        step: The steps of both.
    """
    waits = [_wait(run, metric) for run in (base, candidate)]
    before, after = (
        wait and wait.per_step(covered, step_ns)
        for wait, covered, step_ns in zip(waits, step.covered, step.step_ns, strict=True)
    )
    if before is None or after is None:
        return None
    grown, error = after.share - before.share, math.hypot(before.error, after.error)
    part, most = np.clip([grown / step.delta_ns, (grown + _ONE_IN_20 * error) / step.delta_ns], 0.0, 1.0)
    return float(part), float(most)


class _Wait(NamedTuple):
    """Seconds of waiting per second, or ns per step, with the standard error."""

    share: float
    error: float

    def per_step(self, covered: float, step_ns: float) -> "_Wait":
        """At most: all waits lay within steps, which took a part of the time."""
        scale = step_ns / covered
        return _Wait(min(self.share * scale, step_ns), self.error * scale)


def _covered(run: Activity) -> float | None:
    """The part of the time of a lane, from its first step to the end of its last, that steps took."""
    known = run.cycles.filter(pl.col("start_ns").is_not_null(), pl.col("dur_ns") > 0)
    if known.is_empty():
        return None
    ends = (pl.col("start_ns") + pl.col("dur_ns")).max()
    lanes = known.group_by(LANE).agg(pl.col("dur_ns").sum() / (ends - pl.col("start_ns").min()))
    return min(float(lanes["dur_ns"].mean()), 1.0)  # type: ignore[arg-type]


def _wait(run: Sequence[Entity], metric: str) -> _Wait | None:
    """Summed over threads where the metric is of threads; a share of traced functions has no unit."""
    sampled = [entity for entity in run if entity.device == HOST and entity.unit is not None]
    known = {entity.metric: entity for entity in sampled if len(entity.values) > 1}
    if metric not in known or known[metric].role.waits is None:
        return None
    values = known[metric].values / (_PERCENT if known[metric].unit == "%" else 1.0)
    share, error = float(values.mean()), float(values.std(ddof=1)) / len(values) ** 0.5
    if known[metric].role.waits == "program":
        return _Wait(share, error)
    used = known.get(_CPU)
    if used is None or used.unit != _OF_A_CORE or share >= 1.0:
        return None
    cores = float(used.values.mean()) / _PERCENT
    return _Wait(cores * share / (1.0 - share), cores * error / (1.0 - share) ** 2)
