"""Time lines and groups of long traces, whose columns are looked at batch by batch, are those of short ones."""

from pathlib import Path
from typing import Any

import pytest
from tests.long_columns import FILES, make_long

import inferometer
from inferometer.analyses.groups.groups import find_groups
from inferometer.analyses.timeline.lanes.find import find_lanes
from inferometer.analyses.timeline.lanes.levels import Levels
from inferometer.analyses.timeline.timeline import find_timeline
from inferometer.trace.trace import Trace

LEVEL = 12  # slices of 4 μs


def told(trace: Trace) -> list[Any]:
    return [find_groups(trace).as_json(), find_timeline(trace, top=100).as_json()]


def drawn(trace: Trace) -> list[Any]:
    """All events, and slices of one level but for their names: of equally long events any gives its own."""
    line = find_lanes(trace)
    if line is None:
        return []
    events = (line.row_at, line.start_ns, line.dur_ns, line.name, line.tie)
    level = Levels(line).at(LEVEL)
    slices = (level.slices.row, level.slices.at, level.slices.ns, level.slices.count, level.slices.longest_ns)
    return [line.lanes, line.categories, *(column.tolist() for column in (*events, level.single, *slices))]


@pytest.mark.parametrize("ask", [told, drawn])
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_length_makes_no_difference(path: Path, ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if not path.exists():
        pytest.skip(f"needs {path}")
    with inferometer.open(path) as trace:
        short = ask(trace)
        make_long(monkeypatch)
        assert ask(trace) == short
