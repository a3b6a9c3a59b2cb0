"""Sections of two runs as one: what stands next to what, what is a switch, and what is reported of one run alone."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.reports.page.browser import Tab, find_chromium

import inferometer
from inferometer.reports.page.beside import beside, set_beside
from inferometer.reports.page.blocks import Beside, Block, Chart, Grid, Part, Point, Points, Tabs, Words
from inferometer.reports.page.document import render_page
from inferometer.reports.page.look import PageData
from inferometer.reports.page.sections import time_budget
from inferometer.reports.page.text import render_text
from inferometer.reports.views.layout import Field, Section

needs_chromium = pytest.mark.skipif(find_chromium() is None, reason="needs chromium or google-chrome on PATH")
SAMPLES = Path(__file__).parents[3] / "samples"


def chart(title: str, kind: str = "scatter", top: float = 1) -> Chart:
    data: dict[str, Any] = {"type": kind, "x": [0, 1], "y": [0, top]}
    return Chart(title, f"{title} reaches {top}.", [data], {"xaxis": {}, "yaxis": {}})


def grid(total_ns: int) -> Grid:
    return Grid(Section("Table", (Field("total_ns", "Total", "ns"),), pl.DataFrame({"total_ns": [total_ns]})))


def of(*parts: Part, lacking: str = "") -> Block:
    return Block("steps", "Steps", parts, lacking)


def test_charts_of_one_title_stand_in_a_row_and_tables_are_a_switch() -> None:
    base: list[Part] = [chart("a"), grid(1), grid(2), chart("b")]
    candidate: list[Part] = [chart("a", top=3), grid(3), grid(4), chart("b")]
    row, tables, last = beside(base, candidate)
    assert isinstance(row, Beside)
    assert row.rows == [(base[0], candidate[0])]
    assert isinstance(tables, Tabs)
    assert [(tab.title, tab.parts) for tab in tables.tabs] == [("Base", base[1:3]), ("Candidate", candidate[1:3])]
    assert isinstance(last, Beside)
    assert (tables.label, last.heads) == ("Run", ("Base", "Candidate"))


def test_a_chart_that_needs_the_width_is_seen_one_run_at_a_time() -> None:
    for kind in ("icicle", "heatmap"):
        (part,) = beside([chart("a", kind)], [chart("a", kind)])
        assert isinstance(part, Tabs)


def test_a_part_of_one_run_has_nothing_next_to_it() -> None:
    extra = chart("extra")
    (row,) = beside([chart("a"), extra], [chart("a")])
    assert isinstance(row, Beside)
    assert row.rows[1] == (extra, None)
    (tables,) = beside([grid(1)], [])
    assert isinstance(tables, Tabs)
    assert tables.tabs[1].parts == [Words("Nothing to show of this run.", "note")]


def test_what_both_say_stands_there_once() -> None:
    note = Words("Times are sums.", "note")
    left, right = Points([Point("slow"), Point("same")]), Points([Point("fast"), Point("same")])
    once, own, both = beside([note, left], [note, right])
    assert once == note
    assert isinstance(own, Beside)
    assert own.rows == [(Points([Point("slow")]), Points([Point("fast")]))]
    assert both == Points([Point("same")], "Both runs")


def test_what_one_run_lacks_is_reported_above_what_the_other_has() -> None:
    found = set_beside(of(chart("a")), of(lacking="It would need steps."))
    assert found is not None
    first = found.parts[0]
    assert first == Words("Of the base alone. The candidate lacks it: It would need steps.", "note")
    alone = set_beside(None, of(chart("a")))
    assert alone is not None
    assert alone.parts[0] == Words("Of the candidate alone.", "note")


def test_what_both_lack_is_lacking_once_with_both_reasons() -> None:
    assert set_beside(of(lacking="No steps."), of(lacking="No steps.")) == of(lacking="No steps.")
    assert set_beside(of(lacking="No steps."), of(lacking="No times.")) == of(
        lacking="Base: No steps. Candidate: No times."
    )
    assert set_beside(None, None) is None


def test_markdown_has_the_one_run_after_the_other() -> None:
    found = set_beside(of(chart("a"), grid(1)), of(chart("a", top=3), grid(2)))
    assert found is not None
    lines = [line for line in render_text([found], title="t").splitlines() if line.startswith(("#", "**"))]
    assert lines == [
        *("# t", "## Steps", "### Base", "**a**: a reaches 1.", "### Candidate", "**a**: a reaches 3."),
        *("### Base", "#### Table", "### Candidate", "#### Table"),
    ]


@pytest.mark.parametrize("pair", [("decode.json.gz", "decode_fixed.json.gz"), ("nsys.sqlite.gz", "decode.json.gz")])
def test_the_budgets_of_both_runs_add_up_to_their_windows_and_shares_to_all(pair: tuple[str, str]) -> None:
    base, candidate = (inferometer.open(SAMPLES / name) for name in pair)
    look = PageData(base, candidate)
    block = time_budget.SECTION.build(look)
    assert block is not None
    (tabs,) = block.parts
    assert isinstance(tabs, Tabs)
    assert [tab.title for tab in tabs.tabs] == ["Both", "Base", "Candidate"]
    both, *each = (part.section.frame for tab in tabs.tabs for part in tab.parts if isinstance(part, Grid))
    for side, run, own in zip(("base", "candidate"), look.runs, each, strict=True):
        launches = run.trace.launches.select("start_ns", "dur_ns").collect()
        window_ns = (launches["start_ns"] + launches["dur_ns"]).max() - launches["start_ns"].min()  # type: ignore[operator]
        assert both[f"{side}_ns"].sum() == own["time_ns"].sum() == window_ns
        assert both[f"{side}_share"].sum() == pytest.approx(1)
    points = (both["candidate_share"] - both["base_share"]) * 100
    assert both["points"].to_list() == pytest.approx(points.to_list(), abs=0.051)
    assert both["points"].abs().is_sorted(descending=True)


@pytest.fixture
def opened(tab: Tab, tmp_path: Path) -> Callable[..., Tab]:
    """A page of one section of both runs."""

    def open_page(**window: Any) -> Tab:
        found = set_beside(of(chart("a"), grid(1_000)), of(chart("a", top=3), grid(2_000)))
        assert found is not None
        path = tmp_path / "page.html"
        path.write_text(render_page([found], title="two").html, "utf-8")
        tab.open(path, **window)
        return tab

    return open_page


LEFTS = "[...document.querySelectorAll('.cell')].map(cell => Math.round(cell.getBoundingClientRect().left))"
SEEN = (
    "[...document.querySelectorAll('.panel td, .panel tbody th')].filter(cell => cell.checkVisibility())"
    ".map(cell => cell.textContent)"
)


@needs_chromium
def test_on_a_wide_screen_both_stand_side_by_side_and_on_a_phone_below_each_other(opened: Callable[..., Tab]) -> None:
    wide = opened(width=1400).run(LEFTS)
    assert wide[0] < wide[1]
    tab = opened(width=390, mobile=True)
    phone = tab.run(LEFTS)
    assert phone[0] == phone[1]
    assert tab.run("[...document.querySelectorAll('.side')].map(s => [s.textContent, s.checkVisibility()])") == [
        ["Base", True],
        ["Candidate", True],
    ]
    assert tab.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


@needs_chromium
def test_a_keyboard_switches_the_run_and_paper_has_both(opened: Callable[..., Tab]) -> None:
    tab = opened()
    assert tab.run("document.querySelector('[role=tablist]').ariaLabel") == "Run"
    assert tab.run(SEEN) == ["1.000 μs"]
    tab.run("document.querySelector('[role=tab]').focus()")
    tab.press("ArrowRight", 39)
    assert tab.run(SEEN) == ["2.000 μs"]
    assert tab.run("document.activeElement.textContent") == "Candidate"
    tab.call("Emulation.setEmulatedMedia", media="print")
    tab.run("dispatchEvent(new Event('beforeprint')), 0")
    assert tab.run(SEEN) == ["1.000 μs", "2.000 μs"]
    tab.call("Emulation.setEmulatedMedia", media="")
    tab.run("dispatchEvent(new Event('afterprint')), 0")
    assert tab.run(SEEN) == ["2.000 μs"]
    assert tab.problems == []
