"""What stands out on the time line of the app, as on the page's: gaps, and disturbed steps.

Of very many launches, steps are those that the run has marked, and gaps aren't looked for: its report has both.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import polars as pl

from inferometer.analyses.steps.table import StepTable, step_table
from inferometer.analyses.timeline.lanes.events import Lanes
from inferometer.analyses.timeline.timeline import find_timeline
from inferometer.findings.evidence.launch_evidence import LaunchEvidence
from inferometer.reports.page.time_line.marks import find_marks
from inferometer.trace.trace import Trace

MOST_LAUNCHES: Final = 2_000_000

Places = Callable[[Lanes], Sequence[dict[str, Any]]]


def find_places(trace: Trace) -> tuple[pl.DataFrame | None, Places]:
    """The steps, and what makes marks as the viewer has them."""
    launches = trace.launches.select(pl.len()).collect().item()
    steps = _steps(trace, launches)
    timeline = find_timeline(trace) if 0 < launches <= MOST_LAUNCHES else None

    def places(lanes: Lanes) -> Sequence[dict[str, Any]]:
        return [
            {"start": mark.start_ns, "end": mark.end_ns, "text": mark.text, "tone": mark.tone}
            for mark in find_marks(lanes, timeline, steps)
        ]

    return None if steps is None else steps.steps, places


def _steps(trace: Trace, launches: int) -> StepTable | None:
    if trace.steps.select(pl.len()).collect().item():
        return step_table(trace)
    return LaunchEvidence(trace).steps if 0 < launches <= MOST_LAUNCHES else None
