"""Two call trees on the page: widths are the candidate's, changes are numbers, gone paths are listed."""

from pathlib import Path
from typing import Any

import pytest
from tests.analyses.compare.run_traces import LAYER, kernel_run
from tests.reports.page.comparisons import look, parts, words
from tests.traces import trace_of

import inferometer
from inferometer import Trace
from inferometer.reports.page.blocks import Block, Chart, Grid, Tabs
from inferometer.reports.page.look import PageData
from inferometer.reports.page.sections import compared_call_tree
from inferometer.units import format_duration

RECORDED = Path(__file__).resolve().parents[3] / "samples" / "recorded"
TITLE = "The {}'s time by caller, and its change"
RUN = kernel_run()


def built(base: Trace, candidate: Trace) -> Block:
    block = compared_call_tree.build(look(base, candidate)[0])
    assert block is not None
    return block


def icicle(block: Block, side: str = "candidate") -> Chart:
    (tabs,) = parts(block, Tabs)
    charts = [part for tab in tabs.tabs for part in tab.parts if isinstance(part, Chart)]
    assert [tab.title for tab in tabs.tabs] == ["Candidate", "Base"]
    return next(one for one in charts if one.title == TITLE.format(side))


def boxes(block: Block, side: str = "candidate") -> dict[str, dict[str, Any]]:
    """Label, value, text and colour of each box by its identity."""
    (data,) = [trace for trace in icicle(block, side).data if trace["type"] == "icicle"]
    columns = zip(data["labels"], data["values"], data["text"], data["parents"], data["marker"]["colors"], strict=True)
    return {
        box: dict(zip(("label", "value", "text", "parent", "color"), each, strict=True))
        for box, each in zip(data["ids"], columns, strict=True)
    }


@pytest.mark.parametrize("fault", ["disk", "cpu_contention"])
@pytest.mark.parametrize("side", ["base", "candidate"])
def test_boxes_add_up_to_the_runs_time_in_a_step(fault: str, side: str) -> None:
    base, candidate = (inferometer.open(RECORDED / fault / f"{run}.ifm") for run in ("normal", "fault"))
    page = PageData(base, candidate)
    block = compared_call_tree.build(page)
    assert block is not None
    tree = page.compared_trees
    assert tree is not None
    drawn = boxes(block, side)
    assert drawn["all"]["value"] == (tree.base_ns if side == "base" else tree.candidate_ns)
    for name, box in drawn.items():
        below = sum(each["value"] for each in drawn.values() if each["parent"] == name)
        assert below in (0, box["value"])
    times = dict(tree.frame.select("node", "delta_ns").cast({"node": str}).iter_rows())
    for name, box in drawn.items():
        if name in times:
            change = format_duration(times[name])
            assert box["label"].endswith(f" +{change}" if times[name] > 0 else f" {change}"), "not by colour alone"


def test_a_change_has_its_colour_and_its_numbers() -> None:
    slow = kernel_run([(name, dur * 2 if name == "flash_kernel" else dur) for name, dur in LAYER], seed=1)
    block = built(RUN, slow)
    (flash,) = [box for box in boxes(block).values() if box["label"].startswith("flash")]
    assert flash["color"] == "var(--slower-3)"
    before, after = (kernel_ns(run, "flash_kernel") / 10 for run in (RUN, slow))
    times = f"kernel: {format_duration(round(before))} -> {format_duration(round(after))}, +"
    assert flash["text"].startswith(times)
    assert f", {after / before:.3f} times; 4 -> 4 launches" in flash["text"]
    (back,) = [box for box in boxes(built(slow, RUN)).values() if box["label"].startswith("flash")]
    assert back["color"] == "var(--faster-3)"


def kernel_ns(run: Trace, kernel: str) -> int:
    rows = run.launches.select("kernel", "dur_ns").collect().iter_rows()
    return sum(dur_ns for name, dur_ns in rows if name == kernel)


def test_what_is_gone_is_listed_with_its_path() -> None:
    block = built(RUN, kernel_run(LAYER[:-1], seed=1))
    (gone,) = [part for part in parts(block, Grid) if part.section.title.startswith("Gone")]
    assert gone.section.frame.select("called", "path").rows() == [("mul kernel (triton)", "ProfilerStep#N")]
    assert all("mul" not in box["label"] for box in boxes(block).values())
    (mul,) = [box for box in boxes(block, "base").values() if box["label"].startswith("mul")]
    gone_ns = round(kernel_ns(RUN, "mul_kernel") / 10)
    assert mul["value"] == gone.section.frame["base_ns"].item() == gone_ns
    assert mul["label"].endswith(f" gone {format_duration(-gone_ns)}")
    alone = f"Only in one run: nothing in the candidate, 1 path ({format_duration(gone_ns)}) in the base."
    assert words(block, "plain")[1] == alone


def test_what_is_new_is_listed_with_its_path_and_its_time() -> None:
    block = built(kernel_run(LAYER[:-1]), RUN)
    (new,) = [part for part in parts(block, Grid) if part.section.title.startswith("New")]
    assert new.section.frame.select("called", "path").rows() == [("mul kernel (triton)", "ProfilerStep#N")]
    assert new.section.frame["candidate_ns"].item() == round(kernel_ns(RUN, "mul_kernel") / 10)
    assert all("mul" not in box["label"] for box in boxes(block, "base").values())


def test_a_run_against_itself_has_one_colour_and_nothing_gone() -> None:
    block = built(RUN, RUN)
    assert {box["color"] for box in boxes(block).values()} == {"var(--line)"}
    assert [part.section.title for part in parts(block, Grid)] == ["Both call trees"]
    assert icicle(block).alt.startswith("No node differs.")
    assert words(block, "plain")[1] == "Only in one run: nothing in the candidate, nothing in the base."


def test_the_words_say_what_times_are_of() -> None:
    plain, _ = words(built(RUN, kernel_run(seed=1, steps=7)), "plain")
    assert plain.endswith("(10 and 7 steps)")


def test_without_launches_or_a_second_run_there_is_no_chart() -> None:
    assert compared_call_tree.build(PageData(RUN)) is None
    sums = [{"kernel": "gemm", "count": 10, "total_ns": 1_000_000, "section": 0}]
    assert built(trace_of(totals=sums), trace_of(totals=sums)).lacking
