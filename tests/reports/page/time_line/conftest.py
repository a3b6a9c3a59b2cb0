"""What the tests of the time line share: a page with one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.reports.page.browser import Tab
from tests.reports.page.time_line.driving import VIEWER

from inferometer.analyses.timeline.lanes.find import find_lanes
from inferometer.reports.page.blocks import Block, Mark, Part, TimeLine, Words
from inferometer.reports.page.document import render_page
from inferometer.trace.trace import Trace


@pytest.fixture
def show(tab: Tab, tmp_path: Path) -> Callable[..., None]:
    """Opens a page with the time line of a trace, and waits until it is drawn."""

    def show(trace: Trace, *marks: Mark, **window: Any) -> None:
        line = find_lanes(trace)
        assert line is not None
        parts: list[Part] = [TimeLine("What ran when", "All of it.", line, marks), *(Words("below") for _ in range(40))]
        path = tmp_path / "page.html"
        path.write_text(render_page([Block("timeline", "Time line", parts)], title="run").html, "utf-8")
        tab.open(path, **window)
        tab.wait(f"{VIEWER}?.drawn > 0")

    return show
