"""The answer first, where there are two runs: which verdict, why, and what it rests on."""

from collections.abc import Iterator

from inferometer.analyses.compare.comparison import Comparison
from inferometer.reports.page.blocks import Block, Facts, Part, Words
from inferometer.reports.page.look import PageData
from inferometer.reports.page.section import PageSection
from inferometer.reports.views.view import remarks_of
from inferometer.units import format_duration

_HEADS = ("Base", "Candidate")


def build(look: PageData) -> Block | None:
    """The verdict as one sentence, the steps of both runs, whether they may be compared, what nobody measured."""
    found = look.comparison
    if found is None:
        return None
    verdict = found.verdict[0].upper() + found.verdict[1:]
    parts = [Words(f"{verdict}. {found.judged.why}", "verdict"), *_steps(found), *_reservations(found)]
    return Block("verdict", "Verdict", parts)


def _steps(found: Comparison) -> Iterator[Part]:
    """The steps of both runs side by side, where they may be compared."""
    changes, comparable = found.changes, found.comparable
    if comparable.stops or not (changes.base_steps and changes.candidate_steps):
        return
    before, after = (format_duration(ns) for ns in (changes.base_step_ns, changes.candidate_step_ns))
    lines = [
        ("Time of a step, mean", before, after),
        ("Of the base's step", "1", _ratio(comparable.step_ratio, comparable.step_ratio_interval)),
        ("Steps compared", f"{changes.base_steps:,}", f"{changes.candidate_steps:,}"),
    ]
    yield Facts(lines, heads=_HEADS)


def _ratio(ratio: float | None, interval: tuple[float, float] | None) -> str:
    if ratio is None:
        return ""
    within = f"95 %: {interval[0]:.3f} to {interval[1]:.3f}" if interval else "spread unknown: a run has a single step"
    return f"{ratio:.3f} times ({within})"


def _reservations(found: Comparison) -> Iterator[Part]:
    """What is in the way of comparing the runs, and what the verdict can't know."""
    comparable = found.comparable
    if comparable.stops:
        yield Words(
            "No change of time is given, since it would mean nothing: kernel families stand side by side instead.",
            "warning",
        )
    elif not comparable.ok:
        repair = f" Repaired: {comparable.repair}." if comparable.repair else ""
        yield Words(f"Not comparable as recorded: {comparable.why}{repair}", "warning")
    else:
        yield Words(f"Comparable as recorded: {comparable.why}")
    if found.not_measured:
        yield Words(f"Not measured in both runs, so not ruled out as causes: {', '.join(found.not_measured)}.", "note")
    for remark in remarks_of(found):
        yield Words(remark, "note")


SECTION = PageSection("verdict", build, after="facts")
