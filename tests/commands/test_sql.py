"""`inferometer sql`: forms of output, and what is refused."""

import json
from pathlib import Path

import pytest
from tests.commands.test_command_line import run

DECODE = Path(__file__).resolve().parents[2] / "samples" / "decode.json.gz"
QUERY = "select kernel, count(*) as n from launches group by kernel order by n desc, kernel limit 2"


def test_rows_are_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run("sql", DECODE, "select count(*) as launches, sum(dur_ns) as ns from launches", capsys=capsys)

    assert (code, err) == (0, "")
    assert out.splitlines()[3].split() == ["786", "5,305,119"]


def test_json_and_csv_have_exact_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run("sql", DECODE, QUERY, "--json", capsys=capsys)
    document = json.loads(out)
    _, csv, _ = run("sql", DECODE, QUERY, "--csv", capsys=capsys)

    assert document["schema"] == {"name": "query", "version": 1}
    assert [column["name"] for column in document["columns"]] == ["kernel", "n"]
    assert csv.splitlines()[0] == "kernel,n"
    assert [row["n"] for row in document["rows"]] == [int(line.rpartition(",")[2]) for line in csv.splitlines()[1:]]


def test_more_rows_than_asked_for_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run("sql", DECODE, "select dur_ns from launches", "--top", 3, capsys=capsys)

    assert "The first 3 rows; there are more: --top N shows more, LIMIT fewer." in out


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("select kernell from launches", 'error: unknown column "kernell"\n  Known, nearest first: kernel, '),
        ("select * from launch", 'error: unknown table "launch"\n  Known, nearest first: launches, '),
        ("select * from read_parquet('x')", "error: the question: read_parquet would open a file\n"),
        ("drop table launches", "error: the question: expected one that only reads, found 'drop'\n"),
    ],
)
def test_a_question_that_can_t_be_answered_says_why(query: str, error: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run("sql", DECODE, query, capsys=capsys)

    assert (code, out) == (3, "")
    assert err.startswith(error)
