"""The call trees of two runs as one: what each node took in either, and the change."""

from collections.abc import Iterator, Sequence

from inferometer.analyses.compare.call_trees import CallTreeComparison, TreeRun
from inferometer.analyses.steps.sources import UNKNOWN_PHASE
from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.call_tree import join_ops
from inferometer.reports.views.layout import Field, Section
from inferometer.reports.views.view import View
from inferometer.units import format_duration

_FIELDS = (
    Field("delta_ns", "Change", "ns"),
    Field("base_ns", "Base", "ns"),
    Field("candidate_ns", "Candidate", "ns"),
    Field("ratio", "Ratio", "ratio", spare=2),
    Field("base_count", "Base Launches", "ratio", spare=3),
    Field("candidate_count", "Candidate Launches", "ratio", spare=4),
    Field("status", "Status", "text", spare=1),
    Field("kind", "Kind", "text", spare=5),
    Field("indented", "Name", "name"),
)


def _facts(tree: CallTreeComparison) -> Iterator[tuple[str, str]]:
    yield "Base", tree.base.found.source
    yield "Candidate", tree.candidate.found.source
    yield "Device time", describe_totals(tree)


def describe_totals(tree: CallTreeComparison) -> str:
    """The device time of both runs, and what it is of."""
    times = f"{format_duration(tree.base_ns)} -> {format_duration(tree.candidate_ns)}"
    ratio = f", {tree.candidate_ns / tree.base_ns:.3f} times" if tree.base_ns else ""
    if tree.per == "run":
        return f"{times} of the whole runs{ratio}. They don't both mark their steps in the same way."
    return f"{times} a step{ratio} ({tree.base.steps:,} and {tree.candidate.steps:,} steps)"


def _sections(tree: CallTreeComparison) -> Sequence[Section]:
    of = "a step" if tree.per == "step" else "whole runs"
    rows = join_ops(tree.shown, "base_ns", "candidate_ns")
    return [Section(f"Call trees, {of}", _FIELDS, rows)]


def _remarks(tree: CallTreeComparison) -> Iterator[str]:
    if tree.shown.height < tree.frame.height:
        yield f"{tree.shown.height:,} of {tree.frame.height:,} nodes shown: --min-share 0 shows all."
    yield from about_steps(tree)
    yield from tree.notable


def about_steps(tree: CallTreeComparison) -> Iterator[str]:
    """What was left out since no step called for it, and how phases are mixed in a mean step."""
    runs = tree.base, tree.candidate
    if any(run.outside_ns for run in runs):
        times = [format_duration(run.outside_ns) for run in runs]
        yield f"Left out as in no step: {times[0]} of the base and {times[1]} of the candidate."
    if tree.per == "step" and any(len(run.phases) > 1 for run in runs):
        yield f"A step is the mean of all phases: {'; '.join(map(_phases, ('base', 'candidate'), runs))}."


def _phases(side: str, run: TreeRun) -> str:
    counts = sorted(run.phases.items(), key=str)
    return f"{side} {', '.join(f'{count:,} {phase or UNKNOWN_PHASE}' for phase, count in counts)}"


VIEW = View(
    schema=Schema("tree_comparison", 1), facts=_facts, sections=_sections, remarks=_remarks, remarks_in_json=True
)
