"""`inferometer spans` as users meet it."""

import json
from pathlib import Path

import pytest
from tests.commands.test_command_line import run
from tests.kineto_files import call, event, kernel, write_file

EVENTS = [
    event("user_annotation", "execute_context_0(0)_generation_64(64)", "80", "30"),
    event("user_annotation", "execute_context_0(0)_generation_65(65)", "120", "30"),
    event("user_annotation", "attention", "95", "10"),
    call(ts="90", correlation=1),
    call(ts="96", correlation=2),
    call(ts="125", correlation=3),
    call(ts="160", correlation=4),
    kernel("gemm", "100", "10", correlation=1),
    kernel("gemm", "120", "10", correlation=2),
    kernel("gemm", "140", "10", correlation=3),
    kernel("gemm", "170", "10", correlation=4),
]


@pytest.fixture
def trace_file(tmp_path: Path) -> Path:
    path = tmp_path / "trace.json"
    path.write_bytes(write_file(EVENTS))
    return path


def test_ranges_are_printed_with_what_is_in_none(trace_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run("spans", trace_file, capsys=capsys)
    assert (code, err) == (0, "")
    for words in ("Device Busy", "Host Total", "attention", "(in no range)", "Launches in no range: 1 of 4, 25.0 %"):
        assert words in out


@pytest.mark.parametrize(
    ("options", "ranges"),
    [
        (["--fold"], [("execute_context_N(N)_generation_N(N)", 3, 2), ("attention", 1, 1)]),
        (["--match", "att"], [("attention", 1, 1)]),
        (["--sort", "name", "--top", "1"], [("attention", 1, 1)]),
    ],
)
def test_options_choose_join_and_order_the_rows(
    options: list[str], ranges: list[tuple[str, int, int]], trace_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = run("spans", trace_file, "--json", *options, capsys=capsys)
    data = json.loads(out)
    assert [(row["span"], row["launches"], row["own_launches"]) for row in data["rows"]] == ranges
    assert data["in_no_range"]["launches"] == 1
    assert data["losses"]["scope"] == ["calls", "launches", "spans"]


def test_launches_are_conserved_in_the_exported_table(trace_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run("spans", trace_file, "--tsv", capsys=capsys)
    head, *rows = [line.split("\t") for line in out.splitlines()]
    assert sum(int(row[head.index("Own Launches")]) for row in rows) == 4
    assert sum(int(row[head.index("Own Summed (ns)")]) for row in rows) == 40_000


def test_what_is_not_there_is_refused(trace_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for options, message in ((["--match", "["], "match: expected a regular"), (["--rank", "3"], 'unknown rank "3"')):
        code, out, err = run("spans", trace_file, *options, capsys=capsys)
        assert (code, out) == (3, "")
        assert message in err


def test_the_sample_is_answered(capsys: pytest.CaptureFixture[str]) -> None:
    sample = Path(__file__).resolve().parents[2] / "samples" / "decode.json.gz"
    code, out, _ = run("spans", sample, "--markdown", capsys=capsys)
    assert code == 0
    assert "DECODE" in out
