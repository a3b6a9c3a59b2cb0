"""Do like steps get slower over the run, or along a decode run? Robust slopes with intervals, and what carries them.

Like steps have one phase and one number of tokens; disturbed steps, and those of other work, are left out. Two things
may move their times: the run goes on (clocks, heat, fragmentation, other load), which is drift, and a request's context
grows. Where the context is recorded it stands for itself; elsewhere the position does: the number of decode steps since
a step of another phase. Each slope is of what a straight line over the other leaves (Frisch, Waugh, Lovell). Where the
two go together, as in a single decode run, they can't be separated: then one slope is given.

A slope is the median of the slopes of all pairs, its 99 % interval that of Kendall's rank test (Theil; P. K. Sen, J.
Am. Stat. Assoc. 63, 1968). Longer series are medians of stretches first, so that neighbours that resemble each other
count once. It is a trend where its interval leaves out 0 and the change is above the noise.
"""

from collections.abc import Iterator
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl

from inferometer.analyses.comparison_limits import BLOCKS
from inferometer.analyses.steps.disturbances import FEWEST, Values, numbers

WALL, BUSY, GAP, CLASS = "wall", "busy", "gap", "class"
TIME, POSITION, BOTH, CONTEXT = "time", "position", "both", "context"

LEAST = 0.01
"""A change over the run below this part of the median is none: clocks of GPUs wander by a percent in healthy runs."""

TOGETHER = 0.9
"""Time and position that correlate by more than this can't be distinguished: the variance of either slope is more than
five times (1 / (1 - 0.9²)) that which it would have alone."""

CARRIES = 0.1
"""A class carries a trend where its own change is this part of the whole change, in the same direction."""

GROUPS = 4
"""Kinds of like steps to look at, the most frequent ones."""

CLASSES = 40
"""Classes of a kind of steps to look at, those with the most time: the others have too little to carry anything."""

CONFIDENCE = 0.99
"""Of intervals. A run has up to a dozen trends to ask for, of which one in two would be found by chance at 95 %."""

_Z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
TRENDS = pl.Schema(
    {
        "phase": pl.String(),
        **dict.fromkeys(("tokens", "steps"), pl.Int64()),
        **dict.fromkeys(("over", "of", "class"), pl.String()),
        **dict.fromkeys(("median_ns", "slope_ns", "low_ns", "high_ns", "change_ns", "share"), pl.Float64()),
        "is_trend": pl.Boolean(),
    }
)


def find_trends(steps: pl.DataFrame, class_steps: pl.DataFrame) -> pl.DataFrame:
    """Columns `TRENDS`: for each kind of like steps the trends of wall, busy and gap time and of what carries them.

    `over` is `time` or `position`; where they can't be distinguished, it is `both`, or `context` where that is
    recorded. `slope_ns` is of one step on, with its interval; `change_ns` what that makes from the first to the last of
    the steps (from position 0 to the last), and `share` that as part of `median_ns`. `of` is `wall`, `busy`, `gap` or
    `class`; classes are listed where they carry a trend of the busy time, or, where that isn't known, of the wall time.

    Args:
        steps: In order of time: `step`, `phase`, `tokens`, `mean_kv`, `wall_ns`, `gpu_busy_ns`, `gap_ns`, `judged`,
            `used`.
        class_steps: `step`, `class`, `total_ns`.
    """
    placed = steps.with_columns(_positions(steps), pl.int_range(pl.len(), dtype=pl.Int64).alias("at"))
    like = placed.filter(pl.col("used") & pl.col("judged").fill_null(value=False))
    kinds = like.group_by("phase", "tokens", maintain_order=True).len().filter(pl.col("len") >= FEWEST)
    kinds = kinds.sort("len", descending=True, maintain_order=True).head(GROUPS)
    rows: list[dict[str, Any]] = []
    for phase, tokens, count in kinds.iter_rows():
        own = like.filter(pl.col("phase").eq_missing(phase), pl.col("tokens").eq_missing(tokens))
        kind = {"phase": phase, "tokens": tokens, "steps": count}
        rows += (kind | row for row in _of_kind(own, class_steps))
    return pl.DataFrame(rows, schema=TRENDS)


def _positions(steps: pl.DataFrame) -> pl.Series:
    """Decode steps since a step of another phase; null of steps that don't decode."""
    is_decode = (steps["phase"] == "decode").fill_null(value=False)
    order = np.arange(steps.height)
    others = np.where(is_decode.to_numpy(), -1, order)
    since = order - np.maximum.accumulate(others) - 1 if steps.height else order
    return pl.select(pl.when(is_decode).then(pl.Series(since)).alias("position")).to_series()


def _of_kind(steps: pl.DataFrame, class_steps: pl.DataFrame) -> Iterator[dict[str, Any]]:
    for over, x, span in _axes(steps):
        carried = None
        for of, column in ((WALL, "wall_ns"), (BUSY, "gpu_busy_ns"), (GAP, "gap_ns")):
            if steps[column].null_count():
                continue
            found = _trend(x, numbers(steps[column]), span)
            yield {"over": over, "of": of, **found}
            if of != GAP:
                carried = found
        if carried is not None and carried["is_trend"]:
            yield from ({"over": over, **row} for row in _carriers(steps, class_steps, x, span, carried))


Axis = tuple[Values, Values | None]
"""Values to take slopes over, and what a straight line is taken out over before."""


def _axes(steps: pl.DataFrame) -> Iterator[tuple[str, Axis, float]]:
    """Over what to look for trends, and how far the steps reach along it."""
    time = numbers(steps["at"])
    has_context = steps["mean_kv"].null_count() == 0
    other = numbers(steps["mean_kv" if has_context else "position"])
    if np.isnan(other).any() or not np.ptp(other):
        yield TIME, (time, None), float(np.ptp(time))
    elif abs(float(np.corrcoef(time, other)[0, 1])) > TOGETHER:
        yield CONTEXT if has_context else BOTH, (time, None), float(np.ptp(time))
    else:
        yield TIME, (time, other), float(np.ptp(time))
        if not has_context:  # what grows with a context that is known, `growth` says
            yield POSITION, (other, time), float(np.ptp(other))


def _carriers(
    steps: pl.DataFrame, class_steps: pl.DataFrame, x: Axis, span: float, carried: dict[str, Any]
) -> list[dict[str, Any]]:
    """Classes whose own trends make a good part of the whole, the largest first."""
    rows = class_steps.join(steps.select("step").with_row_index("row"), on="step")
    sums = rows.group_by("class").agg(pl.col("total_ns").sum()).sort("total_ns", "class", descending=[True, False])
    found = []
    for name in sums["class"].head(CLASSES):
        own = rows.filter(pl.col("class") == name)
        times = np.zeros(steps.height)
        times[own["row"].to_numpy()] = own["total_ns"].to_numpy()
        trend = _trend(x, times, span)
        if trend["is_trend"] and trend["change_ns"] / carried["change_ns"] >= CARRIES:
            found.append({"of": CLASS, "class": name, **trend})
    return sorted(found, key=lambda row: -abs(row["change_ns"]))


def _trend(axis: Axis, times_ns: Values, span: float) -> dict[str, Any]:
    """The slope with its interval, and whether it is one above the noise."""
    x, control = axis
    median = float(np.median(times_ns))
    y = times_ns
    if control is not None:
        x, y = _left_over(x, control), _left_over(y, control)
    slope, low, high = slope_interval(x, y)
    left = y - slope * x
    noise = float(np.median(np.abs(left - np.median(left))))
    change = slope * span
    is_above = abs(change) > max(noise, LEAST * abs(median))
    return {
        "median_ns": median,
        "slope_ns": slope,
        "low_ns": low,
        "high_ns": high,
        "change_ns": change,
        "share": change / median if median > 0 else None,
        "is_trend": bool(is_above and (low > 0 or high < 0)),
    }


def _left_over(values: Values, control: Values) -> Values:
    """What a straight line over `control`, by least squares, leaves of `values`."""
    run = control - control.mean()
    rise = values - values.mean()
    return np.asarray(rise - run * (float(run @ rise) / float(run @ run)))


def slope_interval(x: Values, y: Values) -> tuple[float, float, float]:
    """Median of the slopes of all pairs, with its 99 % interval by Kendall's rank test; (0, 0, 0) of equal x.

    Args:
        x: Where each value is. Shape (n,), any order; more than `BLOCKS` values become medians of so many stretches.
        y: The values.
    """
    order = np.argsort(x, kind="stable")
    x, y = x[order], y[order]
    if len(x) > BLOCKS:
        x, y = (np.array([np.median(part) for part in np.array_split(values, BLOCKS)]) for values in (x, y))
    first, second = np.triu_indices(len(x), 1)
    run = x[second] - x[first]
    slopes = np.sort((y[second] - y[first])[run > 0] / run[run > 0])
    if not len(slopes):
        return 0.0, 0.0, 0.0
    n, k = len(x), len(slopes)
    reach = _Z * (n * (n - 1) * (2 * n + 5) / 18) ** 0.5
    low = int((k - reach) // 2) - 1  # the rank before, counted from 0
    if low < 0:
        return float(np.median(slopes)), float("-inf"), float("inf")
    return float(np.median(slopes)), float(slopes[low]), float(slopes[k - 1 - low])
