"""What stands out on a time line: the longest idle gaps of devices, and disturbed steps."""

from collections.abc import Iterator, Sequence, Set
from typing import Final

import polars as pl

from inferometer.analyses.steps.table import StepTable
from inferometer.analyses.timeline.budget import IDLE, part_key
from inferometer.analyses.timeline.lanes.events import Lanes
from inferometer.analyses.timeline.timeline import Timeline
from inferometer.analyses.timeline.work import place_name
from inferometer.findings.finding import Finding
from inferometer.reports.page.blocks import Mark
from inferometer.reports.page.time_line.markup import NAME
from inferometer.units import format_duration

MOST_STEPS: Final = 50
"""Disturbed steps that are marked; of more, those with the largest excess."""

_CAUSES: Final = {
    "host_late": ("the host was late", "bad"),
    "sync": ("after a wait of the host", "warning"),
    "dependency": ("queued work waited", "warning"),
    "launch_gap": ("between queued launches", "muted"),
    "graph": ("between the launches of one call", "muted"),
    "unknown": ("no host call recorded", "muted"),
    "recorder": ("the recording was cut", "muted"),
}


def find_marks(
    lanes: Lanes, gaps: pl.DataFrame | None, steps: StepTable | None, findings: Sequence[Finding] = ()
) -> Sequence[Mark]:
    """Gaps in their order, then disturbed steps in theirs. A gap whose cause a finding names leads there.

    Args:
        lanes: The time line that has them.
        gaps: Those that are marked: `Timeline.gaps` or rows of `find_gaps`.
        steps: Of which those that are disturbed are marked.
        findings: What the page has about the run.
    """
    named = {part for finding in findings for part in finding.parts}
    marks = [] if gaps is None else [*_gaps(gaps, lanes.origin_ns, named)]
    return [*marks, *([] if steps is None else _steps(steps, lanes.origin_ns))]


def find_address(finding: Finding, timeline: Timeline | None) -> str:
    """Where on the time line the longest gap is that has the finding's cause; empty where none of the longest has."""
    if timeline is not None:
        for row in timeline.gaps.iter_rows(named=True):
            if part_key(IDLE, row["cause"]) in finding.parts:
                return f"#{NAME}?at={row['at_ns']}-{row['at_ns'] + row['gap_ns']}"
    return ""


def _gaps(gaps: pl.DataFrame, origin_ns: int, named: Set[str]) -> Iterator[Mark]:
    for row in gaps.iter_rows(named=True):
        words, tone = _CAUSES[row["cause"]]
        start_ns = row["gap_start_ns"] - origin_ns
        text = f"{place_name(row['rank'], row['device'])} idle for {format_duration(row['gap_ns'])}: {words}"
        section = "findings" if part_key(IDLE, row["cause"]) in named else NAME
        yield Mark(start_ns, start_ns + row["gap_ns"], text, tone, section)


def _steps(steps: StepTable, origin_ns: int) -> Iterator[Mark]:
    disturbed = steps.steps.filter("disturbed").drop_nulls(("start_ns", "wall_ns"))
    largest = disturbed.sort("excess_ns", "step", descending=[True, False], nulls_last=True).head(MOST_STEPS)
    for row in largest.sort("step").iter_rows(named=True):
        start_ns = row["start_ns"] - origin_ns
        why = f": {row['why']}" if row["why"] else ""
        text = f"step {row['step']} was disturbed, {format_duration(row['wall_ns'])}{why}"
        yield Mark(start_ns, start_ns + row["wall_ns"], text, "warning", "steps")
