"""Markdown: right as text, and harmless whatever a file says."""

import re
from collections.abc import Callable

import polars as pl
import pytest

from inferometer.analyses.tables.kernels import KernelTable
from inferometer.analyses.tables.summary import Summary
from inferometer.reports.markdown import escape_markdown, markdown_table, render_markdown
from inferometer.reports.views.layout import Field, Section


def test_a_kernel_table(table: KernelTable, golden: Callable[[str, str], None]) -> None:
    golden("kernels.md", render_markdown(table))


def test_a_summary(summary: Summary, golden: Callable[[str, str], None]) -> None:
    golden("summary.md", render_markdown(summary))


def test_every_row_is_one_line_of_as_many_cells(hostile: Summary) -> None:
    text = render_markdown(hostile)
    tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert len(tables) == 2
    for table in tables:
        lines = table.splitlines()
        cells = [len(re.findall(r"(?<!\\)\|", line)) for line in lines]
        assert len(set(cells)) == 1
        assert len(lines) >= 2 + 15


def test_nothing_from_the_file_is_markup(hostile: Summary) -> None:
    text = render_markdown(hostile)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\u2066]", text)
    for row in re.findall(r"^\| (.*) \|$", text.replace("&#8203;", ""), re.MULTILINE):
        assert not re.search(r"(?<!\\)(?:\\\\)*[<>\[\]`*_~&{}]", row)
    assert r"\<script\>alert(1)\</script\>" in text


def test_a_mangled_kernel_is_demangled_unless_names_are_asked_for_as_they_are() -> None:
    fields = [Field("what", "Op or kernel", "kernel", kernel_where="is_kernel")]
    rows = {"what": ["_Z4gemmPf", "_Z4gemmPf", None], "is_kernel": [True, False, True]}
    section = Section("Rows", fields, pl.DataFrame(rows))
    shown = [line.strip("| ") for line in markdown_table(section).splitlines()[4:]]
    assert shown == ["gemm(float\\*)", r"\_Z4gemmPf", "-"]
    assert r"\_Z4gemmPf" in markdown_table(section, raw=True).splitlines()[4]


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("at::{lambda(int)#1}", r"at::\{lambda(int)\#&#8203;1\}"),
        ("@everyone, user@host", "@&#8203;everyone, user@&#8203;host"),
        ("!12 GH-3 gl-4", "!&#8203;12 GH-&#8203;3 gl-&#8203;4"),
        ("https://x.example www.x.example", "https:&#8203;//x.example www&#8203;.x.example"),
        ("/close", "&#8203;/close"),
        ("a/b 97.3 % #, 5 & 6", r"a/b 97.3 % \#, 5 \& 6"),
        ("x\u200b#1", r"x\\u200b\#&#8203;1"),
    ],
)
def test_nothing_is_a_reference_a_mention_a_link_or_a_command(text: str, escaped: str) -> None:
    assert escape_markdown(text) == escaped
