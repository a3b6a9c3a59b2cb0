"""What was different in a disturbed step: which classes of kernels took longer, or ran more often, and the host's gap.

The excess of a step (of its busy time, and of its gap) is parted among the classes of kernels: what each took beyond
its usual time at this context, as `disturbances` learns it from the phase's steps. Time is conserved: the parts
that are reported, and a last one, the rest, add up to the excess. The rest holds what is too small to tell, and what
kernels on several streams did at once, which is no busy time twice. Small classes have a median for a line.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from inferometer.analyses.steps.disturbances import (
    SMALL_CLASS,
    Flags,
    Phase,
    Usual,
    Values,
    judged_together,
    numbers,
)

GAP, REST = "host gap", "rest"
SLOWER, FASTER, MORE, FEWER, ONLY_HERE, MISSING = (
    *("slower", "faster", "more launches", "fewer launches"),
    *("only here", "missing"),
)
TOLD = 0.02
"""Parts below this of a step's excess are of the rest."""

MOST = 8
"""Parts of one step to tell: what comes after the largest eight explains nobody's step."""

BY_LAUNCHES = 0.5
"""From this part of its excess on, a class counts as run more often, not as slower."""

DIFFERENCES = pl.Schema(
    {
        "step": pl.Int64(),
        **dict.fromkeys(("phase", "what", "class"), pl.String()),
        **dict.fromkeys(("excess_ns", "found_ns", "usual_ns", "launches"), pl.Int64()),
        "usual_launches": pl.Float64(),
    }
)


def find_differences(steps: pl.DataFrame, class_steps: pl.DataFrame) -> pl.DataFrame:
    """Columns `DIFFERENCES`: for each disturbed step what was different, the largest part first and the rest last.

    `what` is `slower`, `faster`, `more launches`, `fewer launches`, `only here` (the class runs in no undisturbed step
    of the phase), `missing`, `host gap` or `rest`. `usual_ns` is expected at the step's context, `usual_launches` the
    median; launches are null where the source doesn't count them. The parts of a step add up to its `excess_ns` and
    `gap_excess_ns` together.

    Args:
        steps: As `disturbances.find_disturbed` returns them.
        class_steps: Columns as `class_times.CLASS_STEPS`.
    """
    rows: list[dict[str, Any]] = []
    for own, own_classes in judged_together(steps, class_steps):
        if own["disturbed"].any():
            rows += _of_like_steps(own, own_classes)
    return pl.DataFrame(rows, schema=DIFFERENCES).sort("step", maintain_order=True)


def _of_like_steps(steps: pl.DataFrame, class_steps: pl.DataFrame) -> Iterator[dict[str, Any]]:
    parts = _class_parts(steps, class_steps)
    for row in steps.filter("disturbed").iter_rows(named=True):
        gap_ns = row["gap_excess_ns"] or 0
        excess_ns = (row["excess_ns"] or 0) + gap_ns
        gap = {"what": GAP, "excess_ns": gap_ns, "found_ns": row["gap_ns"], "usual_ns": _less(row["gap_ns"], gap_ns)}
        known = [part for part in (gap, *parts.get(row["step"], ())) if abs(part["excess_ns"]) > TOLD * abs(excess_ns)]
        known = sorted(known, key=lambda part: -abs(part["excess_ns"]))[:MOST]
        rest = {"what": REST, "excess_ns": excess_ns - sum(part["excess_ns"] for part in known)}
        yield from ({"step": row["step"], "phase": row["phase"], **part} for part in (*known, rest))


def _less(found_ns: int | None, excess_ns: int) -> int | None:
    return None if found_ns is None else found_ns - excess_ns


def _class_parts(steps: pl.DataFrame, class_steps: pl.DataFrame) -> dict[int, list[dict[str, Any]]]:
    """For each disturbed step, every class with what it took beyond its usual time there."""
    phase = Phase.of(steps, class_steps)
    disturbed = steps["disturbed"].to_numpy()
    whole = int(class_steps["total_ns"].sum())
    parts: dict[int, list[dict[str, Any]]] = {step: [] for step in steps.filter("disturbed")["step"]}
    ran = class_steps.filter(pl.col("class").is_in(_classes_to_ask(steps, class_steps, whole)))
    numbered = ran.join(steps.select("step").with_row_index("row"), on="step")
    for (name,), own in sorted(numbered.partition_by("class", as_dict=True).items()):
        at = own["row"].to_numpy()
        times = _spread(at, numbers(own["total_ns"]), steps.height)
        launches = _spread(at, numbers(own["calls"]), steps.height)
        usual = _usual_times(times, phase, is_small=int(own["total_ns"].sum()) < SMALL_CLASS * whole)
        quiet = phase.own & ~disturbed
        for i in np.flatnonzero(disturbed).tolist():
            found = _part(times, launches, usual, quiet, i)
            if found["excess_ns"]:
                parts[steps["step"][i]].append({"class": name, **found})
    return parts


def _classes_to_ask(steps: pl.DataFrame, class_steps: pl.DataFrame, whole_ns: int) -> list[str]:
    """Classes that ran in a disturbed step, or take enough time for their absence to be felt."""
    disturbed = steps.filter("disturbed").select("step")
    there = class_steps.join(disturbed, on="step", how="semi")["class"]
    sums = class_steps.group_by("class").agg(pl.col("total_ns").sum())
    large = sums.filter(pl.col("total_ns") >= SMALL_CLASS * whole_ns)["class"]
    return pl.concat([there, large]).unique().to_list()


def _spread(at: Any, values: Values, count: int) -> Values:
    """Values of the steps that have some; 0 in the others: a class that didn't run took no time."""
    spread = np.zeros(count)
    spread[at] = values
    return spread


def _usual_times(times_ns: Values, phase: Phase, *, is_small: bool) -> Values:
    """What the class usually takes in each step; a class that most steps lack takes nothing."""
    if is_small or np.median(times_ns[phase.own]) == 0:
        each = float(np.median(times_ns[phase.own] / phase.units[phase.own]))
        return each * phase.units
    return Usual.of(times_ns, phase).expected_ns


def _part(times_ns: Values, launches: Values, usual_ns: Values, quiet: Flags, i: int) -> dict[str, Any]:
    is_counted = not np.isnan(launches).any() and bool(quiet.any())
    usual_launches = float(np.median(launches[quiet])) if is_counted else np.nan
    excess_ns = round(times_ns[i] - usual_ns[i])
    each_ns = usual_ns[i] / usual_launches if usual_launches != 0 else 0.0
    by_launches = (launches[i] - usual_launches) * each_ns if each_ns else float(excess_ns)
    return {
        "what": _kind(excess_ns, by_launches, ran=times_ns[i] > 0, is_usual=bool((times_ns[quiet] > 0).any())),
        "excess_ns": excess_ns,
        "found_ns": round(times_ns[i]),
        "usual_ns": round(times_ns[i]) - excess_ns,
        "launches": round(launches[i]) if is_counted else None,
        "usual_launches": usual_launches if is_counted else None,
    }


def _kind(excess_ns: int, by_launches_ns: float, *, ran: bool, is_usual: bool) -> str:
    if not is_usual:
        return ONLY_HERE
    if not ran:
        return MISSING
    is_number = not np.isnan(by_launches_ns) and by_launches_ns * excess_ns >= BY_LAUNCHES * excess_ns**2
    if excess_ns > 0:
        return MORE if is_number else SLOWER
    return FEWER if is_number else FASTER
