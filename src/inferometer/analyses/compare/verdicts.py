"""What a comparison comes to: one of eight verdicts, the sentence that says it first, and what became of the step.

A cause is named only where something slowed (the step, or the calls of one class of functions), the metric moved in its
harmful direction beyond chance and beyond what halves of the normal run reach, and the functions that slowed are those
that it would slow. Where there are no times at all, a change of the counters must be larger to be named.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from inferometer.analyses.compare.causes.calibration import Calibration
from inferometer.analyses.compare.causes.causes import Cause
from inferometer.analyses.compare.causes.counters import OWN
from inferometer.analyses.compare.changes import Changes
from inferometer.analyses.compare.contributions import Contribution
from inferometer.analyses.compare.host_time import HostTime
from inferometer.analyses.compare.input_changes import InputChange
from inferometer.analyses.compare.sampling_units import IDLE, REMAINDERS, REST
from inferometer.analyses.compare.slowdown import Slowdown, has_few_steps, median_ratio
from inferometer.analyses.comparison_limits import (
    ALPHA,
    CLEAR_CHANGE,
    DISAGREES,
    FEW_CHANGE,
    FEWEST_OF_PHASE,
    MIN_CHANGE,
    MIN_CYCLES,
    MIN_GROWTH,
    MIN_SEVERITY,
    MIN_SEVERITY_ALONE,
    MIN_SOFTWARE,
    MIN_TICKS,
    MIN_WORK,
)
from inferometer.names import decode
from inferometer.units import format_duration, format_sample

Verdict = Literal[
    "cause named", "software change", "no difference", "improvement", "not comparable", "too few samples",
    "host time", "cause not measured",
]  # fmt: skip
Outcome = Literal["slower", "faster", "no difference", "no clear difference", "can't tell", "not comparable"]
_NAMED = 3
_REPLACED = ("renamed", "fused", "split")
_SOFTWARE = ("new", "gone", *_REPLACED)
_WORDS = {"host": "host functions", "compute": "compute kernels", "transfer": "copies", "collective": "collectives"}


@dataclass(frozen=True)
class Judged:
    """`claimed` is the cause that "cause named" names, or the likeliest of too few samples; else None."""

    verdict: Verdict
    why: str
    claimed: Cause | None = None


@dataclass(frozen=True)
class Program:
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
    claimed = next((cause for cause in causes if _is_claimable(cause, calibration, MIN_SEVERITY)), None)
    slowed = _what_slowed(changes, slowdown, claimed)
    software = _software(changes, slowdown)
    shown = claimed if claimed is not None and slowdown.shows(claimed.cause_class) else None
    if slowdown.speed == "slower" and _is_more_work(changes, has_cause=shown is not None):
        besides = f" Besides, {_sentence(shown)}" if shown is not None and shown.has_ticks else ""
        return Judged("software change", f"{slowed} {_work(changes) or _more_called(changes)}{besides}")
    if program.inputs is not None and slowdown.may_be_slower:
        return Judged("software change", f"{slowed} {program.inputs.in_words()}")
    if program.setting is not None and slowdown.speed == "slower":
        return Judged("software change", f"{slowed} {program.setting}")
    if slowdown.speed == "uneven":
        if work := _work(changes):
            return Judged("software change", f"{_uneven(changes)} {work}")
        return Judged("too few samples", _uneven(changes))
    if shown is not None:
        if shown.has_ticks:
            return Judged("cause named", f"{slowed} {_sentence(shown)} {_work(changes)}".rstrip(), shown)
        return _too_few(slowed, shown)
    if slowdown.speed == "unclear" and not slowdown.classes:
        if changed := _work(changes) or software:
            return Judged("software change", f"{_as_before(changes)}. {changed}")
        return Judged("too few samples", f"{_as_before(changes)}. Record more steps.")
    if not slowdown.may_be_slower:
        suspect = next((cause for cause in causes if cause.severity >= MIN_SEVERITY_ALONE), None)
        if suspect is not None and slowdown.speed != "faster" and (has_few_steps(changes) or not suspect.has_ticks):
            return _too_few(slowed, suspect)  # a large change whose effect so few samples may hide
        return _not_slower(changes, slowdown, software, program)
    likely = next((cause for cause in causes if _is_likely(cause)), None)
    if likely is not None and not likely.has_ticks:
        return _too_few(slowed, likely)
    if software and slowdown.speed == "unknown" and not _is_counted(changes):
        more = f"record more than {MIN_CYCLES} in each run"
        return Judged("too few samples", f"{slowed} Too few steps to tell what of the program changed, {more}.")
    if software:
        return Judged("software change", f"{slowed} {software}")
    idle = _idle(changes)
    if idle and program.host is not None and program.host.is_found:
        return Judged("host time", f"{slowed} {idle}: {program.host.in_words()}.")
    why = f"{slowed} {idle}: look at the host." if idle else slowed
    return Judged("cause not measured", f"{why} Nothing that was measured in both runs explains it.")


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
    if slowdown.speed != "same" or verdict == "too few samples" or _is_lost_in_noise(changes):
        return "can't tell"
    return "no clear difference"


def _idle(changes: Changes) -> str:
    """How much of a longer step is time in which the device ran nothing; empty where that isn't most of it."""
    idle = sum(line.delta_ns for line in changes.contributions if line.cls in (IDLE, REST))
    if idle <= MIN_SOFTWARE * changes.step_delta_ns or changes.step_delta_ns <= 0:
        return ""
    if idle > changes.step_delta_ns:  # and what it runs takes less than before
        return f"The device runs nothing for {format_duration(idle)} more per step"
    whole = format_duration(changes.step_delta_ns)
    return f"Of {whole} more per step the device runs nothing in {format_duration(idle)}"


def _too_few(slowed: str, cause: Cause) -> Judged:
    why = f"{slowed} {_sentence(cause)} But {_few(cause)}"
    return Judged("too few samples", why, cause)


def _few(cause: Cause) -> str:
    """What is too few, and how much more it takes."""
    if cause.has_ticks:
        return f"there are too few steps to tell: record more than {MIN_CYCLES} in each run."
    length = f", about {MIN_TICKS * cause.tick_s:.0f} s" if cause.tick_s else ""
    return f"{min(cause.ticks)} ticks are too few to tell: record at least {MIN_TICKS} in each run{length}."


def _of_counters_alone(causes: Sequence[Cause], calibration: Calibration, *, is_slower: bool) -> Judged:
    alone = "Function times were not recorded in both runs, so nothing says "
    alone += "what of a step takes longer." if is_slower else "that the candidate is slower."
    first = next((cause for cause in causes if _is_claimable(cause, calibration, MIN_SEVERITY_ALONE)), None)
    few = next((cause for cause in causes if _is_likely(cause) and not cause.has_ticks), None)
    if first is not None and first.has_ticks:
        return Judged("cause named", f"{_sentence(first)} {alone}", first)
    if first is not None or few is not None:
        return _too_few(alone, first or few)  # type: ignore[arg-type]
    return Judged("cause not measured", f"{alone} No counter that may be judged changed for the worse beyond noise.")


def _uneven(changes: Changes) -> str:
    """The mean and the median of a step's time disagree."""
    low, high = median_ratio(changes) or (1.0, 1.0)
    medians = f"its median is not ({low:.3f} to {high:.3f} times)"
    longer = f"The mean step is longer: {times_in_words(changes)}"
    return f"{longer}; {medians}. A few steps are: `inferometer steps` shows which."


def _not_slower(changes: Changes, slowdown: Slowdown, software: str | None, program: Program) -> Judged:
    times = times_in_words(changes)
    inputs = program.inputs.in_words() if program.inputs else None
    if slowdown.speed == "faster":
        why = _work(changes) or inputs or program.setting or ""
        return Judged("improvement", f"The step is faster: {times}. {why}".rstrip())
    if (work := _work(changes)) and _is_counted(changes):  # however long the steps are
        return Judged("software change", f"{_as_before(changes)}. {work}")
    if slowdown.speed == "unknown" or (has_few_steps(changes) and not _is_tight(changes)):
        more = f"record more than {MIN_CYCLES} in each run"
        return Judged("too few samples", f"Too few steps to tell noise from change, {more}: {times}.")
    if changed := work or software or inputs:
        return Judged("software change", f"{_as_before(changes)}. {changed}")
    if _may_differ(changes):
        return Judged("too few samples", f"{_as_before(changes)}. The steps vary too much: record more of them.")
    return Judged("no difference", f"{_as_before(changes)}.")


def _is_tight(changes: Changes) -> bool:
    """Whether the interval excludes any change worth a word."""
    interval = changes.step_ratio_interval
    return interval is not None and interval[0] > 1 - FEW_CHANGE and interval[1] < 1 + FEW_CHANGE


def _is_counted(changes: Changes) -> bool:
    """Whether calls are known of whole steps: the only one of a run may be cut."""
    return not has_few_steps(changes) or min(changes.base_steps, changes.candidate_steps) >= FEWEST_OF_PHASE


def _may_differ(changes: Changes) -> bool:
    """Whether the mean step differs by more than runs of one program do, and may by twice `FEW_CHANGE`."""
    low, high = changes.step_ratio_interval or (0.0, 1.0)
    is_wide = low < 1 - 2 * FEW_CHANGE or high > 1 + 2 * FEW_CHANGE
    return abs((changes.step_ratio or 1.0) - 1) > CLEAR_CHANGE and is_wide


def _is_claimable(cause: Cause, calibration: Calibration, least: float) -> bool:
    return (
        cause.severity >= least and cause.q <= ALPHA and cause.agreement > DISAGREES and cause.score > calibration.level
    )


def _is_likely(cause: Cause) -> bool:
    """A change for the worse of which more samples might say whether it is one."""
    return cause.severity >= MIN_SEVERITY_ALONE and cause.agreement > DISAGREES


def _what_slowed(changes: Changes, slowdown: Slowdown, claimed: Cause | None) -> str:
    times = times_in_words(changes)
    texts = {
        "slower": f"The step is slower: {times}.",
        "faster": f"The step is faster: {times}.",
        "unknown": f"Whether the step is slower isn't known: {times}.",
    }
    text = texts.get(slowdown.speed, f"{_as_before(changes)}.")
    if slowed := _slowed_class(changes, slowdown):
        return f"{text} {slowed}"
    if claimed is not None and slowdown.lines:
        line = max(slowdown.lines, key=lambda line: line.delta_ns)
        return (
            f"{text} {decode(line.name).short_name} takes {line.candidate_ns / max(line.base_ns, 1):.2f} times as long."
        )
    return text


def _as_before(changes: Changes) -> str:
    least = FEW_CHANGE if has_few_steps(changes) else MIN_CHANGE
    low, high = changes.step_ratio_interval or (1.0, 1.0)
    if _is_lost_in_noise(changes):
        which = "longer" if (changes.step_ratio or 1.0) > 1 else "shorter"
        return f"Whether the step is {which} can't be told from noise: {times_in_words(changes)}"
    if low <= 1 <= high:
        return f"The step is as long as before, within noise: {times_in_words(changes)}"
    if abs((changes.step_ratio or 1.0) - 1) < MIN_GROWTH:
        return f"The step is as long as before, within {MIN_GROWTH:.1%}: {times_in_words(changes)}"
    which = "longer" if low > 1 else "shorter"
    unclear = f"not clearly by more than runs of one program differ ({least:.0%})"
    return f"The step is {which}, {unclear}: {times_in_words(changes)}"


def _is_lost_in_noise(changes: Changes) -> bool:
    """Whether the step may be longer or shorter by enough to matter, and nothing says which."""
    if changes.step_ratio_interval is None:
        return True
    low, high = changes.step_ratio_interval
    return low <= 1 <= high and _may_differ(changes)


def _slowed_class(changes: Changes, slowdown: Slowdown) -> str:
    """The class of functions whose calls slowed most; empty where none did."""
    slowed = next((one for one in changes.domain.classes if one.cls in slowdown.classes), None)
    return f"Calls of {_WORDS[slowed.cls]} take {slowed.ratio:.2f} times as long." if slowed else ""


def times_in_words(changes: Changes) -> str:
    """The step of both runs, and the ratio with its interval: what stands in most of the verdicts' sentences."""
    before, after = format_duration(changes.base_step_ns), format_duration(changes.candidate_step_ns)
    if changes.step_ratio is None:
        return f"{before} -> {after}"
    interval = changes.step_ratio_interval
    within = f", 95 %: {interval[0]:.3f} to {interval[1]:.3f}" if interval else ""
    return f"{before} -> {after} ({changes.step_ratio:.3f} times{within})"


def _sentence(cause: Cause) -> str:
    unit = "" if cause.unit == "fraction" else f" {cause.unit or ''}".rstrip()
    values = f"{format_sample(cause.base)} to {format_sample(cause.candidate)}{unit}"
    device = "the program's GPU" if cause.device == OWN else cause.device
    return f"{cause.metric} on {device} went from {values}."


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


def _work(changes: Changes) -> str:
    """By how much a step calls more or less; empty where it doesn't, or where it isn't known."""
    return changes.work.in_words() if changes.work else ""


def _more_called(changes: Changes) -> str:
    """What is new or called more often, by time."""
    lines = [line for line in changes.changed if line.added and line.kind in ("new", "more calls")]
    names = [f"{decode(line.name).short_name} ({line.kind})" for line in _largest_first(lines)]
    return f"A step does more than before: {_listed(names)}." if names else "A step does more than before."


def _replaced(lines: Sequence[Contribution]) -> str:
    """What came in the place of what, by time; empty unless functions both came and went."""
    names = {
        kind: [decode(line.name).short_name for line in _largest_first(lines) if line.kind == kind]
        for kind in ("gone", "new")
    }
    if not all(names.values()):
        return ""
    gone, new = (_listed(names[kind]) for kind in ("gone", "new"))
    return f"{gone} gave way to {new}"


def _largest_first(lines: Sequence[Contribution]) -> list[Contribution]:
    return sorted(lines, key=lambda line: (-abs(line.delta_ns), line.name))


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _software(changes: Changes, slowdown: Slowdown) -> str | None:
    """What of the program changed: functions came or went, are called more often, or one slowed apart from its class.

    They must explain most of a slower step; of one that is as long as before, functions must have become longer by
    more than noise of the step. On a CPU functions that only became slower say nothing: whatever else runs there slows
    some more than others.
    """
    lines = [line for line in changes.changed if line.added and line.cls not in REMAINDERS]
    apart = ("more calls",) if slowdown.on_cpu else ("slower", "more calls")
    moved = [
        line for line in lines if line.kind in _SOFTWARE or (line.kind in apart and line.cls not in slowdown.classes)
    ]
    grown = sum(line.delta_ns for line in moved)
    enough = MIN_SOFTWARE * changes.step_delta_ns if slowdown.speed == "slower" else MIN_GROWTH * changes.base_step_ns
    if not moved or grown <= 0 or grown < enough:
        return None
    replaced = _replaced(moved)
    if replaced:
        return f"{replaced}, which adds {format_duration(grown)} per step."
    largest = max(moved, key=lambda line: abs(line.delta_ns))
    few = "One function differs" if len(moved) == 1 else f"{len(moved)} functions differ, the largest"
    return f"{few}: {_what_became(largest)}, {format_duration(largest.delta_ns)} per step."


def _what_became(line: Contribution) -> str:
    """A function and its kind of change; of several that became others, both sides without those in both."""
    if line.kind not in _REPLACED:
        return f"{decode(line.name).short_name} ({line.kind})"
    before, after = (dict.fromkeys(decode(name).short_name for name in names) for names in line.of)
    gone, new = ([name for name in each if name not in other] for each, other in ((before, after), (after, before)))
    return f"{_listed(gone or [*before])} became {_listed(new or [*after])} ({line.kind})"
