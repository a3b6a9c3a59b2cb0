"""The terminal: whole numbers at any width, color only there, and nothing that a file could do to it."""

import re
from collections.abc import Callable

import polars as pl
import pytest

from inferometer.analyses.tables.kernels import KernelTable
from inferometer.analyses.tables.summary import Summary
from inferometer.reports.screen.screen import Detail, Page
from inferometer.reports.screen.table import print_table
from inferometer.reports.terminal import render_terminal
from inferometer.reports.views.layout import Field, Section

STYLE = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(autouse=True)
def _plain_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLORTERM", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "JUPYTER_COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")


def test_a_summary_in_a_pipe(summary: Summary, golden: Callable[[str, str], None]) -> None:
    golden("summary.txt", render_terminal(summary, is_terminal=False))


def test_a_kernel_table_in_a_pipe(table: KernelTable, golden: Callable[[str, str], None]) -> None:
    golden("kernels.txt", render_terminal(table, is_terminal=False))


def test_a_pipe_gets_no_color_and_a_terminal_some(summary: Summary, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b" not in render_terminal(summary, is_terminal=False)
    assert STYLE.search(render_terminal(summary, is_terminal=True))
    monkeypatch.setenv("NO_COLOR", "1")
    text = render_terminal(summary, is_terminal=True)
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", text)


@pytest.mark.parametrize("width", [40, 60, 80, 100, 132, 200])
def test_numbers_are_never_cut_at_any_width(width: int, table: KernelTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    text = STYLE.sub("", render_terminal(table, is_terminal=True))
    assert "168.724 μs" in text
    assert "99.4 %" in text
    row = next(line for line in text.splitlines() if "168.724" in line)
    assert row.startswith("gemm ")
    titles = {"Time", "Total Time", "Instances", "Avg", "Med", "Min", "Max", "StdDev", "Name"}
    if said := re.search(r"Too narrow for: (.*)\.", text):
        assert set(said[1].split(", ")) <= titles
        assert width < 132


def test_nothing_from_a_file_drives_the_terminal(hostile: Summary) -> None:
    for is_terminal in (False, True):
        text = STYLE.sub("", render_terminal(hostile, is_terminal=is_terminal))
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
    plain = render_terminal(hostile, is_terminal=False)
    assert "[bold red]markup[/]" in plain
    assert "<script>alert(1)</script>" in plain


def test_every_launch_of_a_hostile_file_is_one_line(hostile: Summary) -> None:
    lines = render_terminal(hostile.kernels, is_terminal=False).splitlines()
    assert sum("100 ns" in line for line in lines) == 15


def test_the_severity_of_a_finding_has_its_color_in_every_table() -> None:
    frame = pl.DataFrame({"severity": ["high", "medium", "low"], "title": ["word " * 30] * 3})
    fields = (Field("severity", "Severity", "severity"), Field("title", "Finding", "sentence"))
    page = Page(Detail(), is_terminal=True)
    print_table(Section("What to look at first", fields, frame), page)
    text = page.text()
    assert [text.count(code) for code in ("\x1b[1;31mhigh", "\x1b[33mmedium", "\x1b[36mlow")] == [1, 1, 1]
    assert STYLE.sub("", text).split().count("word") == 90
