"""A step of each run below the other on one time axis, kernels by stream, with what corresponds marked."""

from collections.abc import Iterator

from inferometer.analyses.compare.comparison import Comparison
from inferometer.analyses.compare.shown_steps import ShownRun, ShownStep, ShownSteps, corresponding, shown_steps
from inferometer.analyses.timeline.work import place_name
from inferometer.reports.page.beside import HEADS
from inferometer.reports.page.blocks import Block, Facts, Part, StepLines, Words
from inferometer.reports.page.look import PageData
from inferometer.reports.page.section import PageSection
from inferometer.reports.page.step_lines.data import lines_data
from inferometer.units import format_duration

_TITLES = {"step": "Steps on one time axis", "recording": "Both recordings on one time axis"}
_LACKING = "Single launches in both runs, with their times."
_BEGIN = "A step begins where the work before it on its device ends: an empty stretch in front is time without work."
_TIES = (
    "Launches correspond where the comparison calls their kernels one and both steps call them equally often: the k-th "
    "of one is the k-th of the other."
)
_NO_TIES = "The runs can't be compared: they stand below each other as recorded, and no launches correspond."


def build(look: PageData) -> Block | None:
    """The steps that can be chosen, in numbers and drawn."""
    found = look.comparison
    if found is None or look.candidate is None:
        return None
    shown = shown_steps(look.base.trace, look.candidate.trace, found)
    if shown is None:
        return Block("aligned_steps", _TITLES["step"], lacking=_LACKING)
    return Block("aligned_steps", _TITLES[shown.per], [*_parts(shown, found)])


def _parts(shown: ShownSteps, found: Comparison) -> Iterator[Part]:
    runs = shown.base, shown.candidate
    if shown.per == "step":
        kinds = ("median", "slowest", "fastest")
        lines = [(f"{kind.capitalize()} step", *(_numbers(run, getattr(run, kind)) for run in runs)) for kind in kinds]
        yield Facts(lines if any(run.of > 1 for run in runs) else [("The only complete step", *lines[0][1:])], HEADS)
    yield StepLines(_TITLES[shown.per], _alt(shown), lines_data(shown, HEADS))
    yield Words(" ".join(_reading(shown, found)), "note")


def _numbers(run: ShownRun, place: int) -> str:
    step = run.steps[place]
    on = f" on {place_name(*step.place)}" if len({each.place for each in run.steps}) > 1 else ""
    idle = f"idle for {format_duration(step.idle_ns)} of it"
    launches = f"{step.launches:,} launch{'es' if step.launches != 1 else ''}"
    return f"{format_duration(step.dur_ns)} (step {step.number}{on}), {idle}, {launches}"


def _alt(shown: ShownSteps) -> str:
    """The steps that are drawn at first, and how much of them corresponds."""
    base, candidate = (run.steps[run.median] for run in (shown.base, shown.candidate))
    times = [f"{format_duration(base.dur_ns)} in the base", f"{format_duration(candidate.dur_ns)} in the candidate"]
    what = "the recordings" if shown.per == "recording" else "the median steps"
    if what == "the median steps" and shown.base.of == shown.candidate.of == 1:
        what = "the only complete step of each run"
    words = f"Drawn at first: {what}, {times[0]} and {times[1]}."
    if not any(shown.groups):
        return words
    return f"{words} {_tied(len(corresponding(base, candidate, shown.groups)), base, candidate)}"


def _tied(pairs: int, base: ShownStep, candidate: ShownStep) -> str:
    if pairs == base.launches == candidate.launches:
        return f"Each of their {pairs:,} launches corresponds to one of the other."
    others = f"{base.launches:,} launches in the base and {candidate.launches:,} in the candidate"
    return f"Of {others}, {pairs:,} correspond to one of the other."


def _reading(shown: ShownSteps, found: Comparison) -> Iterator[str]:
    for run, head in zip((shown.base, shown.candidate), HEADS, strict=True):
        if len(run.steps) < run.of:
            yield f"{len(run.steps):,} of {run.of:,} complete steps of the {head.lower()} can be chosen."
        if merged := sum(step.boxes["kernel"].null_count() for step in run.steps):
            yield f"{merged:,} boxes of the {head.lower()} are several short launches each, next to each other."
    if max(shown.base.of, shown.candidate.of) > 1:
        yield "The median step is the middle one by its time, of an even number the faster of two."
    yield _BEGIN
    yield _TIES if any(shown.groups) else _NO_TIES
    if found.changes.repair is not None and shown.per == "step":
        yield "Steps are drawn as recorded, without the comparison's repair."


SECTION = PageSection("aligned_steps", build, after="compared_kernels")
