"""Two runs side by side, phase by phase where the steps of both show theirs, and which phase a verdict rests on.

A recording holds as many prefill and decode steps as happened to fall into it, so a mean over all of them says little:
each phase is compared by itself. A verdict rests on a phase that did the same work in both runs. Decode steps do, up to
`OTHER_UNIT` of their tokens, since they read all weights at any batch; prefill and mixed steps only where their tokens
are known and agree: longer prompts take longer. Of such phases the slower one leads that costs the run most, else the
one with most time.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import polars as pl

from inferometer.analyses.compare.activity.activity import Activity
from inferometer.analyses.compare.activity.launch_activity import LaunchedRun, read_launches
from inferometer.analyses.compare.activity.printed_activity import activity_of_steps, is_by_step, shared_contexts
from inferometer.analyses.compare.activity.sources import activity
from inferometer.analyses.compare.activity.step_marks import TOKENS, Marks, are_marked_alike, find_marks, shared_marks
from inferometer.analyses.compare.changes import Changes
from inferometer.analyses.compare.slowdown import Slowdown
from inferometer.analyses.comparison_limits import FEWEST_OF_PHASE, MIN_CHANGE, OTHER_UNIT
from inferometer.trace.trace import Trace

SIDES = ("Base", "Candidate")
_DECODE = "decode"
Means = Mapping[str, tuple[float | None, float | None]]


class Pair(msgspec.Struct, frozen=True):
    """What both runs did, in steps of `phase` (of unknown phase: None), or in all of them where not `by_phase`.

    `means`: of each of `TOKENS`, those of a step of either run, None where not known. `marked`: both runs mark these
    steps, in the same way, so that a step of the one is one of the other, whatever is called in it.
    """

    base: Activity
    candidate: Activity
    by_phase: bool = False
    phase: str | None = None
    means: Means | None = None
    marked: bool = False

    @property
    def name(self) -> str:
        """The phase in words; empty where it is all steps."""
        return (self.phase or "unknown") if self.by_phase else ""

    @property
    def does_same_work(self) -> bool:
        """Whether a verdict may rest on these steps, next to others."""
        ratios = [ratio for ratio in _ratios(self.means or {}) if ratio]
        if self.phase == _DECODE:
            return all(1 / OTHER_UNIT <= ratio <= OTHER_UNIT for ratio in ratios)
        return bool(ratios) and all(abs(ratio - 1) <= MIN_CHANGE for ratio in ratios)


class Sides(msgspec.Struct, frozen=True):
    """Both runs. `marks`: their steps; None where they come from no launches. `pairs`: what is compared, at least one.

    `disjoint`: the phases of the one and of the other, where all are known and none is in both.
    """

    pairs: tuple[Pair, ...]
    marks: tuple[Marks | None, Marks | None] = (None, None)
    disjoint: tuple[str, str] | None = None
    about_phases: tuple[str, ...] = ()

    def notes(self) -> Iterator[str]:
        """Where steps come from, as far as it isn't plain, and what is reported of their phases."""
        for side, marks in zip(SIDES, self.marks, strict=True):
            yield from (f"{side}: {note}" for note in (marks.notes if marks else ()))
        yield from self.about_phases

    def describe_found(self) -> str:
        """What delimits the steps of either run, where those of one were found and not marked; else nothing."""
        if not any(marks and marks.looked_for and not marks.is_doubtful for marks in self.marks):
            return ""
        named = (f"{side.lower()} by {_source(marks)}" for side, marks in zip(SIDES, self.marks, strict=True))
        return "; ".join(named)

    def as_json(self) -> dict[str, Any]:
        return {
            side.lower(): None if marks is None else _as_json(marks)
            for side, marks in zip(SIDES, self.marks, strict=True)
        }


class PhaseChanges(msgspec.Struct, frozen=True):
    """The changes of one pair, and what slowed in it."""

    pair: Pair
    changes: Changes
    slowdown: Slowdown

    def as_json(self) -> dict[str, Any]:
        changes, interval = self.changes, self.changes.step_ratio_interval
        return {
            "phase": self.pair.phase,
            "base_steps": changes.base_steps,
            "candidate_steps": changes.candidate_steps,
            "base_step_ns": changes.base_step_ns,
            "candidate_step_ns": changes.candidate_step_ns,
            "step_ratio": changes.step_ratio,
            "step_ratio_interval": None if interval is None else list(interval),
            "speed": self.slowdown.speed,
            "same_work": self.pair.does_same_work,
            "contributions": [line.as_json() for line in changes.contributions],
        }


def read_sides(base: Trace, candidate: Trace) -> Sides:
    """What both runs did: phase by phase where both have launches in steps that show their phases."""
    if not (_has_launches(base) and _has_launches(candidate)):
        return _as_recorded(base, candidate)
    found = shared_marks(base, candidate)
    runs = _alike(read_launches(base, found[0]), read_launches(candidate, found[1]), base, candidate)
    marks = runs[0].marks, runs[1].marks
    phases = [run.phases() for run in marks]
    shared = [phase for phase in phases[0] if min(counts.get(phase, 0) for counts in phases) >= FEWEST_OF_PHASE]
    if not any(shared):  # none but the unknown
        marked = are_marked_alike(marks) and set(phases[0]) == set(phases[1]) and len(phases[0]) == 1
        whole = Pair(runs[0].activity(), runs[1].activity(), means=_means(marks, every=True), marked=marked)
        return Sides((whole,), marks, _disjoint(phases), tuple(_without_phases(phases)))
    pairs = [_of_phase(runs, phase) for phase in sorted(shared, key=lambda phase: (phase is None, phase))]
    return Sides(tuple(pairs), marks, about_phases=tuple(_without_like(marks, shared)))


def _alike(first: LaunchedRun, second: LaunchedRun, base: Trace, candidate: Trace) -> tuple[LaunchedRun, LaunchedRun]:
    """Both in steps or both as whole recordings: a step of the one is no window of the other, which begins anywhere."""
    if first.marks.steps.is_empty() == second.marks.steps.is_empty():
        return first, second
    if first.marks.steps.is_empty():
        return first, read_launches(candidate, second.marks.without_steps())
    return read_launches(base, first.marks.without_steps()), second


def choose_leading(each: Sequence[PhaseChanges]) -> PhaseChanges:
    """The one on which the verdict rests."""
    alike = [one for one in each if one.pair.does_same_work] or each
    slower = [one for one in alike if one.slowdown.speed == "slower"]
    if slower:
        return max(slower, key=lambda one: one.changes.step_delta_ns * one.changes.base_steps)
    return max(alike, key=lambda one: one.changes.base_step_ns * one.changes.base_steps)


def _as_recorded(base: Trace, candidate: Trace) -> Sides:
    """All steps of runs of which at most one has launches."""
    contexts = shared_contexts(base, candidate)
    if is_by_step(base) and is_by_step(candidate):  # a log has only sums, the recording of such a run both
        return Sides((Pair(activity_of_steps(base, contexts), activity_of_steps(candidate, contexts)),))
    first, second = (find_marks(trace) if _has_launches(trace) else None for trace in (base, candidate))
    left = activity(base, contexts) if first is None else read_launches(base, first).activity()
    right = activity(candidate, contexts) if second is None else read_launches(candidate, second).activity()
    return Sides((Pair(left, right, marked=_are_delimited_alike(left, right)),), (first, second))


def _are_delimited_alike(base: Activity, candidate: Activity) -> bool:
    """Whether the sources delimit cycles by the same function, so that a cycle of the one is one of the other."""
    anchors = [run.cycles["anchor"].drop_nulls().unique().to_list() for run in (base, candidate)]
    by_source = base.basis == candidate.basis == "function_times"
    return by_source and len(anchors[0]) == 1 and anchors[0] == anchors[1]


def _has_launches(trace: Trace) -> bool:
    """Whether `activity` would take its launches."""
    tables = [name for name in ("function_times", "launches") if name in trace.scope]
    rows = [name for name in tables if trace.tables[name].head(1).select(pl.len()).collect().item()]
    return rows[:1] == ["launches"]


def _of_phase(runs: tuple[LaunchedRun, LaunchedRun], phase: str | None) -> Pair:
    marks = runs[0].marks, runs[1].marks
    return Pair(
        runs[0].of_phase(phase), runs[1].of_phase(phase), by_phase=True, phase=phase, means=_means(marks, phase),
        marked=are_marked_alike(marks),
    )  # fmt: skip


def _means(marks: tuple[Marks, Marks], phase: str | None = None, *, every: bool = False) -> Means:
    of = pl.lit(value=True) if every else pl.col("phase").eq_missing(pl.lit(phase, pl.String))
    first, second = (run.steps.filter(of, ~pl.col("left_out")).select(pl.col(TOKENS).mean()).row(0) for run in marks)
    return dict(zip(TOKENS, zip(first, second, strict=True), strict=True))


def _ratios(means: Means) -> Iterator[float | None]:
    """Candidate over base of all that both report; what neither has (no decode token in prefill) says nothing."""
    for before, after in means.values():
        yield None if not before or after is None else after / before


def _disjoint(phases: Sequence[Mapping[str | None, int]]) -> tuple[str, str] | None:
    if any(not counts or None in counts for counts in phases) or set(phases[0]) & set(phases[1]):
        return None
    first, second = (" and ".join(sorted(map(str, counts))) for counts in phases)
    return first, second


def _without_phases(phases: Sequence[Mapping[str | None, int]]) -> Iterator[str]:
    """Where one run shows phases and the other has steps without: nobody can say that both mix them alike."""
    for side, own, other in zip(SIDES, phases, reversed(phases), strict=True):
        if len(own) > 1 and set(other) == {None}:
            known = ", ".join(f"{count:,} {phase or 'unknown'}" for phase, count in sorted(own.items(), key=str))
            yield f"Only the {side.lower()} tells phases ({known}): all steps are compared, however they are mixed."


def _without_like(marks: tuple[Marks, Marks], shared: Sequence[str | None]) -> Iterator[str]:
    for side, run in zip(SIDES, marks, strict=True):
        for phase, count in sorted(run.phases().items(), key=lambda item: str(item[0])):
            if phase not in shared:
                steps = f"{count:,} {phase or 'unknown'} step{'s' if count > 1 else ''}"
                has = "has" if count == 1 else "have"
                yield f"{side}: {steps} {has} too few of that phase to be set against, and are left out."


def _source(marks: Marks | None) -> str:
    if marks is None:
        return "what the source recorded"
    if marks.anchor is None or marks.steps.is_empty():
        return "nothing"
    if marks.confidence is None:
        return marks.anchor
    return f"the order of kernels ({marks.anchor}), confidence {marks.confidence:.2f}"


def _as_json(marks: Marks) -> dict[str, Any]:
    return {"anchor": marks.anchor, "confidence": marks.confidence, "used": not marks.steps.is_empty()}
