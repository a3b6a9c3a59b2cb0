"""`inferometer timeline` as users meet it: forms of output, widths, encodings, wrong calls."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.kineto_files import call, event, kernel, write_file

from inferometer.commands.main import main

EVENTS = [
    call(ts="90", correlation=1),
    kernel("gemm", "100", "10", correlation=1),
    kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(A)", "105", "15", correlation=3, stream=9),
    event("gpu_memcpy", "Memcpy HtoD", "180", "20", pid=0, tid=7, device=0, stream=7, bytes=64),
]


@pytest.fixture
def trace_file(tmp_path: Path) -> Path:
    path = tmp_path / "trace.json"
    path.write_bytes(write_file(EVENTS))
    return path


def run(*words: object, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of one call."""
    with pytest.raises(SystemExit) as stopped:
        main(["timeline", *map(str, words)])
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    return int(stopped.value.code or 0), out, err


def run_apart(*words: object, **env: str) -> str:
    command = [sys.executable, "-m", "inferometer", "timeline", *map(str, words)]
    done = subprocess.run(command, capture_output=True, env={**os.environ, **env}, check=True, timeout=60)
    assert not done.stderr
    return done.stdout.decode()


def test_the_tables_and_the_strip_are_printed(trace_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(trace_file, capsys=capsys)
    assert code == 0
    titles = [line for line in out.splitlines() if line in {"Devices", "Time line", "Streams", "Longest gaps"}]
    assert titles == ["Devices", "Time line", "Streams", "Longest gaps"]
    assert "gpu:0   all     ██████XXXXXX····································MMMMMMMMMMMM" in out
    assert "gpu:0 is idle 60.0 % of its window (60.000 μs of 100.000 μs)" in out


def test_json_has_the_promised_shape(trace_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(trace_file, "--json", "--width", 10, "--top", 1, capsys=capsys)
    data = json.loads(out)
    assert data["source"] == str(trace_file)
    assert (data["devices"][0]["idle_ns"], len(data["gaps"])) == (60_000, 1)
    assert data["strip"]["lanes"][0]["exposed_communication_ns"] == [0, 10_000, 0, 0, 0, 0, 0, 0, 0, 0]
    assert [lane["stream"] for lane in data["strip"]["lanes"]] == [None, 7, 9]


def test_csv_is_the_table_of_devices(trace_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(trace_file, "--csv", capsys=capsys)
    (row,) = csv.DictReader(out.splitlines())
    assert (row["Device"], row["Busy (%)"], row["Exposed comm. (ns)"]) == ("gpu:0", "40.0", "10000")


@pytest.mark.parametrize(
    ("options", "launches", "idle_ns"),
    [
        (["--stream", "9"], 1, 0),
        (["--device", "0"], 3, 60_000),
        (["--between", "15us", "100us"], 3, 60_000),
        (["--between", "0.000015", "0.000016"], 2, 0),
    ],
)
def test_options_choose_what_is_looked_at(
    options: list[str], launches: int, idle_ns: int, trace_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = run(trace_file, "--json", *options, capsys=capsys)
    (device,) = json.loads(out)["devices"]
    assert (device["launches"], device["idle_ns"]) == (launches, idle_ns)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["{file}", "--device", "gpu:9"], 3, "gpu:0"),
        (["{file}", "--stream", "8"], 3, "Known, nearest first: 7, 9"),
        (["{file}", "--rank", "0"], 3, "rank"),
        (["{file}", "--between", "2", "1"], 3, "expected two times in order"),
        (["{file}", "--between", "5s", "6s"], 3, "is only"),
        (["{file}", "--between", "soon", "2"], 3, "soon"),
        (["{file}", "--width", "0"], 2, "--width"),
        (["{file}", "--top", "0"], 2, "--top"),
        (["nowhere.json"], 3, "nowhere.json: No such file"),
        ([], 2, "FILE"),
    ],
)
def test_wrong_calls_say_what_was_wrong(
    words: list[str], code: int, said: str, trace_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found, out, err = run(*(word.format(file=trace_file) for word in words), capsys=capsys)
    assert (found, out) == (code, "")
    assert said in err


@pytest.mark.parametrize("content", [b"", b"\x89PNG\r\n", b"{}", "ключ: 值".encode()])
def test_what_is_no_trace_is_refused(content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "файл.json"
    path.write_bytes(content)
    code, out, err = run(path, capsys=capsys)
    assert (code, out) == (3, "")
    assert "файл.json" in err


def test_a_file_of_the_host_alone_has_no_time_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "host.json"
    path.write_bytes(write_file([call(ts="90", correlation=1)]))
    code, out, _ = run(path, capsys=capsys)
    assert code == 0
    assert "No launches: only the host was recorded, or recording the device failed." in out


def test_a_cut_file_says_so_beside_the_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cut.json"
    path.write_bytes(write_file(EVENTS)[:-60])
    code, out, _ = run(path, capsys=capsys)
    assert code == 0
    assert "warning: 1 truncated" in out


def test_the_strip_is_plain_where_the_encoding_lacks_blocks(trace_file: Path) -> None:
    out = run_apart(trace_file, "--width", 10, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert "#X......MM" in out
    assert "-=# compute" in out
    assert "█" in run_apart(trace_file, "--width", 10, PYTHONIOENCODING="utf-8")
