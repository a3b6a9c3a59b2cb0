from pathlib import Path

import polars as pl
import pytest
from tests.traces import trace_of

import inferometer
from inferometer.analyses.sql.query import run_query
from inferometer.errors import InputError, UnknownName
from inferometer.trace.trace import Trace


@pytest.fixture
def trace() -> Trace:
    return trace_of([{"kernel": "gemm", "dur_ns": 5}, {"kernel": "gemm", "dur_ns": 7}, {"kernel": "norm", "dur_ns": 1}])


def test_rows_are_those_of_the_documented_tables(trace: Trace) -> None:
    found = run_query(trace, "select kernel, sum(dur_ns) as ns, count(*) as n from launches group by kernel order by 2")

    assert found.frame.rows() == [("norm", 1, 1), ("gemm", 12, 2)]
    assert not found.more


def test_further_rows_are_left_and_said(trace: Trace) -> None:
    found = run_query(trace, "select dur_ns from launches", most_rows=2)

    assert (found.frame.height, found.more) == (2, True)
    assert run_query(trace, "select dur_ns from launches", most_rows=3).more is False


@pytest.mark.parametrize(
    "query",
    [
        "select kernel from launches",
        "WITH x AS (select 1 as a) select * from x",
        "-- why\n/* because */ select 1",
        "(select 1)",
        "values (1)",
        "show tables",
        "explain select kernel from launches",
    ],
)
def test_whatever_only_reads_is_answered(trace: Trace, query: str) -> None:
    assert run_query(trace, query).frame.height


@pytest.mark.parametrize(
    "how",
    [
        "select * from read_csv('{}')",
        "select * from READ_CSV('{}')",
        "select * from \"read_csv\"('{}')",
        "select * from read_csv/* */('{}')",
        "select $$'$$, x from read_csv('{}') --'",
        "with x as (select * from read_csv('{}')) select * from x",
        "select 1 where 1 in (select x from read_csv('{}'))",
        "select * from scan_parquet('{}')",
        "select * from '{}'",
    ],
)
def test_no_question_opens_a_file(trace: Trace, tmp_path: Path, how: str) -> None:
    (tmp_path / "a.csv").write_text("x\n867530941\n")

    with pytest.raises(InputError) as error:
        run_query(trace, how.format(tmp_path / "a.csv"))

    assert "867530941" not in str(error.value)


def test_a_plan_that_reads_another_file_is_refused_however_it_was_put(
    trace: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if Polars had a function that we don't know."""
    (tmp_path / "a.csv").write_text("x\n41\n")
    monkeypatch.setattr("inferometer.analyses.sql.query._OF_FILES", __import__("re").compile("(?!)"))

    with pytest.raises(InputError, match="it would open a file: Csv SCAN"):
        run_query(trace, f"select * from read_csv('{tmp_path / 'a.csv'}')")


def test_the_files_of_a_store_are_its_tables(trace: Trace, tmp_path: Path) -> None:
    trace.save(tmp_path / "run.ifm")

    found = run_query(inferometer.open(tmp_path / "run.ifm"), "select sum(dur_ns) as ns from launches")

    assert found.frame.rows() == [(13,)]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "expected SQL, found nothing"),
        ("-- nothing", "expected SQL, found nothing"),
        ("drop table launches", "expected one that only reads, found 'drop'"),
        ("delete from launches where dur_ns = 1", "found 'delete'"),
        ("create table x as select * from launches", "found 'create'"),
        ("selec 1", "found 'selec'"),
        ("select 1; select 2", "one (and only one) statement"),
        ("select foo(dur_ns) from launches", "unsupported function 'foo'"),
        ("select kernel from launches group by dur_ns", "'kernel' should participate in the GROUP BY clause"),
        ("select " + "1," * 60_000 + "1", "expected at most 100,000 characters"),
        ("select \ud800 from launches", "the question"),
    ],
)
def test_what_is_no_question_is_refused_with_what_was_expected(trace: Trace, query: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        run_query(trace, query)

    assert message in str(error.value)


@pytest.mark.parametrize(
    ("query", "kind", "nearest"),
    [
        ("select * from launch", "table", "launches"),
        ("select kernal from launches", "column", "kernel"),
        ("select launches.dur from launches", "column of launches", "dur_ns"),
        ("select x.kernell from (select kernel from launches) x", "column", None),
    ],
)
def test_an_unknown_name_lists_the_known_ones(trace: Trace, query: str, kind: str, nearest: str | None) -> None:
    with pytest.raises(InputError) as error:
        run_query(trace, query)

    if nearest:
        assert isinstance(error.value, UnknownName)
        assert (error.value.kind, error.value.known[0]) == (kind, nearest)


def test_what_json_lacks_becomes_text(trace: Trace) -> None:
    found = run_query(
        trace, "select interval '1 day' as d, 1.5 as x, [1, 2] as l, null as n, grid from launches limit 1"
    )

    row = found.as_json()["rows"][0]
    assert row == {"d": "1 day, 0:00:00", "x": 1.5, "l": [1, 2], "n": None, "grid": None}


def test_a_million_rows_are_not_held(trace: Trace) -> None:
    wide = trace_of([{"start_ns": i} for i in range(1_000)])

    found = run_query(wide, "select a.start_ns from launches a cross join launches b")

    assert (found.frame.height, found.more, found.frame.schema) == (10_000, True, pl.Schema({"start_ns": pl.Int64}))
