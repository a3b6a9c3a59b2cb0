"""What has one name has one colour: a family of kernels all over the page, and a series of both runs."""

from typing import Any

import pytest
from tests.conftest import SHARED_DATA

import inferometer
from inferometer.reports.page.blocks import Beside, Block, Chart, Part, Stack, find_charts
from inferometer.reports.page.look import PageData
from inferometer.reports.page.scales import share_scales
from inferometer.reports.page.section import build_blocks
from inferometer.reports.page.shades import family_shades
from inferometer.reports.page.time_line.palette import category_colors

KINETO = SHARED_DATA / "traces" / "kineto"
real = pytest.mark.skipif(not KINETO.is_dir(), reason="needs ../shared/data/traces")


def series(name: str, shade: str, **more: Any) -> dict[str, Any]:
    return {"type": "bar", "name": name, "x": [1.0], "y": ["a"], "marker": {"color": shade}, **more}


def shades_of(chart: Part) -> dict[str, str]:
    assert isinstance(chart, Chart)
    return {trace["name"]: trace["marker"]["color"] for trace in chart.data}


def of(*data: dict[str, Any], **layout: Any) -> Block:
    return Block("steps", "Steps", [Chart("c", "c.", [*data], layout)])


def test_five_families_have_strong_colours_and_communication_its_own() -> None:
    assert family_shades(["gemm", "collective", "norm", "gemm", "copy", "attention", "moe", "softmax", "gather"]) == {
        "gemm": "--series-1",
        "norm": "--series-4",
        "copy": "--series-5",
        "attention": "--series-6",
        "moe": "--series-7",
        "softmax": "--series-8",
        "gather": "--series-8",
        "collective": "--series-2",
    }


def test_series_of_the_candidate_have_the_base_s_colours_and_new_ones_others() -> None:
    base = of(series("a", "var(--series-1)"), series("b", "var(--series-2)"))
    candidate = of(series("b", "var(--series-1)"), series("c", "var(--series-2)"), series("a", "var(--series-3)"))
    left, right = share_scales(base, candidate)
    assert left is not None
    assert right is not None
    assert shades_of(left.parts[0]) == {"a": "var(--series-1)", "b": "var(--series-2)"}
    assert shades_of(right.parts[0]) == {"a": "var(--series-1)", "b": "var(--series-2)", "c": "var(--series-3)"}


def test_colours_that_say_something_and_charts_with_a_menu_stay() -> None:
    mixed = series("a", "var(--bad)"), series("b", "var(--series-1)", line={"color": "var(--series-2)"})
    _, right = share_scales(of(series("a", "var(--series-1)"), series("b", "var(--series-3)")), of(*mixed))
    assert right is not None
    assert right.parts == of(*mixed).parts
    chosen = of(series("a", "var(--series-2)"), updatemenus=[])
    _, right = share_scales(of(series("a", "var(--series-1)")), chosen)
    assert right is not None
    assert right.parts == chosen.parts


def test_charts_of_one_kind_share_scales_and_stand_on_zero_where_one_does() -> None:
    def curve(title: str, *values: float) -> Block:
        data = [{"type": "scatter", "x": [0, 1], "y": [*values], "name": "y"}]
        return Block("b", "B", [Chart(title, "c.", data, {"yaxis": {"rangemode": "tozero"}}, kind="k")])

    sides = share_scales(curve("gpu:0", 5, 9), curve("gpu:2", 3, 10))
    for side in sides:
        assert side is not None
        (chart,) = find_charts(side.parts)
        assert chart.layout["yaxis"]["range"] == [0, 10.4]  # type: ignore[union-attr]


@real
def test_a_family_has_one_colour_in_the_bar_the_time_line_and_both_runs() -> None:
    runs = [inferometer.open(KINETO / f"{name}_qwen1.5-0.5b.json.gz") for name in ("h100", "mi300")]
    data = PageData(runs[0], runs[1])
    blocks = {block.name: block for block in build_blocks(data)}
    (beside,) = [
        part
        for part in blocks["overview"].parts
        if isinstance(part, Beside) and any(isinstance(each, Stack) for row in part.rows for each in row)
    ]
    stacks = [each for row in beside.rows for each in row if isinstance(each, Stack)]
    bars = [{one.name: one.shade for one in stack.slices if one.name.endswith(" kernels")} for stack in stacks]
    shared = bars[0].keys() & bars[1].keys()
    assert len(shared) >= 5
    assert {name: bars[0][name] for name in shared} == {name: bars[1][name] for name in shared}
    for run, bar in zip(data.runs, bars, strict=True):
        assert run.lanes is not None
        colors = category_colors(run.lanes.categories, run.shades)
        lines = {each.name: f"var({name})" for each, (name, _) in zip(run.lanes.categories, colors, strict=True)}
        assert {name: lines[name] for name in bar} == bar


@real
def test_the_rooflines_of_two_devices_stand_side_by_side() -> None:
    runs = [inferometer.open(KINETO / f"{name}_qwen1.5-0.5b.json.gz") for name in ("h100", "mi300")]
    blocks = {block.name: block for block in build_blocks(PageData(runs[0], runs[1]))}
    rows = [row for part in blocks["roofline"].parts if isinstance(part, Beside) for row in part.rows]
    pairs = [[part.title if isinstance(part, Chart) else "" for part in row] for row in rows]
    assert ["Roofline of H100 SXM", "Roofline of MI300X"] in pairs
