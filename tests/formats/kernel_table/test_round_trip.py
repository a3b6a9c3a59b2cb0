"""Our own kernel tables read back: exactly from CSV and TSV, within what is printed from Markdown and the terminal."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples
from tests.reports.conftest import HOSTILE
from tests.traces import rows, trace_of

import inferometer
from inferometer.analyses.tables.kernels import KernelTable, kernel_table
from inferometer.errors import clean, show_hidden
from inferometer.reports.delimited import render_csv, render_tsv
from inferometer.reports.markdown import render_markdown
from inferometer.reports.screen.screen import Detail
from inferometer.reports.terminal import render_terminal

SAMPLE = Path(__file__).resolve().parents[3] / "samples" / "decode.json.gz"
NAMES = [
    *HOSTILE,
    "'=x",
    "''+y",
    "'plain",
    " blanks ",
    '"',
    '""',
    'a"b,c',
    "a\\|b",
    "a\\\\",
    "\r",
    "x\r\n\r\ny",
    "-",
    "`x`",
]
NAME = st.one_of(st.sampled_from(NAMES), st.text(st.characters(exclude_categories=["Cs"]), max_size=12))
LAUNCH = st.fixed_dictionaries({"kernel": NAME, "dur_ns": st.integers(0, 2**40)})
exact = pytest.mark.parametrize("render", [render_csv, render_tsv], ids=["csv", "tsv"])
STATISTICS = ("count", "total_ns", "mean_ns", "median_ns", "min_ns", "max_ns", "stddev_ns")


def read_back(text: str) -> KernelTable:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.txt"
        path.write_bytes(text.encode())
        return kernel_table(inferometer.open(path), raw=True)


def same(table: KernelTable, again: KernelTable) -> None:
    assert again.frame.drop("resolution_ns").sort(pl.all()).equals(table.frame.sort(pl.all()))
    assert again.frame["resolution_ns"].null_count() == again.frame.height
    assert (again.total_ns, again.kernels, len(again.losses)) == (table.total_ns, table.kernels, 0)


@exact
def test_the_sample_reads_back_exactly(render: Callable[[KernelTable], str]) -> None:
    table = kernel_table(inferometer.open(SAMPLE, {"launches"}), raw=True)
    same(table, read_back(render(table)))


@exact
@given(launches=st.lists(LAUNCH, min_size=1, max_size=12))
@examples(80)
def test_any_names_and_numbers_read_back_exactly(
    render: Callable[[KernelTable], str], launches: list[dict[str, Any]]
) -> None:
    again = read_back(render(kernel_table(trace_of(launches), raw=True)))
    shown = [launch | {"kernel": show_hidden(launch["kernel"])} for launch in launches]
    table = kernel_table(trace_of(shown), raw=True)
    assert (
        again.frame.select(*STATISTICS, "kernel")
        .sort(pl.all())
        .equals(table.frame.select(*STATISTICS, "kernel").sort(pl.all()))
    )
    assert again.losses.dropped() == 0


def printed(name: str) -> str:
    return clean(name).strip()


@given(launches=st.lists(LAUNCH, min_size=1, max_size=12))
@examples(80)
def test_markdown_reads_back_within_what_it_prints(launches: list[dict[str, Any]]) -> None:
    table = kernel_table(trace_of(launches), raw=True)
    again = read_back(render_markdown(table)).frame
    assert sorted(again["kernel"]) == sorted(map(printed, table.frame["kernel"]))
    assert sorted(again["count"]) == sorted(table.frame["count"])
    for ours, theirs in zip(
        table.frame.sort("total_ns").iter_rows(named=True), again.sort("total_ns").iter_rows(named=True), strict=True
    ):
        assert abs(ours["total_ns"] - theirs["total_ns"]) <= (theirs["resolution_ns"] or 0)


@pytest.mark.parametrize(
    "render", [render_markdown, lambda table: render_terminal(table, is_terminal=False, detail=Detail(full=True))]
)
def test_the_sample_reads_back_from_what_people_read(render: Callable[[KernelTable], str]) -> None:
    table = kernel_table(inferometer.open(SAMPLE, {"launches"}))
    again = read_back(render(table))
    assert again.frame["kernel"].to_list() == table.frame["kernel"].to_list()
    assert again.frame["count"].to_list() == table.frame["count"].to_list()
    assert all(abs(a - b) <= 500 for a, b in zip(again.frame["total_ns"], table.frame["total_ns"], strict=True))


def test_a_table_with_copies_keeps_its_kernels(tmp_path: Path) -> None:
    launches = [{"kernel": "a", "dur_ns": 3}, {"kernel": "Memcpy", "kind": "memcpy", "dur_ns": 9}]
    path = tmp_path / "table.csv"
    path.write_text(render_csv(kernel_table(trace_of(launches), copies=True)))
    trace = inferometer.open(path)
    assert rows(trace, "totals", "kernel", "total_ns") == [("a", 3)]
    assert trace.losses.total("row_of_something_else") == 1
