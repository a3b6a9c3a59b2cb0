"""`inferometer calls` as users meet it."""

import json
from pathlib import Path

import pytest
from tests.commands.test_command_line import run
from tests.kineto_files import call, event, kernel, write_file

EVENTS = [
    call(ts="90", dur="4", correlation=1),
    call("cudaGraphLaunch_v10000", ts="100", dur="20", correlation=2),
    call("cudaStreamSynchronize", ts="130", dur="70", correlation=9),
    call("cudaMemcpyAsync", ts="202", dur="8", correlation=3),
    kernel("gemm", "100", "10", correlation=1),
    kernel("norm", "112", "30", correlation=2),
    kernel("norm", "150", "30", correlation=2),
    event("gpu_memcpy", "Memcpy DtoH", "204", "2", pid=0, tid=7, device=0, stream=7, bytes=64, correlation=3),
    kernel("late", "400", "1", correlation=77),
]


@pytest.fixture
def trace_file(tmp_path: Path) -> Path:
    path = tmp_path / "trace.json"
    path.write_bytes(write_file(EVENTS))
    return path


def test_calls_delays_queue_and_waits_are_printed(trace_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run("calls", trace_file, capsys=capsys)
    assert (code, err) == (0, "")
    for words in ("Num Calls", "Launch delay", "Queue of the device", "Waits of the host", "cudaGraphLaunch", "█"):
        assert words in out
    assert "_v10000" not in out
    assert "Launches without a call in the file: 1 of 5" in out


def test_csv_has_nsights_columns(trace_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run("calls", trace_file, "--csv", "--raw", "--sort", "calls", capsys=capsys)
    lines = out.splitlines()
    assert lines[0] == ("Time (%),Total Time (ns),Num Calls,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name")
    assert "cudaGraphLaunch_v10000" in out
    assert len(lines) == 5


@pytest.mark.parametrize(
    ("options", "apis"),
    [
        ([], ["cudaStreamSynchronize", "cudaGraphLaunch", "cudaMemcpyAsync", "cudaLaunchKernel"]),
        (["--top", "1"], ["cudaStreamSynchronize"]),
        (["--match", "Launch", "--sort", "name"], ["cudaGraphLaunch", "cudaLaunchKernel"]),
        (["--between", "5us", "50us"], ["cudaStreamSynchronize", "cudaGraphLaunch"]),
    ],
)
def test_options_choose_and_order_the_rows(
    options: list[str], apis: list[str], trace_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = run("calls", trace_file, "--json", *options, capsys=capsys)
    assert [row["api"] for row in json.loads(out)["rows"]] == apis


def test_json_holds_what_is_shown_and_the_series(trace_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run("calls", trace_file, "--json", capsys=capsys)
    data = json.loads(out)
    assert data["losses"]["scope"] == ["calls", "launches"]
    assert data["launch_delay"][-1]["launches"] == 4
    assert [(wait["api"], wait["total_ns"], wait["idle_ns"]) for wait in data["waits"]] == [
        ("cudaStreamSynchronize", 70_000, 28_000),
        ("cudaMemcpyAsync", 8_000, 6_000),
    ]
    assert data["queues"][0]["max_depth"] == 2
    assert len(data["queue_series"]) == 60


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--match", "("], "match: expected a regular expression"),
        (["--rank", "3"], 'unknown rank "3"'),
        (["--between", "2", "1"], "between: expected two times in order"),
        (["--between", "9", "10"], "is only"),
    ],
)
def test_what_is_not_there_is_refused(
    options: list[str], message: str, trace_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run("calls", trace_file, *options, capsys=capsys)
    assert (code, out) == (3, "")
    assert message in err


def test_the_sample_is_answered(capsys: pytest.CaptureFixture[str]) -> None:
    sample = Path(__file__).resolve().parents[2] / "samples" / "decode.json.gz"
    code, out, _ = run("calls", sample, "--markdown", capsys=capsys)
    assert code == 0
    assert "### Launch delay" in out
