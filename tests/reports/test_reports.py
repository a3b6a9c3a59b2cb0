"""Renderings: exact or pretty as each promises, and harmless whatever a file's names hold."""

import csv
import io

import pytest
from tests.traces import trace_of

import inferometer
from inferometer.analyses.kernels import kernel_table
from inferometer.analyses.result import Field
from inferometer.analyses.summary import summarize
from inferometer.reports.base import cell, loss_lines
from inferometer.reports.delimited import render_csv, render_tsv
from inferometer.reports.html import render_html
from inferometer.reports.markdown import render_markdown
from inferometer.reports.terminal import render_terminal
from inferometer.trace.losses import Losses
from inferometer.trace.trace import Trace

HOSTILE = [
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
    return trace_of([{"kernel": name, "start_ns": 10 * i, "dur_ns": 9} for i, name in enumerate(HOSTILE)])


def test_html_escapes_names(trace: Trace) -> None:
    text = render_html(kernel_table(trace))
    assert "<script>" not in text
    assert "&lt;script&gt;" in text


def test_a_result_shows_itself_in_a_notebook(trace: Trace) -> None:
    table = kernel_table(trace)
    assert table._repr_html_() == inferometer.render_html(table)


def test_html_says_how_many_rows_it_leaves_out() -> None:
    trace = trace_of([{"kernel": f"k{i}", "start_ns": i} for i in range(203)])
    assert "3 more rows" in render_html(kernel_table(trace))


def test_markdown_keeps_a_row_a_line(trace: Trace) -> None:
    text = render_markdown(kernel_table(trace))
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(rows) == 1 + len(HOSTILE)
    assert all(row.replace("\\|", "").count("|") == 10 for row in rows)
    assert "\\<script\\>" in text
    assert "\x1b" not in text


@pytest.mark.parametrize(("render", "delimiter"), [(render_csv, ","), (render_tsv, "\t")])
def test_delimited_text_reads_back(render: object, delimiter: str, trace: Trace) -> None:
    text = render(kernel_table(trace, sort="name"))  # type: ignore[operator]
    rows = list(csv.reader(io.StringIO(text), delimiter=delimiter))
    names = {row[-1] for row in rows[1:]}
    assert names == (set(HOSTILE) - {HOSTILE[4]}) | {"'" + HOSTILE[4]}
    assert {row[1] for row in rows[1:]} == {"9"}


def test_the_terminal_gets_no_control_or_direction_characters(trace: Trace) -> None:
    assert not set(render_terminal(kernel_table(trace), is_terminal=False)) & {"\x1b", "\t", "\u202e"}


@pytest.mark.parametrize("width", [20, 60, 80, 110, 200])
def test_a_narrow_terminal_leaves_columns_out_and_says_so(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("NO_COLOR", "1")
    trace = trace_of([{"kernel": "a_rather_long_kernel_name" * 9, "dur_ns": 123_456_789}])
    text = render_terminal(kernel_table(trace), is_terminal=True)
    assert "100.0 %" in text
    assert "123.457 ms" in text
    assert ("Too narrow for:" in text) == (width < 130)
    if width >= 60:
        assert max(len(line) for line in text.splitlines() if "a_rather" in line) <= width


def test_losses_by_design_are_not_shown_and_the_others_are() -> None:
    losses = Losses()
    losses.count("flow_event", 5, category="ac2g")
    losses.count("truncated", example="at byte 7")
    losses.count("not_finite", 2, category="kernel")
    assert loss_lines(losses) == [
        "error: 1 truncated: The file ends in the middle; everything before that was read. (at byte 7)",
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
    assert table.to_polars()["total_ns"].to_list() == [9] * len(HOSTILE)
    pytest.importorskip("pandas", reason="the notebook extra is not installed")
    assert table.to_pandas()["kernel"].to_list() == table.to_polars()["kernel"].to_list()


def test_every_rendering_takes_an_empty_result() -> None:
    result = summarize(trace_of())
    for render in (render_csv, render_tsv, render_markdown, render_html):
        assert render(result)
    assert "No kernels" in render_terminal(result, is_terminal=False)
