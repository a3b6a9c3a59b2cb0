"""May two runs be compared at all: the same hardware, whole files, the same work in a step, functions in common."""

from typing import Any

import msgspec
import polars as pl

from inferometer.analyses.compare.activity.printed_activity import compared_steps, context_range, is_by_step, overlap
from inferometer.analyses.compare.changes import Changes
from inferometer.analyses.compare.phases import Means, PhaseChanges, Sides
from inferometer.analyses.compare.sampling_units import REMAINDERS
from inferometer.analyses.comparison_limits import MIN_SHARED, MORE_CALLS, MOST, OTHER_UNIT
from inferometer.analyses.hardware.devices import device_of
from inferometer.analyses.lost_work import say_lost_work
from inferometer.trace.trace import Trace

_WORK = ("batch", "prefill_tokens", "decode_tokens")


class Comparable(msgspec.Struct, frozen=True):
    """`ok`: as recorded; `repair`: how it was made so else. `stops`: only families can be set side by side."""

    ok: bool
    why: str
    repair: str | None
    step_ratio: float | None
    step_ratio_interval: tuple[float, float] | None
    stops: bool = False

    def as_json(self) -> dict[str, Any]:
        interval = self.step_ratio_interval
        return {
            "ok": self.ok,
            "why": self.why,
            "repair": self.repair,
            "step_ratio": self.step_ratio,
            "step_ratio_interval": None if interval is None else list(interval),
        }


def check_comparable(
    base: Trace, candidate: Trace, leading: PhaseChanges, sides: Sides, *, has_times: bool
) -> Comparable:
    """Hardware first, then whether all was read, what a step is, and what it holds; of the leading changes."""
    changes = leading.changes
    ratio, interval = changes.step_ratio, changes.step_ratio_interval
    hardware = _other_hardware(base, candidate)
    if hardware:
        return Comparable(False, hardware, None, None, None, stops=True)
    if damage := _damaged_files(base, candidate):
        return Comparable(False, damage, None, None, None, stops=True)
    if not has_times:
        return Comparable(True, "No function times in one of the runs: only counters are compared.", None, None, None)
    work = _other_work(base, candidate) or _other_marks(leading, sides)
    if work:
        return Comparable(False, work, None, None, None, stops=True)
    repair = changes.repair
    if repair is None and _differs_in_kind(leading):
        why = f"The {changes.amounts.shared} shared functions are called in no common ratio: the steps differ in kind."
        return Comparable(False, why, None, None, None, stops=True)
    shared = _shared_time(changes)
    if shared is not None and shared < MOST and not _is_one_program(leading):
        why = f"Functions of both runs have only {shared:.0%} of the time of a step: these are different programs."
        return Comparable(False, why, None, None, None, stops=True)
    if repair is not None and repair.kind == "merged":
        cycles = f"{repair.cycles_per_step or 0:.0f}"
        why = f"A cycle of the {repair.side} is another unit of work: {cycles} of them make one of the other run."
        how = f"{repair.whole_steps} whole steps of {cycles} cycles, marked by {', '.join(repair.marks[:3])}"
        return Comparable(False, why, how, ratio, interval)
    if repair is not None:
        how = f"times divided by {repair.ratio:.3g}, the common ratio of calls. {repair.why}".strip()
        return Comparable(False, "The runs hold different amounts of work.", how, ratio, interval)
    if changes.work is not None and changes.work.ratio is not None:
        return Comparable(True, f"Both runs mark their steps. {changes.work.describe()}", None, ratio, interval)
    return Comparable(True, _same_work(changes), None, ratio, interval)


def _differs_in_kind(leading: PhaseChanges) -> bool:
    """Whether a step calls what both runs have in no common ratio, and nothing says that it had the same to do."""
    means = (leading.pair.means or {}).values()
    if leading.pair.marked and any(before and after for before, after in means):
        return False
    amounts = leading.changes.amounts
    return amounts.ratio is None and amounts.shared >= MIN_SHARED and amounts.of_most_calls()[0] is None


def _is_one_program(leading: PhaseChanges) -> bool:
    """Whether marked steps call most of what they call as often in both runs, whatever takes most of their time."""
    amounts = leading.changes.amounts
    ratio, functions = amounts.of_most_calls()
    if not leading.pair.marked or ratio is None or functions < MIN_SHARED or abs(ratio - 1) > MORE_CALLS:
        return False
    lines = [line for line in leading.changes.contributions if line.added and line.cls not in REMAINDERS]
    lone = sum(max(line.base_calls, line.candidate_calls) for line in lines if line.kind in ("new", "gone"))
    return lone < MOST * sum(max(line.base_calls, line.candidate_calls) for line in lines)


def _same_work(changes: Changes) -> str:
    """How often a step calls what both runs have, where that is one amount of work as far as calls show."""
    amounts = changes.amounts
    ratio = amounts.ratio or 1.0
    often = "as often" if abs(ratio - 1) <= MORE_CALLS else f"{ratio:.2f} times as often"
    lone = any(line.kind in ("new", "gone") for line in changes.contributions if line.added)
    if amounts.sharing == amounts.shared and not lone:
        return f"Same functions, called {often} in a step."
    return f"{amounts.sharing:,} of {amounts.shared:,} functions of both runs are called {often} in a step."


def other_model_or_hardware(base: Trace, candidate: Trace) -> str | None:
    """Why two runs are of different things, as far as their files show what they ran, and on what."""
    return _other_hardware(base, candidate) or _other_model(base, candidate)


def _other_model(base: Trace, candidate: Trace) -> str | None:
    if base.facts.model and candidate.facts.model and base.facts.model != candidate.facts.model:
        return f"The runs are of different models: {base.facts.model} against {candidate.facts.model}."
    return None


def _other_hardware(base: Trace, candidate: Trace) -> str | None:
    names = [_device_names(trace) for trace in (base, candidate)]
    if names[0] and names[1] and names[0] != names[1]:
        one, other = (" and ".join(sorted(each)) for each in names)
        return f"The runs were made on different hardware: {one} against {other}."
    return None


def _damaged_files(base: Trace, candidate: Trace) -> str | None:
    """Which of the runs lack rows that can't be counted; whole steps of a log are known all the same."""
    found = [
        (side, lost)
        for side, trace in (("base", base), ("candidate", candidate))
        if not is_by_step(trace) and (lost := say_lost_work(trace.losses))
    ]
    if not found:
        return None
    said = " and ".join(f"the file of the {side} {lost}" for side, lost in found)
    return f"{said[0].upper()}{said[1:]}: how much work is missing isn't known."


def _device_names(trace: Trace) -> frozenset[str]:
    """Models of the devices that the file describes; our name for one where we know it."""
    found = set()
    for traced in trace.facts.devices:
        known = device_of(traced)
        if traced.name is not None:
            found.add(known.name if known else traced.name)
    return frozenset(found)


def _other_work(base: Trace, candidate: Trace) -> str | None:
    """What a step had to do, where the engine says so."""
    if model := _other_model(base, candidate):
        return model
    work = _other_amount({column: (_mean(base, column), _mean(candidate, column)) for column in _WORK})
    if work:
        return work
    phases = [
        set(trace.steps.select(pl.col("phase").drop_nulls().unique()).collect()["phase"]) for trace in (base, candidate)
    ]
    if phases[0] and phases[1] and not phases[0] & phases[1]:
        one, other = (" and ".join(sorted(each)) for each in phases)
        return _other_phases(one, other)
    first, second = context_range(base), context_range(candidate)
    if first and second and overlap(first, second) is None:
        one, other = (f"{low:,} to {high:,}" for low, high in (first, second))
        return f"No steps with the same length of context: {one} tokens against {other}."
    return None


def _other_marks(leading: PhaseChanges, sides: Sides) -> str | None:
    """The same of steps that were marked or found among launches."""
    if sides.disjoint:
        return _other_phases(*sides.disjoint)
    return _other_amount(leading.pair.means or {})


def _other_phases(one: str, other: str) -> str:
    return f"The runs are of different phases: {one} against {other}."


def _other_amount(means: Means) -> str | None:
    for column, (before, after) in means.items():
        if before and after and not 1 / OTHER_UNIT <= after / before <= OTHER_UNIT:
            return (
                f"A step does other work: {column.replace('_', ' ')} of {before:,.1f} against {after:,.1f} on average."
            )
    return None


def _mean(trace: Trace, column: str) -> float | None:
    steps = compared_steps(trace) if is_by_step(trace) else trace.steps.select(column).collect()
    value = steps.select(pl.col(column).mean()).item()
    return None if value is None else float(value)


def _shared_time(changes: Changes) -> float | None:
    """The share of a step's function time, in the run that has less of it, of functions that both runs have."""
    lines = [line for line in changes.contributions if line.added and line.cls not in REMAINDERS]
    shares = []
    for times, lone in (([line.base_ns for line in lines], "gone"), ([line.candidate_ns for line in lines], "new")):
        whole = sum(times)
        shared = sum(ns for ns, line in zip(times, lines, strict=True) if line.kind != lone)
        if whole > 0:
            shares.append(shared / whole)
    return min(shares) if shares else None
