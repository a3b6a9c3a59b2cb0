"""The device-time budget on the page: one table per run, whose rows add up to the window."""

from tests.traces import trace_of

from inferometer.reports.page.blocks import Block, Grid, Tabs, Words
from inferometer.reports.page.look import PageData
from inferometer.reports.page.sections import time_budget

ROWS = [{"kernel": "gemm", "start_ns": 0, "dur_ns": 60}, {"kernel": "gemm", "start_ns": 80, "dur_ns": 20}]


def built(look: PageData) -> Block:
    block = time_budget.SECTION.build(look)
    assert isinstance(block, Block)
    return block


def test_one_run_has_one_table_that_adds_up() -> None:
    (grid,) = built(PageData(trace_of(ROWS))).parts
    assert isinstance(grid, Grid)
    assert grid.section.frame.select("part", "time_ns", "share").rows() == [
        ("gemm kernels", 80, 0.8),
        ("idle: no host call recorded", 20, 0.2),
    ]


def test_two_runs_have_one_together_and_one_each() -> None:
    (tabs,) = built(PageData(trace_of(ROWS), trace_of(ROWS[:1]))).parts
    assert isinstance(tabs, Tabs)
    both, base, candidate = (part.section.frame for tab in tabs.tabs for part in tab.parts if isinstance(part, Grid))
    assert both.select("part", "base_ns", "candidate_ns", "points").rows() == [
        ("gemm kernels", 80, 60, 20.0),
        ("idle: no host call recorded", 20, 0, -20.0),
    ]
    assert (base.height, candidate.height) == (2, 1)


def test_of_two_runs_the_one_with_launches_is_named() -> None:
    for pair, side in (((ROWS, []), "base"), (([], ROWS), "candidate")):
        base, candidate = map(trace_of, pair)
        words, grid = built(PageData(base, candidate)).parts
        assert isinstance(words, Words)
        assert words.text == f"Of the {side} alone: the other run holds no launches."
        assert isinstance(grid, Grid)


def test_without_launches_it_says_what_is_lacking() -> None:
    block = built(PageData(trace_of()))
    assert not block.parts
    assert "single launches" in (block.lacking or "")
