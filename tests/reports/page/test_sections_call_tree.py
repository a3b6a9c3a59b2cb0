"""Who launched it: areas of the chart add up to all device work, the table has the heaviest, words say the rest."""

import json
import random
import time
from pathlib import Path
from typing import Any

import pytest
from tests.reports.call_trees import Node, tree_of
from tests.reports.page.browser import chromium, find_chromium
from tests.reports.page.comparisons import parts, words
from tests.traces import trace_of

from inferometer.analyses.launched_by.call_tree import CallTreeTable
from inferometer.names import decode
from inferometer.reports.page import tree_boxes
from inferometer.reports.page.blocks import MOST_ROWS, Block, Chart, Grid
from inferometer.reports.page.document import render_page
from inferometer.reports.page.drawing import cut
from inferometer.reports.page.figures import figure_json
from inferometer.reports.page.grids import TableLimits, arrange_grid
from inferometer.reports.page.look import RunData
from inferometer.reports.page.sections import call_tree
from inferometer.units import format_duration

GEMM = "nvjet_tst_128x112_64x7_1x2_h_bz_splitK_TNT"
SHORT = decode(GEMM).short_name
LINEAR: Node = ("op", "aten::linear", 0, ("op", "aten::addmm", 0, ("kernel", GEMM, 700_000)))
NORM: Node = ("op", "aten::rms_norm", 0, ("kernel", "norm", 200_000))
RUN: Node = ("frame", "/opt/app/main.py(3): run", 0, LINEAR, NORM)
BEFORE: Node = ("unknown", "(launched before the window)", 0, ("kernel", "norm", 100_000))


def build(table: CallTreeTable) -> Block:
    look = RunData(trace_of())
    look.call_tree = table
    block = call_tree.SECTION.build(look)
    assert block is not None
    return block


def icicle(table: CallTreeTable) -> dict[str, Any]:
    (chart,) = parts(build(table), Chart)
    (data,) = [trace for trace in chart.data if trace["type"] == "icicle"]
    return data


def large_tree(nodes: int, seed: int = 0) -> CallTreeTable:
    """Roots with random children, frames and ops above kernels."""
    rng = random.Random(seed)
    below: list[list[int]] = [[] for _ in range(nodes)]
    for node in range(1, nodes):
        below[max(0, node - rng.randint(1, 40))].append(node)
    made: dict[int, Node] = {}
    for node in reversed(range(nodes)):
        children = [made.pop(child) for child in below[node]]
        kind = rng.choice(["frame", "op", "module"]) if children else "kernel"
        made[node] = (kind, f"{kind} {node} " + "x" * 100, 0 if children else rng.randint(1, 10**6), *children)
    return tree_of(made[0])


def assert_conserved(data: dict[str, Any], total_ns: int) -> None:
    """Children never exceed their parent, which Plotly refuses; what is drawn to the end adds up to all."""
    value = dict(zip(data["ids"], data["values"], strict=True))
    sums = dict.fromkeys(value, 0)
    for parent, time_ns in zip(data["parents"], data["values"], strict=True):
        if parent:
            sums[parent] += time_ns
    assert len(value) == len(data["ids"])
    assert value["all"] == total_ns
    assert all(sums[id] <= time_ns for id, time_ns in value.items())
    assert sum(time_ns - sums[id] for id, time_ns in value.items()) == total_ns


def test_the_areas_are_the_nodes_below_all_device_work() -> None:
    table = tree_of(RUN, BEFORE)
    data = icicle(table)
    boxes = dict(zip(data["ids"], zip(data["labels"], data["values"], data["parents"], strict=True), strict=True))
    assert boxes["all"] == ("all device work", 1_000_000, "")
    labels = {label: (value, boxes[parent][0]) for label, value, parent in boxes.values() if parent}
    assert labels["main.py(3): run"] == (900_000, "all device work")
    assert labels["aten::linear"] == (700_000, "main.py(3): run")
    assert labels["aten::addmm"] == (700_000, "aten::linear")
    assert labels[cut(SHORT)] == (700_000, "aten::addmm")
    assert labels["(launched before the window)"] == (100_000, "all device work")
    assert_conserved(data, 1_000_000)


def test_hovering_tells_the_whole_name_and_all_numbers() -> None:
    data = icicle(tree_of(RUN, BEFORE))
    said = dict(zip(data["customdata"], data["text"], strict=True))
    assert said[GEMM] == "kernel: 700.000 μs, 70.0 %; 1 launch; self 700.000 μs"
    assert said["/opt/app/main.py(3): run"] == "frame: 900.000 μs, 90.0 %; 2 launches; self 0 ns"
    assert said["all device work"] == "1.000 ms; 90.0 % attributed"


@pytest.mark.parametrize("seed", range(5))
def test_of_a_large_tree_the_smallest_are_one_box_of_their_parent(seed: int) -> None:
    table = large_tree(4_000, seed)
    data = icicle(table)
    assert tree_boxes.BOXES - 2 <= len(data["ids"]) <= tree_boxes.BOXES
    assert any(label.endswith(" smaller)") for label in data["labels"])
    assert_conserved(data, table.total_ns)


@pytest.mark.parametrize("most", [1, 2, 3, 10, 50, 199, 200, 1_000])
def test_the_heaviest_have_their_parents_and_leave_room_for_the_rests(most: int) -> None:
    frame = large_tree(200).frame
    drawn = tree_boxes.heaviest(frame, most).to_list()
    parents = frame["parent"].to_list()
    assert all(
        drawn[parent] for parent, is_drawn in zip(parents, drawn, strict=True) if is_drawn and parent is not None
    )
    left_out = [parent for parent, is_drawn in zip(parents, drawn, strict=True) if not is_drawn]
    rests = {parent for parent in left_out if parent is None or drawn[parent]}
    assert sum(drawn) + len(rests) <= most
    assert all(drawn) == (most >= 200)


def test_nodes_without_time_are_no_boxes() -> None:
    data = icicle(tree_of(("op", "a", 0, ("kernel", "k", 4), ("kernel", "zero", 0)), ("kernel", "none", 0)))
    assert data["labels"] == ["all device work", "a", "k"]


def test_the_table_has_the_heaviest_as_a_tree_and_only_sums_of_the_rest() -> None:
    table = large_tree(4_000)
    (grid,) = parts(build(table), Grid)
    shown, rest = grid.section.frame.head(MOST_ROWS), grid.section.frame.slice(MOST_ROWS)
    assert sorted(shown["total_ns"]) == sorted(table.frame["total_ns"].top_k(MOST_ROWS))
    assert shown["node"].is_sorted()
    assert max(map(len, shown["called"])) <= 60
    *lines, last = arrange_grid(grid, TableLimits()).lines
    assert (len(lines), last.kind, last.rows) == (MOST_ROWS, "rest", rest.height)
    assert [cell.text for cell in last.cells] == ["", "", "", format_duration(int(rest["self_ns"].sum())), "", ""]


def test_names_in_the_table_are_indented_by_their_depth_and_in_full_where_they_were_shortened() -> None:
    (grid,) = parts(build(tree_of(RUN, BEFORE)), Grid)
    space = "\u00a0\u00a0"
    found = [(called.replace(space, ">").replace("\u00a0", " "), full) for called, full in
             grid.section.frame.select("called", "full").iter_rows()]  # fmt: skip
    assert found == [
        ("main.py(3): run", "/opt/app/main.py(3): run"),
        (">aten::linear", ""),
        (">>aten::addmm", ""),
        (f">>>{cut(SHORT, 40)}", GEMM),
        (">aten::rms_norm", ""),
        (">>norm", ""),
        (BEFORE[1], ""),
        (">norm", ""),
    ]


def test_the_words_say_what_is_attributed_and_what_is_not() -> None:
    block = build(tree_of(RUN, BEFORE, said=("Warm up first.",)))
    assert words(block, "plain") == ["90.0 % of 1.000 ms device time is attributed to who launched it."]
    assert words(block, "note") == [f"Not attributed: 100.000 μs {BEFORE[1]}.", "Warm up first."]
    assert words(block, "warning") == []
    (chart,) = parts(block, Chart)
    assert chart.alt == "aten::addmm is the deepest caller with at least half of 1.000 ms device time: 70.0 %."


def test_without_callers_it_says_what_to_record() -> None:
    block = build(tree_of(BEFORE))
    (warning,) = words(block, "warning")
    assert "with_stack=True and record_shapes=True" in warning
    (chart,) = parts(block, Chart)
    assert chart.alt == f"{BEFORE[1]} has the most of 100.000 μs device time: 100.0 %."


def test_a_real_tree_of_a_trace_is_shown() -> None:
    call = {"api": "cudaLaunchKernel", "process": 1, "thread": 1, "start_ns": 10, "dur_ns": 5, "correlation_id": 7}
    op = {"op": "aten::mm", "process": 1, "thread": 1, "start_ns": 0, "dur_ns": 20, "external_id": 1}
    trace = trace_of([{"kernel": "gemm", "start_ns": 50, "dur_ns": 30, "process": 1, "correlation_id": 7}],
                     calls=[call], ops=[op])  # fmt: skip
    (grid,) = parts(call_tree.SECTION.build(RunData(trace)), Grid)
    assert grid.section.frame.select("kind", "name", "self_ns", "total_ns").rows() == [
        ("op", "aten::mm", 0, 30),
        ("kernel", "gemm", 30, 30),
    ]


def test_without_device_work_it_says_what_is_lacking() -> None:
    block = call_tree.SECTION.build(RunData(trace_of()))
    assert block is not None
    assert "single launches" in block.lacking
    assert "single launches" in build(tree_of(("kernel", "k", 0))).lacking


def test_names_of_files_stand_in_data_only() -> None:
    evil = "<script>alert('k')</script>\x1b[31m" + "é" * 2_000
    (chart,) = parts(build(tree_of(("op", evil, 0, ("frame", evil, 3), ("kernel", evil, 100)))), Chart)
    assert "script" not in json.dumps([chart.layout, [trace.get("hovertemplate", "") for trace in chart.data]])
    assert "<script" not in figure_json(chart)


def test_a_large_tree_is_drawn_within_half_a_second_and_half_a_megabyte() -> None:
    table = large_tree(50_000)
    began = time.process_time()
    block = build(table)
    took_s = time.process_time() - began
    (chart,) = parts(block, Chart)
    assert took_s < 2  # 0.1 s on a quiet machine
    assert len(figure_json(chart)) < 500_000


@pytest.mark.skipif(find_chromium() is None, reason="needs chromium or google-chrome on PATH")
def test_a_click_goes_down_to_a_box_and_up_again_and_the_colours_follow_the_theme(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(render_page([build(tree_of(RUN, BEFORE))], title="run").html, "utf-8")
    seen = "[...document.querySelectorAll('.flame .box')].filter(box => !box.hidden)"
    texts = f"{seen}.map(box => box.textContent)"
    path_texts = "[...document.querySelectorAll('.flame-path button')].map(step => step.textContent)"
    with chromium(tmp_path / "profile") as tab:

        def click(text: str) -> None:
            box = f"{seen}.find(box => box.textContent === '{text}').getBoundingClientRect()"
            x, y = tab.run(f"(box => [box.left + box.width / 2, box.top + box.height / 2])({box})")
            tab.point(x, y)
            for kind in ("mousePressed", "mouseReleased"):
                tab.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

        features = [{"name": "prefers-color-scheme", "value": "light"}]
        tab.call("Emulation.setEmulatedMedia", media="", features=features)
        tab.open(path)
        assert "aten::linear" in tab.run(texts)
        assert tab.run("[...document.querySelectorAll('.flame-keys span')].map(key => key.textContent)") == [
            *("frame", "op", "kernel", "unknown")
        ]
        click("aten::linear")
        assert tab.run(path_texts) == ["all device work", "main.py(3): run", "aten::linear"]
        assert "aten::rms_norm" not in tab.run(texts)
        click("aten::linear")
        assert tab.run(path_texts)[-1] == "main.py(3): run"
        tab.run("document.querySelector('.flame-path button').click()")
        assert "aten::rms_norm" in tab.run(texts)
        color = f"getComputedStyle({seen}.find(box => box.textContent === 'aten::linear')).borderLeftColor"
        assert tab.run(color) == "rgb(155, 77, 202)"
        tab.run("document.getElementById('theme').click()")
        assert tab.run(color) == "rgb(199, 155, 255)"
        assert tab.problems == []


@pytest.mark.skipif(find_chromium() is None, reason="needs chromium or google-chrome on PATH")
def test_a_search_counts_nested_boxes_once_and_the_keyboard_walks_the_tree(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(render_page([build(tree_of(RUN, BEFORE))], title="run").html, "utf-8")
    with chromium(tmp_path / "profile") as tab:
        tab.open(path)
        tab.run("document.querySelector('.plot input[type=search]').focus()")
        tab.call("Input.insertText", text="aten::")
        count = "document.querySelector('.plot .tools output').textContent"
        assert tab.run(count) == "3 boxes, 900.000 μs, 90.0 % of all"  # linear with addmm inside, and rms_norm
        tab.press("Enter", 13, "\r")
        assert tab.run("document.querySelector('.box.here').textContent") == "aten::linear"
        tab.run("document.querySelector('.flame [tabindex=\"0\"]').focus()")
        where = "document.activeElement.textContent"
        tab.press("ArrowDown", 40)
        assert tab.run(where) == "aten::linear"
        tab.press("ArrowRight", 39)
        assert tab.run(where) == "aten::rms_norm"
        tab.press("Enter", 13, "\r")
        assert tab.run("document.querySelector('.flame-path [aria-current]').textContent") == "aten::rms_norm"
        assert tab.run("document.activeElement.ariaLabel").startswith("aten::rms_norm: op: 200.000 μs, 20.0 %")
        tab.press("Escape", 27)
        assert tab.run("document.querySelector('.flame-path [aria-current]').textContent") == "main.py(3): run"
        assert tab.problems == []
