"""CSV and TSV: exact numbers, names that read back, no formulas."""

import csv
import io
from collections.abc import Callable

import pytest
from tests.reports.conftest import HOSTILE
from tests.traces import trace_of

from inferometer.analyses.result import Result
from inferometer.analyses.tables.kernels import KernelTable, kernel_table
from inferometer.analyses.tables.summary import Summary
from inferometer.errors import show_hidden
from inferometer.reports.delimited import render_csv, render_tsv
from inferometer.spreadsheets import unguard

both = pytest.mark.parametrize(("render", "delimiter"), [(render_csv, ","), (render_tsv, "\t")], ids=["csv", "tsv"])


def read(text: str, delimiter: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter))


@both
def test_numbers_are_exact(render: Callable[[Result], str], delimiter: str, table: KernelTable) -> None:
    first, second = read(render(table), delimiter)
    assert first == {
        "Time (%)": str(168724 / 169684 * 100),
        "Total Time (ns)": "168724",
        "Instances": "2",
        "Avg (ns)": "84362.0",
        "Med (ns)": "84362.0",
        "Min (ns)": "84000",
        "Max (ns)": "84724",
        "StdDev (ns)": str(table.frame["stddev_ns"][0]),
        "Name": "void gemm<128, 64>(float*)",
    }
    assert (second["Total Time (ns)"], second["StdDev (ns)"]) == ("960", "0.0")


def test_a_table_as_it_is_written(table: KernelTable, golden: Callable[[str, str], None]) -> None:
    golden("kernels.csv", render_csv(table))
    golden("kernels.tsv", render_tsv(table))


@both
def test_every_name_reads_back_and_no_cell_is_a_formula(
    render: Callable[[Result], str], delimiter: str, hostile: Summary
) -> None:
    names = {row["Name"] for row in read(render(hostile.kernels), delimiter)}
    shown = {show_hidden(name) for name in HOSTILE}
    assert names == {f"'{name}" if name.startswith(("=", "+", "-", "@")) else name for name in shown}


@both
def test_taking_away_the_quote_of_a_formula_gives_the_name_back(
    render: Callable[[Result], str], delimiter: str
) -> None:
    names = ["=a", "'=a", "''=a", "'a", "\tb", " =a", "\uff1da", "\ufeff=a", "-1"]
    table = kernel_table(trace_of([{"kernel": name} for name in names]))
    found = [row["Name"] for row in read(render(table), delimiter)]
    assert sorted(found) == sorted(["'=a", "''=a", "'''=a", "'a", "'\tb", "' =a", "'\uff1da", r"\ufeff=a", "'-1"])
    assert sorted(map(unguard, found)) == sorted(map(show_hidden, names))


@both
def test_a_line_ending_in_a_name_begins_no_row(render: Callable[[Result], str], delimiter: str) -> None:
    table = kernel_table(trace_of([{"kernel": f"a{end}=evil()"} for end in ("\r", "\n", "\r\n")]))
    assert {row["Name"] for row in read(render(table), delimiter)} == {"a\r=evil()", "a\n=evil()", "a\r\n=evil()"}


@both
def test_what_is_not_there_is_an_empty_cell(render: Callable[[Result], str], delimiter: str, hostile: Summary) -> None:
    assert read(render(hostile), delimiter)[0]["Name"] in ("", "a | b")
