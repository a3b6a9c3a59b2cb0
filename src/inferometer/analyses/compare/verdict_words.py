"""The sentences of a verdict: what slowed and by how much, which metric moved, what of the program changed."""

from collections.abc import Sequence

from inferometer.analyses.compare.causes.causes import Cause
from inferometer.analyses.compare.causes.counters import OWN
from inferometer.analyses.compare.changes import Changes
from inferometer.analyses.compare.contributions import Contribution
from inferometer.analyses.compare.sampling_units import IDLE, REMAINDERS, REST
from inferometer.analyses.compare.slowdown import Slowdown, has_few_steps, median_ratio
from inferometer.analyses.comparison_limits import (
    FEW_CHANGE,
    MIN_CHANGE,
    MIN_CYCLES,
    MIN_GROWTH,
    MIN_SOFTWARE,
)
from inferometer.names import decode
from inferometer.units import format_duration, format_sample

_NAMED = 3
_REPLACED = ("renamed", "fused", "split")
_SOFTWARE = ("new", "gone", *_REPLACED)
_WORDS = {"host": "host functions", "compute": "compute kernels", "transfer": "copies", "collective": "collectives"}


def say_what_slowed(changes: Changes, slowdown: Slowdown, claimed: Cause | None) -> str:
    """What became of the step, and which calls slowed; else, of a claimed cause, the function that slowed most."""
    times = describe_times(changes)
    texts = {
        "slower": f"The step is slower: {times}.",
        "faster": f"The step is faster: {times}.",
        "unknown": f"Whether the step is slower isn't known: {times}.",
    }
    text = texts.get(slowdown.speed, f"{say_as_before(changes)}.")
    if slowed := _slowed_class(changes, slowdown):
        return f"{text} {slowed}"
    if claimed is not None and slowdown.lines:
        line = max(slowdown.lines, key=lambda line: line.delta_ns)
        return (
            f"{text} {decode(line.name).short_name} takes {line.candidate_ns / max(line.base_ns, 1):.2f} times as long."
        )
    return text


def say_as_before(changes: Changes) -> str:
    """A step that isn't clearly slower or faster: as long as before, or not known to be, without a full stop."""
    least = FEW_CHANGE if has_few_steps(changes) else MIN_CHANGE
    low, high = changes.step_ratio_interval or (1.0, 1.0)
    if is_lost_in_noise(changes):
        which = "longer" if (changes.step_ratio or 1.0) > 1 else "shorter"
        return f"Whether the step is {which} can't be told from noise: {describe_times(changes)}"
    if low <= 1 <= high:
        return f"The step is as long as before, within noise: {describe_times(changes)}"
    if abs((changes.step_ratio or 1.0) - 1) < MIN_GROWTH:
        return f"The step is as long as before, within {MIN_GROWTH:.1%}: {describe_times(changes)}"
    which = "longer" if low > 1 else "shorter"
    unclear = f"not clearly by more than runs of one program differ ({least:.0%})"
    return f"The step is {which}, {unclear}: {describe_times(changes)}"


def say_uneven(changes: Changes) -> str:
    """The mean and the median of a step's time disagree."""
    low, high = median_ratio(changes) or (1.0, 1.0)
    medians = f"its median is not ({low:.3f} to {high:.3f} times)"
    longer = f"The mean step is longer: {describe_times(changes)}"
    return f"{longer}; {medians}. A few steps are: `inferometer steps` shows which."


def describe_times(changes: Changes) -> str:
    """The step of both runs, and the ratio with its interval: what is in most of the verdicts' sentences."""
    before, after = format_duration(changes.base_step_ns), format_duration(changes.candidate_step_ns)
    if changes.step_ratio is None:
        return f"{before} -> {after}"
    interval = changes.step_ratio_interval
    within = f", 95 %: {interval[0]:.3f} to {interval[1]:.3f}" if interval else ""
    return f"{before} -> {after} ({changes.step_ratio:.3f} times{within})"


def say_cause(cause: Cause) -> str:
    """From what to what a metric went, and on which device."""
    unit = "" if cause.unit == "fraction" else f" {cause.unit or ''}".rstrip()
    values = f"{format_sample(cause.base)} to {format_sample(cause.candidate)}{unit}"
    device = "the program's GPU" if cause.device == OWN else cause.device
    return f"{cause.metric} on {device} went from {values}."


def say_part(cause: Cause) -> str:
    """How much of what a step takes longer a cause accounts for that is too small to be named."""
    part, most = (f"{100 * share:.0f} %" for share in cause.explains or (0.0, 0.0))
    return f"{say_cause(cause)} That accounts for {part} of what a step takes longer, at most {most}."


def say_too_few(cause: Cause) -> str:
    """What is too few, and how much more it takes."""
    if cause.has_ticks:
        return f"there are too few steps to tell: record more than {MIN_CYCLES} in each run."
    needed = cause.needed_ticks
    length = f", about {needed * cause.tick_s:.0f} s" if cause.tick_s else ""
    return f"{min(cause.ticks)} ticks are too few to tell: record at least {needed} in each run{length}."


def say_more_steps(changes: Changes) -> str:
    """What to record where steps are too few; sums of a whole run have none, however long it is."""
    if changes.account == "sums" and changes.step_ratio_interval is None:
        return "sums have no spread: compare recordings in which each step or query is seen (trtexec: --exportTimes)"
    return f"record more than {MIN_CYCLES} in each run"


def say_idle(changes: Changes) -> str:
    """How much of a longer step is time in which the device ran nothing; empty where that isn't most of it."""
    idle = sum(line.delta_ns for line in changes.contributions if line.cls in (IDLE, REST))
    if idle <= MIN_SOFTWARE * changes.step_delta_ns or changes.step_delta_ns <= 0:
        return ""
    if idle > changes.step_delta_ns:  # and what it runs takes less than before
        return f"The device runs nothing for {format_duration(idle)} more per step"
    whole = format_duration(changes.step_delta_ns)
    return f"Of {whole} more per step the device runs nothing in {format_duration(idle)}"


def say_work(changes: Changes) -> str:
    """By how much a step calls more or less; empty where it doesn't, or where it isn't known."""
    return changes.work.describe() if changes.work else ""


def say_more_called(changes: Changes) -> str:
    """What is new or called more often, by time."""
    lines = [line for line in changes.changed if line.added and line.kind in ("new", "more calls")]
    names = [f"{decode(line.name).short_name} ({line.kind})" for line in _largest_first(lines)]
    return f"A step does more than before: {_listed(names)}." if names else "A step does more than before."


def say_software_change(changes: Changes, slowdown: Slowdown) -> str | None:
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


def say_gone(changes: Changes) -> str:
    """Functions that are in the base alone, where no new ones do their part of the step, and it matters; else empty.

    Of printed sums copies are no part: many tables don't list them.
    """
    left_out = ("transfer",) if changes.account == "sums" else ()
    every = [line for line in changes.changed if line.added and line.cls not in left_out]
    lines = [line for line in every if line.kind == "gone"]
    lost = -sum(line.delta_ns for line in lines)
    if lost - sum(line.delta_ns for line in every if line.kind == "new") < MIN_GROWTH * changes.base_step_ns:
        return ""
    names = _listed([decode(line.name).short_name for line in _largest_first(lines)])
    which = "One function is gone" if len(lines) == 1 else f"{len(lines)} functions are gone"
    return f"{which}, which took {format_duration(lost)} per step: {names}."


def is_lost_in_noise(changes: Changes) -> bool:
    """Whether the step may be longer or shorter by enough to matter, and nothing says which."""
    if changes.step_ratio_interval is None:
        return True
    low, high = changes.step_ratio_interval
    return low <= 1 <= high and may_differ(changes)


def may_differ(changes: Changes) -> bool:
    """Whether the mean step may differ by more than `FEW_CHANGE`, wherever the middle of its interval lies."""
    low, high = changes.step_ratio_interval or (0.0, 1.0)
    return low < 1 - FEW_CHANGE or high > 1 + FEW_CHANGE


def _slowed_class(changes: Changes, slowdown: Slowdown) -> str:
    """The class of functions whose calls slowed most; empty where none did."""
    slowed = next((one for one in changes.domain.classes if one.cls in slowdown.classes), None)
    return f"Calls of {_WORDS[slowed.cls]} take {slowed.ratio:.2f} times as long." if slowed else ""


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


def _what_became(line: Contribution) -> str:
    """A function and its kind of change; of several that became others, both sides without those in both."""
    if line.kind not in _REPLACED:
        return f"{decode(line.name).short_name} ({line.kind})"
    before, after = (dict.fromkeys(decode(name).short_name for name in names) for names in line.of)
    gone, new = ([name for name in each if name not in other] for each, other in ((before, after), (after, before)))
    return f"{_listed(gone or [*before])} became {_listed(new or [*after])} ({line.kind})"


def _largest_first(lines: Sequence[Contribution]) -> list[Contribution]:
    return sorted(lines, key=lambda line: (-abs(line.delta_ns), line.name))


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
