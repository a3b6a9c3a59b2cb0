"""What all renderings share: cells, losses, empty results, notebooks."""

import pytest
from tests.traces import trace_of

import inferometer
from inferometer.analyses.tables.kernels import kernel_table
from inferometer.analyses.tables.summary import summarize
from inferometer.reports.base import cell, loss_lines
from inferometer.reports.delimited import render_csv, render_tsv
from inferometer.reports.html import render_html
from inferometer.reports.markdown import render_markdown
from inferometer.reports.terminal import render_terminal
from inferometer.reports.views.layout import Field
from inferometer.trace.losses import Losses
from inferometer.trace.trace import Trace

NAMES = [
    "<script>alert(1)</script>",
    "a | b",
    "\x1b[31mred\x1b[0m",
    "line\nbreak\ttab",
    '=HYPERLINK("x")',
    "**bold** `code`",
    "\u202egnp.exe",
    "naïve, 核",
]


@pytest.fixture
def trace() -> Trace:
    return trace_of([{"kernel": name, "start_ns": 10 * i, "dur_ns": 9} for i, name in enumerate(NAMES)])


def test_a_result_shows_itself_in_a_notebook(trace: Trace) -> None:
    table = kernel_table(trace)
    assert table._repr_html_() == inferometer.render_html(table)


def test_losses_by_design_are_not_shown_and_the_others_are() -> None:
    losses = Losses()
    losses.count("flow_event", 5, category="ac2g")
    losses.count("truncated", example="at byte 7")
    losses.count("not_finite", 2, category="kernel")
    assert loss_lines(losses) == [
        "warning: 1 truncated: The file ends in the middle; everything before that was read. (at byte 7)",
        "info: 2 not_finite [kernel]: NaN or infinity, which JSON does not have; read as null.",
    ]


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("ns", 84_724, "84.724 μs"),
        ("share", 0.57, "57.0 %"),
        ("count", 12_345, "12,345"),
        ("bytes", None, "-"),
        ("text", "x", "x"),
    ],
)
def test_cells_are_written_in_their_unit(kind: str, value: object, text: str) -> None:
    assert cell(Field("c", "C", kind), value) == text  # type: ignore[arg-type]


def test_results_convert_to_polars_and_pandas(trace: Trace) -> None:
    table = kernel_table(trace, sort="name")
    assert table.to_polars()["total_ns"].to_list() == [9] * len(NAMES)
    pytest.importorskip("pandas", reason="the notebook extra is not installed")
    assert table.to_pandas()["kernel"].to_list() == table.to_polars()["kernel"].to_list()


def test_every_rendering_takes_an_empty_result() -> None:
    result = summarize(trace_of())
    for render in (render_csv, render_tsv, render_markdown, render_html):
        assert render(result)
    assert "No kernels" in render_terminal(result, is_terminal=False)
