"""What a comparison comes to: one of nine verdicts, the sentence that says it first, and what became of the step.

A cause is named only where something slowed (the step, or the calls of one class of functions), the metric moved in its
harmful direction beyond chance and beyond what halves of the normal run reach, and the functions that slowed are those
that it would slow. Where there are no times at all, a change of the counters must be larger to be named.
`_VERDICTS` has the cases in the order in which they are tried; `verdict_words.py` makes their sentences.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Literal

import msgspec

from inferometer.analyses.compare.causes.calibration import Calibration
from inferometer.analyses.compare.causes.causes import Cause
from inferometer.analyses.compare.causes.metric_roles import role_of_metric
from inferometer.analyses.compare.changes import Changes
from inferometer.analyses.compare.host_time import HostTime
from inferometer.analyses.compare.input_changes import InputChange
from inferometer.analyses.compare.slowdown import Slowdown, has_few_steps
from inferometer.analyses.compare.verdict_words import (
    describe_times,
    is_lost_in_noise,
    may_differ,
    say_as_before,
    say_cause,
    say_gone,
    say_idle,
    say_more_called,
    say_more_steps,
    say_part,
    say_software_change,
    say_too_few,
    say_uneven,
    say_what_slowed,
    say_work,
)
from inferometer.analyses.comparison_limits import (
    ALPHA,
    DISAGREES,
    FEW_CHANGE,
    FEWEST_OF_PHASE,
    MIN_SEVERITY,
    MIN_SEVERITY_ALONE,
    MIN_SOFTWARE,
    MIN_WORK,
)

Verdict = Literal[
    "cause named", "software change", "no difference", "improvement", "not comparable", "too few samples",
    "host time", "cause not measured", "ranks differ",
]  # fmt: skip
Outcome = Literal["slower", "faster", "no difference", "no clear difference", "can't tell", "not comparable"]


class Judged(msgspec.Struct, frozen=True):
    """`claimed` is the cause that "cause named" names, or the likeliest of too few samples; else None."""

    verdict: Verdict
    why: str
    claimed: Cause | None = None


class Program(msgspec.Struct, frozen=True):
    """What is known to differ of the program itself, besides its functions.

    `inputs`: of its matrix products. `setting`: a sentence about one that makes it slower. `host`: where its time grew.
    `is_slower`: whether that is known from elsewhere, where the runs hold no times.
    """

    inputs: InputChange | None = None
    setting: str | None = None
    host: HostTime | None = None
    is_slower: bool = False


def judge(
    changes: Changes,
    slowdown: Slowdown,
    causes: Sequence[Cause],
    calibration: Calibration,
    program: Program | None = None,
) -> Judged:
    """The verdict over two runs of comparable work.

    Args:
        changes: Function by function.
        slowdown: What slowed.
        causes: Metrics that moved, ranked.
        calibration: How high they score where nothing is wrong.
        program: What else is different of the program.
    """
    program = program or Program()
    if not slowdown.has_times:
        return _of_counters_alone(causes, calibration, is_slower=program.is_slower)
    case = _Case(changes, slowdown, causes, calibration, program)
    return next(judged for verdict in _VERDICTS if (judged := verdict(case)) is not None)


def find_outcome(verdict: Verdict, changes: Changes, slowdown: Slowdown) -> Outcome:
    """What became of the time of a step, and no more than the verdict's sentence says of it.

    "no clear difference": it is not clearly longer or shorter, and yet the verdict is about another change.
    """
    if verdict == "not comparable":
        return "not comparable"
    if slowdown.speed == "slower" or slowdown.speed == "faster":
        return slowdown.speed
    if verdict == "no difference":
        return "no difference"
    if slowdown.speed != "same" or verdict == "too few samples" or is_lost_in_noise(changes):
        return "can't tell"
    return "no clear difference"


class _Case(msgspec.Struct, frozen=True, dict=True):
    """Two runs whose function times are known; the functions in `_VERDICTS` are asked about it one after another."""

    changes: Changes
    slowdown: Slowdown
    causes: Sequence[Cause]
    calibration: Calibration
    program: Program

    @cached_property
    def claimed(self) -> Cause | None:
        """The likeliest cause that moved beyond chance and beyond false alarms."""
        return next((cause for cause in self.causes if _is_claimable(cause, self.calibration, MIN_SEVERITY)), None)

    @cached_property
    def shown(self) -> Cause | None:
        """That cause, where the functions that slowed are those that it would slow."""
        return self.claimed if self.claimed is not None and self.slowdown.shows(self.claimed.cause_class) else None

    @cached_property
    def slowed(self) -> str:
        """What slowed, as the first sentence of most verdicts."""
        return say_what_slowed(self.changes, self.slowdown, self.claimed)

    @cached_property
    def software(self) -> str | None:
        """What of the program changed."""
        return say_software_change(self.changes, self.slowdown)


def _more_work(case: _Case) -> Judged | None:
    """A slower step that calls more than before."""
    shown, changes = case.shown, case.changes
    if case.slowdown.speed != "slower" or not _is_more_work(changes, has_cause=shown is not None):
        return None
    besides = f" Besides, {say_cause(shown)}" if shown is not None and shown.has_ticks else ""
    return Judged("software change", f"{case.slowed} {say_work(changes) or say_more_called(changes)}{besides}")


def _other_inputs(case: _Case) -> Judged | None:
    """A step that may be slower, over other inputs of its matrix products."""
    if case.program.inputs is None or not case.slowdown.may_be_slower:
        return None
    return Judged("software change", f"{case.slowed} {case.program.inputs.describe()}")


def _slower_setting(case: _Case) -> Judged | None:
    """A slower step, of a program with a setting that makes it slower."""
    if case.program.setting is None or case.slowdown.speed != "slower":
        return None
    return Judged("software change", f"{case.slowed} {case.program.setting}")


def _uneven_steps(case: _Case) -> Judged | None:
    """A mean that is longer, and a median that is not."""
    if case.slowdown.speed != "uneven":
        return None
    if work := say_work(case.changes):
        return Judged("software change", f"{say_uneven(case.changes)} {work}")
    return Judged("too few samples", say_uneven(case.changes))


def _named_cause(case: _Case) -> Judged | None:
    """A metric that explains the functions that slowed."""
    if case.shown is None:
        return None
    if not case.shown.has_ticks:
        return _too_few(case.slowed, case.shown)
    return Judged("cause named", f"{case.slowed} {say_cause(case.shown)} {say_work(case.changes)}".rstrip(), case.shown)


def _unclear_step(case: _Case) -> Judged | None:
    """A step that is not clearly slower, in which no class of functions slowed."""
    if case.slowdown.speed != "unclear" or case.slowdown.classes:
        return None
    if changed := say_work(case.changes) or case.software:
        return Judged("software change", f"{say_as_before(case.changes)}. {changed}")
    return Judged("too few samples", f"{say_as_before(case.changes)}. Record more steps.")


def _hidden_effect(case: _Case) -> Judged | None:
    """A large change of a metric whose effect on a step so few samples may hide."""
    if case.slowdown.may_be_slower or case.slowdown.speed == "faster":
        return None
    suspect = next((cause for cause in case.causes if cause.severity >= MIN_SEVERITY_ALONE), None)
    if suspect is None or not (has_few_steps(case.changes) or not suspect.has_ticks):
        return None
    return _too_few(case.slowed, suspect)


def _as_quick(case: _Case) -> Judged | None:
    """A step that isn't slower."""
    if case.slowdown.may_be_slower:
        return None
    return _not_slower(case.changes, case.slowdown, case.software, case.program)


def _likely_cause(case: _Case) -> Judged | None:
    """A slower step, and a metric with too few samples to say whether it is the cause."""
    likely = next((cause for cause in case.causes if _is_likely(cause)), None)
    return None if likely is None or likely.has_ticks else _too_few(case.slowed, likely)


def _changed_program(case: _Case) -> Judged | None:
    """A slower step of a program that changed."""
    if not case.software:
        return None
    if case.slowdown.speed == "unknown" and not _is_counted(case.changes):
        why = f"{case.slowed} Too few steps to tell what of the program changed: {say_more_steps(case.changes)}."
        return Judged("too few samples", why)
    return Judged("software change", f"{case.slowed} {case.software}")


def _unexplained(case: _Case) -> Judged:
    """A slower step that nothing explains, but for time of the host."""
    idle, host = say_idle(case.changes), case.program.host
    part = next((f" {say_part(cause)}" for cause in case.causes if _is_certain_part(cause)), "")
    if idle and host is not None and host.is_found:
        return Judged("host time", f"{case.slowed} {idle}: {host.describe()}.{part}")
    why = f"{case.slowed} {idle}: look at the host." if idle else case.slowed
    rest = "Nothing that was measured in both runs explains the rest." if part else _NOTHING
    return Judged("cause not measured", f"{why}{part} {rest}")


_VERDICTS: tuple[Callable[[_Case], Judged | None], ...] = (
    *(_more_work, _other_inputs, _slower_setting, _uneven_steps, _named_cause, _unclear_step),
    *(_hidden_effect, _as_quick, _likely_cause, _changed_program, _unexplained),
)
"""In this order: the first that has a verdict gives it, and the last always has one."""


_NOTHING = "Nothing that was measured in both runs explains it."


def _too_few(slowed: str, cause: Cause) -> Judged:
    why = f"{slowed} {say_cause(cause)} But {say_too_few(cause)}"
    return Judged("too few samples", why, cause)


def _of_counters_alone(causes: Sequence[Cause], calibration: Calibration, *, is_slower: bool) -> Judged:
    alone = "Function times were not recorded in both runs, so nothing says "
    alone += "what of a step takes longer." if is_slower else "that the candidate is slower."
    first = next((cause for cause in causes if _is_claimable(cause, calibration, MIN_SEVERITY_ALONE)), None)
    few = next((cause for cause in causes if _is_likely(cause) and not cause.has_ticks), None)
    if first is not None and first.has_ticks:
        return Judged("cause named", f"{say_cause(first)} {alone}", first)
    if first is not None or few is not None:
        return _too_few(alone, first or few)  # type: ignore[arg-type]
    return Judged("cause not measured", f"{alone} No counter that may be judged changed for the worse beyond noise.")


def _not_slower(changes: Changes, slowdown: Slowdown, software: str | None, program: Program) -> Judged:
    times = describe_times(changes)
    inputs = program.inputs.describe() if program.inputs else None
    if slowdown.speed == "faster" and _may_be_cut(changes):
        return Judged(
            "too few samples", f"{times}. {say_work(changes)} The only step of a run may be cut: record more."
        )
    if slowdown.speed == "faster":
        why = say_work(changes) or inputs or program.setting or ""
        return Judged("improvement", f"The step is faster: {times}. {why}".rstrip())
    if (work := say_work(changes)) and _is_counted(changes):  # however long the steps are
        return Judged("software change", f"{say_as_before(changes)}. {work}")
    if slowdown.speed == "unknown" or (has_few_steps(changes) and not _is_tight(changes)):
        few = f"Too few steps to tell noise from change: {times}."
        return Judged("too few samples", f"{few} {_sentence(say_more_steps(changes))}")
    if changed := work or software or inputs or say_gone(changes):
        return Judged("software change", f"{say_as_before(changes)}. {changed}")
    if may_differ(changes):
        return Judged("too few samples", f"{say_as_before(changes)}. The steps vary too much: record more of them.")
    return Judged("no difference", f"{say_as_before(changes)}.")


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}."


def _is_tight(changes: Changes) -> bool:
    """Whether the interval excludes any change worth a word."""
    interval = changes.step_ratio_interval
    return interval is not None and interval[0] > 1 - FEW_CHANGE and interval[1] < 1 + FEW_CHANGE


def _is_counted(changes: Changes) -> bool:
    """Whether calls are known of whole steps: the only one of a run may be cut."""
    return not has_few_steps(changes) or min(changes.base_steps, changes.candidate_steps) >= FEWEST_OF_PHASE


def _is_claimable(cause: Cause, calibration: Calibration, least: float) -> bool:
    return (
        cause.severity >= least and cause.q <= ALPHA and cause.agreement > DISAGREES and cause.score > calibration.level
    )


def _is_likely(cause: Cause) -> bool:
    """A change for the worse of which more samples might say whether it is one."""
    return cause.severity >= MIN_SEVERITY_ALONE and cause.agreement > DISAGREES


def _is_certain_part(cause: Cause) -> bool:
    """Whether it surely accounts for a part of the longer step, which is too small to be the cause."""
    is_changed = cause.severity >= MIN_SEVERITY and cause.q <= ALPHA and cause.has_ticks
    return is_changed and cause.is_too_small and role_of_metric(cause.metric).waits is not None


def _is_more_work(changes: Changes, *, has_cause: bool) -> bool:
    """Whether what a step calls more often explains most of its change, whatever else moved.

    Where most functions are called in one ratio more often, that is certain, so it need not explain most: any part
    where nothing else explains the rest, a good part where a metric does.
    """
    work = changes.work
    if work is None:
        return False
    if work.delta_ns > MIN_SOFTWARE * changes.step_delta_ns:
        return True
    is_certain = work.ratio is not None and work.ratio > 1
    return is_certain and (not has_cause or work.delta_ns > MIN_WORK * changes.step_delta_ns)


def _may_be_cut(changes: Changes) -> bool:
    """Whether the candidate calls less, and nothing says that the one step that it has is a whole one."""
    work = changes.work
    return work is not None and work.ratio is not None and work.ratio < 1 and changes.candidate_steps < FEWEST_OF_PHASE
