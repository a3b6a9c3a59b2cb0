"""The section about the device's bounds: a roofline, bars that add up to the time, and what a trace may lack for it."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.kineto_files import Event, call, event, kernel, write_file
from tests.reports.page.test_sections_kernels import charts, grids
from tests.traces import trace_of

import inferometer
from inferometer.analyses.launched_by import attribution
from inferometer.hardware.known import require_device
from inferometer.reports.page.blocks import Block, Chart, Words
from inferometer.reports.page.look import PageData, PageOptions, RunData
from inferometer.reports.page.section import build_blocks
from inferometer.reports.page.sections import roofline
from inferometer.trace.trace import Trace

BF16, FP32 = "c10::BFloat16", "float"
HOSTILE = "aten::<script>alert('k')</script>"
SAMPLES = Path(__file__).resolve().parents[3] / "samples"


def op(name: str, begin: int, dur: int, *dims: list[int], kind: str = BF16) -> list[Event]:
    """A call of an op with the launch that it makes."""
    recorded = {"Input_Dims": list(dims), "Input_type": [kind] * len(dims)}
    return [
        event("cpu_op", name, str(begin), "8", **recorded),
        call(ts=str(begin + 1), dur="2", correlation=begin),
        kernel(f"kernel of {name}", str(begin + 10), str(dur), correlation=begin),
    ]


EVENTS = [
    *op("aten::mm", 1_000, 400, [4096, 4096], [4096, 4096]),
    *op("aten::mm", 2_000, 400, [4096, 4096], [4096, 4096]),
    *op("aten::tanh", 3_000, 200, [4096, 4096]),
    *op("aten::copy_", 4_000, 90, [4096, 4096], [4096, 4096]),
    *op(HOSTILE, 5_000, 60, [3]),
]


@pytest.fixture
def run(tmp_path: Path) -> RunData:
    path = tmp_path / "trace.json"
    path.write_bytes(write_file(EVENTS))
    return RunData(inferometer.open(path), PageOptions(device=require_device("H100 SXM")))


def built(run: RunData) -> Block:
    block = roofline.SECTION.build(run)
    assert isinstance(block, Block)
    return block


def traces_of(chart: Chart, kind: str, mode: str = "") -> dict[str, dict[str, Any]]:
    return {trace["name"]: trace for trace in chart.data if trace["type"] == kind and trace.get("mode", "") == mode}


def test_an_op_stands_at_its_intensity_and_rate_and_tells_what_it_is(run: RunData) -> None:
    dots = traces_of(charts(built(run))[0], "scatter", "markers")
    assert list(dots) == ["products of matrices", "element-wise"]
    (product,) = dots["products of matrices"]["customdata"]
    # 2 * 4096^3 FLOPs and 3 * 2 * 4096^2 bytes of a call; two calls take 800 us
    assert dots["products of matrices"]["x"] == [1365]
    assert dots["products of matrices"]["y"] == [343.6]
    assert product[:2] == ["aten::mm", "[4096,4096] [4096,4096] bf16"]
    assert product[2] == "2 calls, 800.000 μs, 34.7 % of the bound by matrix"


def test_the_area_of_a_dot_is_its_time(run: RunData) -> None:
    dots = traces_of(charts(built(run))[0], "scatter", "markers")
    (large,), (small,) = (dots[family]["marker"]["size"] for family in dots)
    assert (large / small) ** 2 == pytest.approx(800 / 200, rel=1e-3)


def test_roofs_are_those_of_what_the_ops_multiply(run: RunData) -> None:
    lines = traces_of(charts(built(run))[0], "scatter", "lines")
    assert list(lines) == ["memory, 3.35 TB/s", "bf16 matrix, 989.4 TFLOP/s", "fp32 vector, 66.9 TFLOP/s"]
    memory = lines["memory, 3.35 TB/s"]
    assert memory["y"][1] == 989.4
    assert memory["x"][1] == pytest.approx(989.4 / 3.35, rel=1e-3)


def test_ops_without_arithmetic_are_said(run: RunData) -> None:
    words = [part.text for part in built(run).parts if isinstance(part, Words)]
    assert "1 op does no arithmetic and can't be placed: 90.000 μs." in words


def test_bars_add_up_to_the_measured_time(run: RunData) -> None:
    (bars,) = charts(built(run))[1:]
    named = traces_of(bars, "bar")
    assert list(named) == ["at the bound", "above it", "not modelled"]
    assert bars.layout["xaxis"]["title"]["text"] == "Device time, μs"
    rows = {label: [named[name]["x"][at] for name in named] for at, label in enumerate(named["above it"]["y"])}
    assert {label: sum(times) for label, times in rows.items()} == pytest.approx(
        {"products of matrices": 800, "element-wise": 200, "copies": 90, "(not modelled)": 60}, rel=1e-3
    )  # numbers have four digits
    assert rows["products of matrices"][0] == pytest.approx(2 * 2 * 4096**3 / 989.4e6, rel=1e-3)
    assert rows["(not modelled)"] == [0, 0, 60]


def test_modules_have_bars_and_the_smallest_are_one() -> None:
    block = built(RunData(inferometer.open(SAMPLES / "decode.json.gz")))
    *_, modules = charts(block)
    assert modules.title == "Time at the bounds and above, by module"
    for trace in modules.data:
        assert len(trace["y"]) <= roofline.BARS
    assert next(grid.section.title for grid in grids(block)) == "Ops, most time above the bound first"


def test_hostile_names_are_plain_text(run: RunData) -> None:
    block = built(run)
    (reasons,) = (grid for grid in grids(block) if grid.section.title == "Not modelled")
    assert HOSTILE in reasons.section.frame["what"]
    assert "<script>" not in json.dumps([chart.data for chart in charts(block)])


@pytest.mark.parametrize(
    ("events", "device", "why"),
    [
        ([kernel("k", "100", "10")], "H100 SXM", "the shapes of ops"),
        (op(HOSTILE, 100, 10, [3]), "H100 SXM", "the shapes of ops"),
        (op("aten::tanh", 100, 10, [3]), None, "name it with --hardware for bounds"),
    ],
)
def test_what_a_trace_lacks_is_said(events: list[Event], device: str | None, why: str, tmp_path: Path) -> None:
    (tmp_path / "trace.json").write_bytes(write_file(events))
    asked = PageOptions(device=None if device is None else require_device(device))
    block = built(RunData(inferometer.open(tmp_path / "trace.json"), asked))
    assert not block.parts
    assert why in block.lacking


def test_a_trace_without_launches_lacks_them() -> None:
    assert "launches that can be tied to them" in built(RunData(trace_of())).lacking


def test_a_page_attributes_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    attribute = attribution.attribute

    def counted(trace: Trace, *args: Any, **named: Any) -> Any:
        seen.append(trace)
        return attribute(trace, *args, **named)

    monkeypatch.setattr(attribution, "attribute", counted)
    blocks = {block.name: block for block in build_blocks(PageData(inferometer.open(SAMPLES / "decode.json.gz")))}
    assert all(blocks[name].parts for name in ("roofline", "call_tree", "findings"))
    assert len(seen) == 1
