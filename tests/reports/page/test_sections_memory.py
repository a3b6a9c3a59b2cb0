"""Device memory in the page: a curve per device, and sums only where they are of one device."""

import pytest
from tests.conftest import SHARED_DATA

import inferometer
from inferometer.reports.page.blocks import Chart, Grid
from inferometer.reports.page.grids import TableLimits, arrange_grid
from inferometer.reports.page.look import RunData
from inferometer.reports.page.sections.memory import build

KINETO = SHARED_DATA / "traces" / "kineto"
real = pytest.mark.skipif(not KINETO.is_dir(), reason="needs ../shared/data/traces")


@real
def test_a_device_s_curve_reaches_its_peak_and_is_said_in_words() -> None:
    trace = inferometer.open(KINETO / "h100_vit.json.gz")
    block = build(RunData(trace))
    assert block is not None
    charts = {part.title: part for part in block.parts if isinstance(part, Chart)}
    assert [*charts] == ["Allocated on cpu", "Allocated on gpu:0"]
    rows = trace.memory_events.collect().to_dicts()
    peak = max(row["allocated_bytes"] for row in rows if row["device"] == "gpu:0")
    curve = charts["Allocated on gpu:0"]
    assert max(curve.data[0]["y"]) == pytest.approx(peak / 1e6, rel=1e-4)
    assert curve.alt.startswith(f"At most {peak / 1e6:.3f} MB of gpu:0 were allocated.")


@real
def test_peaks_of_two_devices_are_not_added_up() -> None:
    block = build(RunData(inferometer.open(KINETO / "h100_vit.json.gz")))
    assert block is not None
    grids = [part for part in block.parts if isinstance(part, Grid)]
    tables = [arrange_grid(grid, TableLimits()) for grid in grids]
    assert [table.title for table in tables] == ["Memory, at the end but for the peak", "What held the peak"]
    assert not any(head.summed for head in tables[1].heads)
    assert not any("█" in note for table in tables for note in table.notes)
