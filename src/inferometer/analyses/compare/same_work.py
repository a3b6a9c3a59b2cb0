"""Did both runs do the same work in a cycle, and if not, what makes their cycles comparable.

The ratio of calls per complete cycle, function by function: one common ratio far from 1 means that a cycle of the one
run is another unit of work than of the other, a layer against a step. Functions called once per cycle in the run with
the longer unit then mark the steps in the other: cycles between marks are one step. Without marks, times are divided by
the ratio. Whole windows hold any number of steps, so there the common ratio is always divided by.
"""

from collections import Counter
from itertools import pairwise
from typing import Literal

import msgspec
import numpy as np
import polars as pl
from msgspec.structs import replace
from numpy.typing import NDArray

from inferometer.analyses.compare.activity.activity import CYCLES, FUNCTIONS, HOST, LANE, OWNER, Activity
from inferometer.analyses.compare.matches import Match
from inferometer.analyses.compare.sampling_units import Units, Values
from inferometer.analyses.comparison_limits import MOST, OTHER_UNIT, SAME_CALLS

Flags = NDArray[np.bool_]
_TRIED = 200  # ratios of the most called functions
Side = Literal["base", "candidate"]


class Repair(msgspec.Struct, frozen=True):
    """How cycles of different units were made comparable.

    `merged`: cycles of `side` between marks became `whole_steps` steps of about `cycles_per_step`. `normalised`: the
    candidate's times were divided by `ratio`, and `why` says why no steps were made.
    """

    kind: Literal["merged", "normalised"]
    ratio: float
    side: Side | None = None
    marks: tuple[str, ...] = ()
    cycles_per_step: float | None = None
    whole_steps: int = 0
    step_times_ns: tuple[int, ...] = ()
    why: str = ""


class Amounts(msgspec.Struct, frozen=True):
    """Calls a cycle in both runs. `ratio`: the common one, candidate over base; None where most functions share none.

    `calls`: `function`, `cls`, `base_calls`, `candidate_calls`, `ratio`, `shares` of each function in both.
    """

    calls: pl.DataFrame
    ratio: float | None
    shared: int
    sharing: int

    @property
    def is_same_unit(self) -> bool:
        """Whether a cycle is the same amount of work in both runs, as far as calls show."""
        return self.ratio is not None and 1 / OTHER_UNIT <= self.ratio <= OTHER_UNIT

    def of_most_calls(self) -> tuple[float | None, int]:
        """The ratio of functions with most of the calls, if not most of the names, and how many these are.

        Layers repeat a few kernels; what is before and after them has many.
        """
        ratios, weights = self.calls["ratio"].to_numpy(), self.calls["base_calls"].to_numpy()
        for ratio in np.unique(ratios).tolist():
            alike = np.abs(ratios / ratio - 1) <= SAME_CALLS
            if weights[alike].sum() > MOST * weights.sum():
                return float(np.average(ratios[alike], weights=weights[alike])), int(alike.sum())
        return None, 0


def compare_amounts(base: Units, candidate: Units, matches: list[Match]) -> Amounts:
    """Calls a cycle of the functions that both runs have by name; of the device's, where it has any.

    A function shares a ratio if its calls are those expected by it, within a tenth; where the units differ, within one
    of the longer units that the run covers, since a recording may begin and end anywhere in one. Of functions that not
    every unit calls, a run may for the same reason hold one call more or less.
    """
    pairs = [
        {"base": match.base[0][0], "base_cls": match.base[0][1], "candidate": key[0], "candidate_cls": key[1]}
        for match in matches
        for key in match.candidate
        if len(match.base) == 1 and match.kind in ("same", "renamed")
    ]
    names = pl.DataFrame(pairs, schema=dict.fromkeys(("base", "base_cls", "candidate", "candidate_cls"), pl.String))
    left, right = (units.per_step.select("function", "cls", "calls") for units in (base, candidate))
    calls = (
        names.join(left, left_on=["base", "base_cls"], right_on=["function", "cls"])
        .rename({"calls": "base_calls"})
        .join(right, left_on=["candidate", "candidate_cls"], right_on=["function", "cls"])
        .rename({"calls": "candidate_calls", "base": "function", "base_cls": "cls"})
        .filter((pl.col("base_calls") > 0) & (pl.col("candidate_calls") > 0))
        .with_columns((pl.col("candidate_calls") / pl.col("base_calls")).alias("ratio"))
        .sort("base_calls", "function", descending=[True, False])
        .drop("candidate", "candidate_cls")
    )
    on_device = calls.filter(pl.col("cls") != HOST)
    calls = on_device if on_device.height else calls
    ratio, shares = _common(calls, base, candidate)
    return Amounts(calls.with_columns(pl.Series("shares", shares)), ratio, calls.height, int(shares.sum()))


def _common(calls: pl.DataFrame, base: Units, candidate: Units) -> tuple[float | None, Flags]:
    """The ratio that most functions share, and which do."""
    ratios = calls["ratio"].to_numpy()
    if not len(ratios):
        return None, np.zeros(0, dtype=bool)
    tried = np.unique(np.append(ratios[:_TRIED], 1.0))
    found = [_sharing(calls, float(ratio), base, candidate) for ratio in tried]
    best = max(range(len(tried)), key=lambda i: (found[i].sum(), -abs(np.log(tried[i]))))
    shares = found[best]
    if shares.mean() <= MOST:
        return None, np.zeros(len(ratios), dtype=bool)
    seen = calls["base_calls"].to_numpy() * base.steps + calls["candidate_calls"].to_numpy() * candidate.steps
    return _weighted_median(ratios[shares], seen[shares]), shares


def _sharing(calls: pl.DataFrame, ratio: float, base: Units, candidate: Units) -> Flags:
    ratios = calls["ratio"].to_numpy()
    allowed = SAME_CALLS
    in_cycles = not (base.windowed or candidate.windowed)
    if in_cycles and not 1 / OTHER_UNIT <= ratio <= OTHER_UNIT:
        covered = candidate.steps * ratio if ratio < 1 else base.steps / ratio
        allowed = max(allowed, min(1 / max(covered, 1), 0.5))
    alike = np.abs(ratios / ratio - 1) <= allowed
    return np.asarray(alike | _seldom(calls, ratio, base, candidate)) if in_cycles else np.asarray(alike)


def _seldom(calls: pl.DataFrame, ratio: float, base: Units, candidate: Units) -> Flags:
    """Functions that neither run calls in every unit, whose number of calls fits the ratio but for one in each run."""
    before, after = (calls[f"{side}_calls"].to_numpy() for side in ("base", "candidate"))
    one, other = 1 / max(base.steps, 1), 1 / max(candidate.steps, 1)
    fits = (after - other <= ratio * (before + one)) & (after + other >= ratio * (before - one))
    return np.asarray(fits & (before < 1) & (after < 1))


def _weighted_median(values: Values, weights: Values) -> float:
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(reached, reached[-1] / 2)])


def repair_units(
    base: Activity, candidate: Activity, amounts: Amounts, matches: list[Match], *, windows: bool
) -> tuple[Activity, Activity, Repair | None]:
    """Both runs with comparable cycles, as far as that can be had.

    Args:
        base: The run.
        candidate: The other.
        amounts: Of both as they are.
        matches: Functions of one name in both.
        windows: A run is one window: its length in steps is unknown, so calls are always normalised.
    """
    ratio = amounts.ratio
    if ratio is None or (amounts.is_same_unit and not windows):
        return base, candidate, None
    if amounts.is_same_unit or windows:
        why = "The runs are windows of any number of steps."
        return base, candidate, None if ratio == 1 else Repair("normalised", ratio, why=why)
    side: Side = "candidate" if ratio < 1 else "base"
    per_step = 1 / ratio if ratio < 1 else ratio
    fine = candidate if side == "candidate" else base
    marks = _marks(amounts, matches, side)
    ends = _find_ends(fine, marks, per_step)
    if ends is None:
        why = "No step boundary was found: no function is called once in each of the longer cycles."
        if marks:
            why = "No step boundary was found: between calls of the functions that mark one, cycles are missing."
        return base, candidate, Repair("normalised", ratio, why=why)
    merged = _merge(fine, ends.steps)
    times = tuple(merged.cycles["dur_ns"].to_list())
    found = Repair("merged", ratio, side, ends.marks, ends.cycles_per_step, len(times), times)
    return (base, merged, found) if side == "candidate" else (merged, candidate, found)


def _marks(amounts: Amounts, matches: list[Match], side: Side) -> list[str]:
    """Names, in the finer run, of the functions called once in a cycle of the coarser."""
    column = "base_calls" if side == "candidate" else "candidate_calls"
    once = amounts.calls.filter("shares", (pl.col(column) - 1).abs() <= SAME_CALLS)["function"].to_list()
    if side == "base":
        return once
    named = {match.base[0][0]: match.candidate[0][0] for match in matches if match.base and match.candidate}
    return [named[name] for name in once]


class _Ends(msgspec.Struct, frozen=True):
    """`steps`: `process`, `rank`, `cycle`, and the `step` that the cycle is part of."""

    steps: pl.DataFrame
    marks: tuple[str, ...]
    cycles_per_step: float


def _find_ends(fine: Activity, marks: list[str], per_step: float) -> _Ends | None:
    """Whole steps between marks: as many cycles as the ratio of calls says, each of them recorded and complete."""
    called = fine.functions.filter(pl.col("function").is_in(marks)).select(*OWNER, "cycle", "function").unique()
    steps: list[pl.DataFrame] = []
    used: Counter[str] = Counter()
    complete = fine.cycles.group_by(*OWNER, "cycle").agg(pl.col("complete").all())
    for (process, rank), rows in called.group_by(OWNER, maintain_order=True):
        sets = rows.sort("cycle").group_by("function", maintain_order=True).agg("cycle")
        alike = Counter(tuple(cycles) for cycles in sets["cycle"])
        at = max(alike, key=lambda cycles: (alike[cycles], -len(cycles), cycles))
        used.update(name for name, cycles in sets.iter_rows() if tuple(cycles) == at)
        own = complete.filter(pl.col("process").eq_missing(process), pl.col("rank").eq_missing(rank))
        whole = set(own.filter("complete")["cycle"].to_list())
        number = 0
        for first, last in pairwise(at):
            between = range(first, last)
            if abs(len(between) / per_step - 1) <= SAME_CALLS and whole.issuperset(between):
                number += 1
                steps.append(own.filter(pl.col("cycle").is_between(first, last - 1)).with_columns(step=number))
    if not steps:
        return None
    every = pl.concat(steps)
    every = every.with_columns(pl.col("step").cast(pl.Int64))
    return _Ends(every.select(*OWNER, "cycle", "step"), tuple(sorted(used)), every.height / len(steps))


def _merge(fine: Activity, steps: pl.DataFrame) -> Activity:
    """The run in whole steps. A step lasts from its first cycle's start to the next step's, where starts are known."""
    by = [*OWNER, "cycle"]
    step = pl.col("step").alias("cycle")
    functions = (
        fine.functions.join(steps, on=by, nulls_equal=True)
        .group_by("step", *LANE, "function", "cls", maintain_order=True)
        .agg(
            pl.col("dur_ns", "calls").sum(),
            pl.when(pl.col("cost_ns").is_not_null().any()).then(pl.col("cost_ns").fill_null(pl.col("dur_ns")).sum()),
            pl.col("spread_ns").first(),
        )
        .with_columns(step)
        .select(list(FUNCTIONS))
    )
    ordered = fine.cycles.sort(*LANE, "cycle")
    until_next = (pl.col("start_ns").shift(-1).over(LANE) - pl.col("start_ns")).alias("until_next_ns")
    lasting = pl.when(pl.col("idle_ns").is_null()).then(pl.coalesce("until_next_ns", "dur_ns")).otherwise("dur_ns")
    cycles = (
        ordered.with_columns(until_next)
        .with_columns(lasting.alias("dur_ns"))
        .join(steps, on=by, nulls_equal=True)
        .group_by("step", *LANE, maintain_order=True)
        .agg(
            pl.col("start_ns").min(),
            pl.col("dur_ns").sum(),
            _sum_or_null("idle_ns"),
            _sum_or_null("overlap_ns"),
            pl.col("anchor").first(),
            pl.col("complete").all(),
        )
        .with_columns(step)
        .select(list(CYCLES))
    )
    return replace(fine, functions=functions, cycles=cycles)


def _sum_or_null(column: str) -> pl.Expr:
    return pl.when(pl.col(column).null_count() < pl.len()).then(pl.col(column).sum())
