"""The answer of a comparison where there is little room: a line, five more that say why, and what changed most."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from inferometer.analyses.compare.comparison import Comparison
from inferometer.analyses.compare.verdict_words import describe_times
from inferometer.reports.base import describe_loss, shown_losses
from inferometer.reports.views.comparison import changes_section, compare_sections, find_runner_up
from inferometer.reports.views.layout import Section, say_rest
from inferometer.units import format_duration

MOST_REASONS = 5
MOST_ROWS = 12

_LISTED = 3  # changes of the set-up


def headline(found: Comparison) -> str:
    """What became of the time of a step: which time, its ratio with the interval, both times."""
    outcome = found.outcome[0].upper() + found.outcome[1:]
    if found.comparable.stops:
        return f"{outcome}: no change of time is given, since it would mean nothing."
    changes = found.changes
    if not found.compares_times or changes.step_ratio is None:
        return f"{outcome}: the time of a step is not known of both runs."
    within = "spread unknown: a run has a single step"
    if interval := changes.step_ratio_interval:
        within = f"95 %: {interval[0]:.3f} to {interval[1]:.3f}"
    times = f"{format_duration(changes.base_step_ns)} -> {format_duration(changes.candidate_step_ns)}"
    return f"{outcome}: {changes.step_ratio:.3f} times the base's {_measure(found)} ({within}), {times}."


def reasons(found: Comparison) -> Sequence[tuple[str, str]]:
    """A word and a sentence each, the most important first, at most five: why, and what that can't know."""
    return [*_reasons(found)][:MOST_REASONS]


def changes_table(found: Comparison) -> Section:
    """What changed most; families where the runs can't be compared, counters where one has no times."""
    section = changes_section(found, rest="they stand below") if found.compares_times else compare_sections(found)[0]
    rest = say_rest(min(MOST_ROWS, section.frame.height), section.frame.height)
    return replace(section, frame=section.frame.head(MOST_ROWS), notes=[*rest, *section.notes])


def _measure(found: Comparison) -> str:
    """What the ratio is of."""
    changes = found.changes
    of = "step"
    if not all(len(times) for times in changes.step_times):
        of = "whole recording"
    elif found.phases:
        of = f"{found.leading.pair.name} step"
    what = "time of all kernels" if changes.account == "sums" else "time"
    mean = "" if of == "whole recording" else "mean "
    repair = changes.repair
    divided = f", the candidate's divided by {repair.ratio:.3g}" if repair and repair.kind == "normalised" else ""
    return f"{mean}{what} of a {of}{divided}"


def _reasons(found: Comparison) -> Iterator[tuple[str, str]]:
    yield found.verdict[0].upper() + found.verdict[1:], _cause(found)
    comparable = found.comparable
    if not comparable.ok and not comparable.stops:
        yield "Not comparable as recorded", f"{comparable.why} Repaired: {comparable.repair}."
    if runner_up := find_runner_up(found):
        yield "Runner-up", f"{runner_up.metric} on {runner_up.device}, score {runner_up.score:.3f}."
    if found.setup:
        named = [change.describe() for change in found.setup]
        more = f" and {len(named) - _LISTED:,} more" if len(named) > _LISTED else ""
        yield "Set-up", f"{', '.join(named[:_LISTED])}{more}."
    if found.not_measured and found.outcome not in ("faster", "no difference", "not comparable"):
        yield "Not measured in both runs, so not ruled out", f"{', '.join(found.not_measured)}."
    for loss in shown_losses(found.losses):
        if loss.severity != "info":
            yield "Not all of the files could be read", describe_loss(loss)


def _cause(found: Comparison) -> str:
    """The verdict's sentence; of a step that is slower or faster without its times, which the headline has."""
    why = found.judged.why
    if found.outcome not in ("slower", "faster"):
        return why
    _, _, beyond = why.partition(f"{describe_times(found.changes)}. ")
    return beyond or why
