"""A page of two runs shows of the candidate what it shows of the base, on the same scales."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.analyses.compare.run_traces import LAYER, kernel_run

import inferometer
from inferometer.reports.page.blocks import Block, Chart, Grid, find_charts
from inferometer.reports.page.document import MOST_BYTES, render_page
from inferometer.reports.page.look import PageData, RunData
from inferometer.reports.page.scales import share_scales
from inferometer.reports.page.section import RunSection, build_blocks, page_sections
from inferometer.reports.page.text import render_text

RECORDED = Path(__file__).resolve().parents[3] / "samples" / "recorded"

LACKING = ("bounds", "roofline")  # the runs print no sums by step and have no shapes
ABSENT = ("memory", "tests")  # sections without a place on the page of a run that has none


@pytest.fixture(scope="module")
def look() -> PageData:
    base, candidate = (inferometer.open(RECORDED / "disk" / f"{run}.ifm") for run in ("normal", "fault"))
    return PageData(base, candidate)


@pytest.fixture(scope="module")
def blocks(look: PageData) -> dict[str, Block]:
    """Sections about one run apart, as a comment has them."""
    return {block.name: block for block in build_blocks(look, is_beside=False)}


def test_each_section_about_one_run_stands_there_for_both(blocks: dict[str, Block]) -> None:
    names = list(blocks)
    for section in page_sections():
        if isinstance(section, RunSection) and section.name not in (*LACKING, *ABSENT):
            first = names.index(f"{section.name}_base")
            assert names[first + 1] == f"{section.name}_candidate", "one after the other"
            titles = [blocks[name].title for name in names[first : first + 2]]
            assert titles[1] == titles[0].removesuffix("(base)") + "(candidate)"


def test_what_both_runs_lack_is_reported_once(blocks: dict[str, Block]) -> None:
    for name in LACKING:
        assert blocks[name].lacking
        assert f"{name}_candidate" not in blocks


def test_the_kernels_of_each_side_are_those_of_its_run(blocks: dict[str, Block]) -> None:
    for side, run in (("base", "normal"), ("candidate", "fault")):
        (grid,) = [part for part in blocks[f"kernels_{side}"].parts if isinstance(part, Grid)]
        total_ns = inferometer.open(RECORDED / "disk" / f"{run}.ifm").launches.select("dur_ns").collect().sum().item()
        assert grid.section.frame["total_ns"].sum() == total_ns


def test_the_page_has_each_section_once_and_stays_within_its_limit(look: PageData, blocks: dict[str, Block]) -> None:
    whole = build_blocks(look)
    names = [block.name for block in whole]
    assert len(names) == len(set(names))
    assert not [name for name in names if name.endswith(("_base", "_candidate"))]
    page = render_page(whole, title="both")
    assert len(page.html.encode()) < MOST_BYTES
    assert page.left_out == ()
    charts_apart = [chart.title for block in blocks.values() for chart in find_charts(block.parts)]
    charts_of_page = [chart.title for block in whole for chart in find_charts(block.parts)]
    assert sorted(charts_of_page) == sorted(charts_apart), "nothing of either run is left out"
    assert [f"### {head}" in render_text(whole, title="both") for head in ("Base", "Candidate")] == [True, True]


def test_markdown_has_both(blocks: dict[str, Block]) -> None:
    text = render_text([*blocks.values()], title="both")
    assert [f"## Time line ({side})" in text for side in ("base", "candidate")] == [True, True]


def test_markdown_of_two_large_runs_has_shorter_tables_to_fit_into_a_comment(blocks: dict[str, Block]) -> None:
    short, long = (render_text([*blocks.values()] * times, title="both") for times in (1, 2))
    assert len(short) <= 65_536
    assert len(long) <= 65_536
    assert long.count("\n|") < 2 * short.count("\n|")


def test_charts_of_both_runs_have_the_same_ranges_that_hold_all_they_draw(blocks: dict[str, Block]) -> None:
    shared = 0
    for name, block in blocks.items():
        if not name.endswith("_base"):
            continue
        others = {chart.title: chart for chart in charts(blocks[name.removesuffix("base") + "candidate"])}
        for chart in charts(block):
            for axis in ("xaxis", "yaxis"):
                other = others.get(chart.title)
                if other and chart.title in others and axis in chart.layout and axis in other.layout:
                    own, its = chart.layout[axis].get("range"), other.layout[axis].get("range")
                    if chart.layout[axis].get("title") == other.layout[axis].get("title"):
                        assert own == its
                        shared += own is not None
    assert shared > 5


def charts(block: Block) -> list[Chart]:
    return [part for part in block.parts if isinstance(part, Chart)]


def chart(*data: dict[str, Any], unit: str = "ms", **layout: Any) -> Block:
    axes = {"xaxis": {"title": {"text": "Step"}}, "yaxis": {"title": {"text": f"Time, {unit}"}}}
    return Block("one", "One", [Chart("times", "", data, {**axes, **layout})])


def ranges(base: Block, candidate: Block) -> list[tuple[Any, Any]]:
    first, second = share_scales(base, candidate)
    assert first is not None
    assert second is not None
    layouts = [charts(each)[0].layout for each in (first, second)]
    return [(layout["xaxis"].get("range"), layout["yaxis"].get("range")) for layout in layouts]


def points(y: list[float], **more: Any) -> dict[str, Any]:
    return {"type": "scatter", "x": list(range(len(y))), "y": y, **more}


def test_a_range_holds_both_runs_with_room_at_the_ends() -> None:
    both = ranges(chart(points([100, 200])), chart(points([150, 300, 120])))
    assert both[0] == both[1] == ([0, 2.08], [92, 308])


def test_times_in_other_units_are_brought_to_the_larger_one() -> None:
    hover = {"hovertemplate": "step %{x}: %{y} μs<extra></extra>"}
    small, large = chart(points([1_000, 500], **hover), unit="μs"), chart(points([3, 2]), unit="ms")
    for pair in ((small, large), (large, small)):
        found = [charts(each)[0] for each in share_scales(*pair) if each is not None]
        assert [one.layout["yaxis"]["title"]["text"] for one in found] == ["Time, ms", "Time, ms"]
        assert found[0].layout["yaxis"]["range"] == found[1].layout["yaxis"]["range"] == [0.4, 3.1]
        (scaled,) = found[pair.index(small)].data
        assert (scaled["x"], scaled["y"]) == ([0, 1], [1, 0.5])
        assert scaled["hovertemplate"] == "step %{x}: %{y} ms<extra></extra>"


def test_a_box_of_times_is_brought_to_the_larger_unit_whole() -> None:
    box = {"type": "box", "orientation": "h", "y": ["k"], "lowerfence": [10], "q1": [20], "median": [30], "q3": [40]}
    layout: dict[str, Any] = {"xaxis": {"title": {"text": "Time, μs"}}, "yaxis": {}}
    small = Block("one", "One", [Chart("times", "", [{**box, "upperfence": [50]}], layout)])
    wide = {**box, "upperfence": [9]}
    large = Block("one", "One", [Chart("times", "", [wide], {**layout, "xaxis": {"title": {"text": "Time, ms"}}})])
    scaled, _ = share_scales(small, large)
    assert scaled is not None
    (data,) = charts(scaled)[0].data
    assert [data[name] for name in ("lowerfence", "median", "upperfence")] == [[0.01], [0.03], [0.05]]
    assert data["y"] == ["k"]


def test_bars_that_stand_on_each_other_are_added_and_begin_at_zero() -> None:
    stack = {"type": "bar", "x": [1, 2], "y": [10, 20]}
    both = ranges(chart(stack, stack, barmode="stack"), chart(stack, barmode="stack"))
    assert both[0][1] == both[1][1] == [0, 41.6]


def test_a_logarithmic_range_is_of_exponents_and_left_alone_where_one_chart_is_linear() -> None:
    log: dict[str, Any] = {"yaxis": {"title": {"text": "Time, ms"}, "type": "log"}}
    both = ranges(chart(points([1, 10]), **log), chart(points([100, 10]), **log))
    assert both[0][1] == both[1][1] == [-0.08, 2.08]
    assert ranges(chart(points([1, 10]), **log), chart(points([100, 10])))[0][1] is None


def test_axes_of_names_and_charts_with_a_menu_are_left_alone() -> None:
    names = {"type": "bar", "orientation": "h", "x": [1, 2], "y": ["a", "b"]}
    assert ranges(chart(names), chart(names))[0] == ([0, 2.08], None)
    assert ranges(chart(points([1, 2]), updatemenus=[{}]), chart(points([1, 3])))[0] == (None, None)


def test_a_run_and_a_page_of_it_hold_the_same_analyses() -> None:
    run, page = RunData(kernel_run()), PageData(kernel_run(), kernel_run(LAYER[:2]))
    assert run.kernels.total_ns == page.base.kernels.total_ns
    assert [each.kernels.kernels for each in page.runs] == [len(LAYER) + 1, 3]
    assert page.base.call_tree is page.base.call_tree, "made once"
    assert json.dumps(page.runs[0].kernels.as_json())
