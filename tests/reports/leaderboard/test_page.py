"""The leaderboard's page: every shape is on it, figures that mean nothing say so, and it stays below 8 MB."""

import re

import pytest
from tests.reports.page.test_document import Html

from inferometer.analyses.operators.leaderboard import Leaderboard, make_leaderboard
from inferometer.hardware.known import require_device
from inferometer.operators import operators, require_operator
from inferometer.reports.leaderboard.bands import band_of
from inferometer.reports.leaderboard.page import (
    MOST_DEVICES,
    build_blocks,
    render_leaderboard,
    render_leaderboard_text,
)
from inferometer.reports.page.blocks import Block, Chart, Folds, Grid, Points, Tabs, Words
from inferometer.reports.page.document import MOST_BYTES

CHOSEN = [require_operator(name) for name in ("unified_attention", "fused_qkv_rope", "rms_norm")]


@pytest.fixture(scope="module")
def board() -> Leaderboard:
    return make_leaderboard(CHOSEN, [require_device("H100 SXM")], require_device)


@pytest.fixture(scope="module")
def blocks(board: Leaderboard) -> dict[str, Block]:
    return {block.name: block for block in build_blocks(board)}


def tabs_of(block: Block) -> Tabs:
    return next(part for part in block.parts if isinstance(part, Tabs))


def test_sections_stand_in_order_and_tabs_are_the_platforms(blocks: dict[str, Block]) -> None:
    assert [*blocks] == ["facts", "catalogue", "hardware", "shapes", "warnings", "roofline", "definitions"]
    for name in ("hardware", "shapes", "roofline"):
        assert [tab.title for tab in tabs_of(blocks[name]).tabs] == ["XPU-A", "H20", "H100 SXM"]


def test_operators_unfold_in_the_order_of_their_published_s(blocks: dict[str, Block]) -> None:
    for tab in tabs_of(blocks["shapes"]).tabs:
        (folds,) = (part for part in tab.parts if isinstance(part, Folds))
        assert [fold.title for fold in folds.folds] == ["fused_qkv_rope", "unified_attention", "rms_norm"]
        grids = [part for fold in folds.folds for part in fold.parts if isinstance(part, Grid)]
        assert [grid.section.frame.height for grid in grids] == [6, 25, 56]
    first, *_ = tabs_of(blocks["shapes"]).tabs
    (folds,) = (part for part in first.parts if isinstance(part, Folds))
    rope, attention, _ = folds.folds
    below = "6 shapes, mostly bound by memory, 6 with a bound below a launch"
    assert rope.aside == f"median S 0.1 %, published 0.1 %, {below}"
    assert rope.band == band_of(0.001)
    assert attention.aside.endswith("25 shapes, mostly bound by matrix, 4 with a bound below a launch")


@pytest.mark.parametrize(
    ("sol_fraction", "sign"),
    [(0, "◔"), (0.1249, "◔"), (0.125, "◑"), (0.333, "◑"), (0.334, "●"), (1.0, "●"), (1.001, "⚠")],
)
def test_bands_of_s_have_signs(sol_fraction: float, sign: str) -> None:
    assert band_of(sol_fraction).sign == sign


def test_warnings_name_the_shapes_with_both_times(blocks: dict[str, Block]) -> None:
    (points,) = (part for part in blocks["warnings"].parts if isinstance(part, Points))
    traced = next(point for point in points.points if "(above_traced)" in point.text)
    assert re.search(r"rms_norm: #52 \(bound [\d.]+ μs, traced [\d.]+ μs\)", " ".join(traced.detail))


def test_a_roofline_has_its_roofs_and_marks_shapes_below_a_launch(blocks: dict[str, Block]) -> None:
    timed, _, other = (
        [part for part in tab.parts if isinstance(part, Chart)] for tab in tabs_of(blocks["roofline"]).tabs
    )
    names = [trace["name"] for trace in timed[0].data]
    assert names[:3] == ["memory, 5.3 TB/s", "bf16 matrix, 232.7 TFLOP/s", "fp32 vector, 29.1 TFLOP/s"]
    regimes = ("C: compute", "M: memory")
    assert names[3:] == [f"{regime}{below}" for regime in regimes for below in ("", ", bound below a launch")]
    crosses = next(trace for trace in timed[0].data if trace["name"] == "M: memory, bound below a launch")
    assert all(re.match(r"S [\d.]+ %, published", said[2]) for said in crosses["customdata"])
    slope, matrix, *_ = timed[0].data
    assert (slope["x"][1], slope["y"][1]) == (matrix["x"][0], matrix["y"][0])  # the ridge
    assert sum(len(trace["x"]) for trace in timed[0].data[3:]) == 25 + 6 + 56
    assert other[0].layout["yaxis"]["title"]["text"] == "TFLOP/s allowed by our bound"
    (words,) = (part for part in tabs_of(blocks["roofline"]).tabs[2].parts if isinstance(part, Words))
    assert "modelled, not measured" in words.text


def test_every_shape_of_every_platform_is_on_the_page(board: Leaderboard) -> None:
    page = render_leaderboard(board, title="<b>Mine</b>", command="inferometer leaderboard -o a.html")
    assert page.left_out == ()
    html = Html(page.html)
    assert "b" not in {tag for tag, _ in html.tags}
    labels = [shape.label for operator in CHOSEN for shape in operator.catalogue().shapes]
    for label in set(labels):
        assert html.texts.count(label) == 3 * labels.count(label), label
    assert "Made with: inferometer leaderboard -o a.html" in html.texts
    ids = [attrs["id"] for _, attrs in html.tags if "id" in attrs]
    assert len(ids) == len(set(ids))


def test_as_many_devices_as_may_be_asked_for_have_room() -> None:
    names = ("H100 SXM", "H200 SXM", "B200", "MI300X")[:MOST_DEVICES]
    whole = make_leaderboard(list(operators().values()), [require_device(name) for name in names], require_device)
    page = render_leaderboard(whole, title="All", command="")
    assert len(names) == MOST_DEVICES
    assert len(page.html.encode()) < MOST_BYTES
    assert page.left_out == ()
    assert "more rows" not in page.html.split("<script>")[0]


def test_markdown_has_all_rows_and_whole_sentences(board: Leaderboard) -> None:
    text = render_leaderboard_text(board, title="Mine", command="inferometer leaderboard -o a.md")
    assert text.startswith("# Mine\n\n## The catalogue\n")
    assert text.count("\n#### rms\\_norm\n") == 3
    rows = re.findall(r"^\| .*$", text.split("## Shapes")[1].split("## Warnings")[0], re.MULTILINE)
    assert len(rows) == 3 * (25 + 6 + 56) + 9  # and the heads
    assert "| ◔ 0.1 % | ◔ 0.1 % |" in text
    assert "more characters" not in text
    assert text.rstrip().endswith("Made with: inferometer leaderboard -o a.md")


def test_an_empty_catalogue_has_a_page() -> None:
    page = render_leaderboard(make_leaderboard([], [], require_device), title="None", command="")
    Html(page.html)
