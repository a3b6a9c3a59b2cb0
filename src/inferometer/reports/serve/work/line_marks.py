"""What stands out on the time line of the app, as on the page's: the longest gaps, and disturbed steps.

Both are looked for once, when the time line is laid out, and kept with it.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import polars as pl

from inferometer.analyses.timeline.gaps import longest_gaps
from inferometer.analyses.timeline.lanes.events import Lanes
from inferometer.analyses.timeline.work import find_work
from inferometer.findings.evidence.launch_evidence import LaunchEvidence
from inferometer.reports.page.time_line.marks import find_marks
from inferometer.trace.trace import Trace

GAPS: Final = 10
"""As many as the page marks."""

Places = Callable[[Lanes], Sequence[dict[str, Any]]]


def find_places(trace: Trace) -> tuple[pl.DataFrame | None, Places]:
    """The steps, and what makes marks as the viewer has them."""
    has_launches = trace.launches.head(1).collect().height > 0
    steps = LaunchEvidence(trace).steps
    gaps = longest_gaps(trace, find_work(trace), GAPS) if has_launches else None

    def places(lanes: Lanes) -> Sequence[dict[str, Any]]:
        return [
            {"start": mark.start_ns, "end": mark.end_ns, "text": mark.text, "tone": mark.tone}
            for mark in find_marks(lanes, gaps, steps)
        ]

    return None if steps is None else steps.steps, places
