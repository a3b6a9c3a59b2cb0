"""Numbers in any locale: a literal row for each way to write one, and files that don't tell which is meant."""

import csv
import io
from decimal import Decimal
from pathlib import Path

import pytest
from tests.formats.ncu.test_reader import HEAD, ROW, SAMPLES, opened
from tests.ncu_files import RAW, in_locale
from tests.traces import counted, rows

import inferometer
from inferometer.errors import FormatError
from inferometer.formats.ncu.numerals import Mark, is_ambiguous, read_number

UNITS = "," * 11


@pytest.mark.parametrize(
    ("text", "mark", "number"),
    [
        ("1,234.5", ".", "1234.5"),
        ("1.234,5", ",", "1234.5"),
        ("1 234,5", ",", "1234.5"),
        ("1\u202f234\u202f567", ",", "1234567"),
        ("1'234.5", ".", "1234.5"),
        ("1\u2019234.5", ".", "1234.5"),
        ("0,123", ",", "0.123"),
        ("0,123", ".", None),
        ("1.234.567", ".", None),
        ("1.234.567", ",", "1234567"),
        ("1,5e+06", ",", "1.5e6"),
        ("-0.000604", ".", "-0.000604"),
        ("1 23", ",", None),
        ("1,2,3", ",", None),
    ],
)
def test_a_number_in_a_locale(text: str, mark: Mark, number: str | None) -> None:
    assert read_number(text, mark) == (None if number is None else Decimal(number))


@pytest.mark.parametrize(("text", "expected"), [("1,056", True), ("1.056", True), ("41.95", False), ("0,123", False),
                                                ("1056", False), ("nan", False), ("policy", False)])  # fmt: skip
def test_what_may_be_either(text: str, expected: bool) -> None:
    assert is_ambiguous(text) == expected


@pytest.mark.parametrize(("point", "thousands"), [(",", "."), (",", "\u202f")])
def test_the_real_page_is_the_same_in_every_locale(tmp_path: Path, point: str, thousands: str) -> None:
    path = tmp_path / "ncu.csv"
    path.write_text(in_locale(RAW, point, thousands))
    trace, plain = inferometer.open(path), inferometer.open(RAW)
    for table in ("kernel_counters", "totals"):
        assert trace.tables[table].collect().equals(plain.tables[table].collect()), table
    assert counted(trace) == counted(plain)


@pytest.mark.parametrize(
    ("more", "value"),
    [
        ("41.95", 1056.0),
        ("1.234.567", 1.056),
        ("1,234,567", 1056.0),
        ("0,5", 1.056),
    ],
)
def test_one_number_that_tells_is_enough(tmp_path: Path, more: str, value: float) -> None:
    trace = opened(tmp_path, f'{HEAD},"a","b"\n{UNITS},\n{ROW.format(0, "k")},"1,056","{more}"\n')
    assert rows(trace, "kernel_counters", "metric", "value")[0] == ("a", value)


@pytest.mark.parametrize(("name", "text", "value"), [("launch__grid_size", "1,056", 1056.0),
                                                     ("launch__grid_size", "1.056", 1056.0)])  # fmt: skip
def test_a_grid_tells_how_its_size_is_printed(tmp_path: Path, name: str, text: str, value: float) -> None:
    row = ROW.format(0, "k").replace("(66, 1, 1)", "(1056, 1, 1)")
    trace = opened(tmp_path, f'{HEAD},"{name}"\n{UNITS}\n{row},"{text}"\n')
    assert rows(trace, "kernel_counters", "value") == [value]


def test_a_later_launch_tells_of_the_first(tmp_path: Path) -> None:
    text = f'{HEAD},"a"\n{UNITS}\n{ROW.format(0, "k")},"1,056"\n{ROW.format(1, "k")},"2,5"\n'
    assert rows(opened(tmp_path, text), "kernel_counters", "launch", "value") == [(0, 1.056), (1, 2.5)]


def test_numbers_that_may_be_either_are_refused(tmp_path: Path) -> None:
    text = f'{HEAD},"a"\n{UNITS}\n{ROW.format(0, "k")},"7"\n{ROW.format(1, "k")},"1,056"\n'
    with pytest.raises(FormatError, match=r"found only such as 1,056, which may be either\n  Print a whole page"):
        opened(tmp_path, text)


def test_a_number_of_another_locale_is_null_and_counted(tmp_path: Path) -> None:
    text = f'{HEAD},"a"\n{UNITS}\n{ROW.format(0, "k")},"7.5"\n{ROW.format(1, "k")},"7,5"\n'
    trace = opened(tmp_path, text)
    assert rows(trace, "kernel_counters", "value") == [7.5, None]
    assert counted(trace) == {"profiled_alone": 2, "wrong_type": 1}


def test_what_was_not_measured_has_no_row(tmp_path: Path) -> None:
    text = f'{HEAD},"a","b","c","d"\n{UNITS},,,\n{ROW.format(0, "k")},"n/a","(!) n/a","","nan"\n'
    assert rows(opened(tmp_path, text), "kernel_counters", "metric", "value") == [("d", None)]


def test_pages_of_one_report_after_another_are_one_list_of_launches(tmp_path: Path) -> None:
    raw, details = (inferometer.open(SAMPLES / f"ncu_{page}.csv.gz") for page in ("raw", "details"))
    path = tmp_path / "both.csv"
    both = "".join(in_locale(SAMPLES / f"ncu_{page}.csv.gz") for page in ("details", "raw"))
    path.write_text(both)
    trace = inferometer.open(path)
    assert trace.totals.collect()["count"].sum() == raw.totals.collect()["count"].sum()
    alone, more, found = (each.kernel_counters.collect() for each in (raw, details, trace))
    assert (found.height, found["launch"].n_unique()) == (alone.height + more.height, 15)


def test_a_page_that_is_there_twice_counts_once(tmp_path: Path) -> None:
    path = tmp_path / "twice.csv"
    path.write_text(in_locale(RAW) * 2)
    trace, plain = inferometer.open(path), inferometer.open(RAW)
    assert trace.totals.collect().equals(plain.totals.collect())
    assert trace.kernel_counters.collect().equals(plain.kernel_counters.collect())
    names, _, *launches = csv.reader(io.StringIO(in_locale(RAW)))
    assert counted(trace)["repeated_row"] == sum(
        cell != "" for row in launches for cell in row[names.index("CC") + 1 :]
    )


def test_two_runs_in_one_file_are_all_their_launches(tmp_path: Path) -> None:
    text = f'{HEAD},"gpu__time_duration.sum"\n{UNITS}us\n{ROW.format(0, "k")},"2.5"\n'
    trace = opened(tmp_path, text + text.replace('"7","python3"', '"8","python3"'))
    assert rows(trace, "totals", "count", "total_ns") == [(2, 5000)]
