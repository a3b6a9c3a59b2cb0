"""`inferometer export` as users meet it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.commands.test_command_line import run, run_apart
from tests.kineto_files import call, event, kernel, write_file
from tests.perfetto_files import decode

EVENTS = [
    call(correlation=1),
    kernel("gemm μ", "100", "10"),
    event("gpu_memset", "Memset", "130", "1", pid=0, tid=7, device=0, stream=7, bytes=64),
    {"ph": "C", "name": "queue", "pid": 1, "ts": 3, "args": {"running": 3}},
    event("quantum", "q", "1", "1"),
]


@pytest.fixture
def trace_file(tmp_path: Path) -> Path:
    path = tmp_path / "trace.json"
    path.write_bytes(write_file(EVENTS))
    return path


def test_a_chrome_export_answers_as_its_file_does(trace_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = trace_file.with_name("out.json.gz")
    code, said, err = run("export", trace_file, "--to", "chrome", "-o", out, capsys=capsys)
    assert (code, said.split(" (")[0]) == (0, f"{out}: 2 launches, 1 call, 1 counter")
    assert "unknown_category" in err
    for words in (["kernels", "--json"], ["summary", "--json"]):
        first, second = (
            json.loads(run(words[0], path, words[1], capsys=capsys)[1]) for path in (trace_file, out)
        )  # fmt: skip
        for key in ("rows", "total_ns", "duration_ns", "devices", "top_kernels", "remarks"):
            assert first.get(key) == second.get(key)


def test_json_lists_what_was_written(trace_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = trace_file.with_name("out")
    code, said, _ = run("export", trace_file, "--to", "parquet", "-o", out, "--json", capsys=capsys)
    data = json.loads(said)
    assert (code, data["to"], data["left_out"]) == (0, "parquet", {})
    assert [(Path(file["path"]).name, file["rows"]) for file in data["files"]] == [
        ("launches.parquet", {"launches": 2}),
        ("calls.parquet", {"calls": 1}),
        ("counters.parquet", {"counters": 1}),
        ("about.json", {}),
    ]
    assert all(file["bytes"] == Path(file["path"]).stat().st_size for file in data["files"])
    assert data["losses"]["entries"][0]["name"] == "unknown_category"


def test_standard_output_is_the_file_and_nothing_else(trace_file: Path) -> None:
    done = run_apart("export", trace_file, "--to", "chrome")
    assert (done.returncode, len(json.loads(done.stdout)["traceEvents"])) == (0, 4)
    assert b"unknown_category" in done.stderr
    done = run_apart("export", trace_file, "--to", "csv", "--table", "launches")
    assert [line.split(b",")[:2] for line in done.stdout.splitlines()[1:]] == [
        [b"kernel", "gemm μ".encode()],
        [b"memset", b"Memset"],
    ]
    done = run_apart("export", trace_file, "--to", "perfetto", "-o", "-")
    path = trace_file.with_name("out.pftrace")
    path.write_bytes(done.stdout)
    assert [one.name for one in decode(path).slices] == ["cudaLaunchKernel", "gemm μ", "Memset"]


@pytest.mark.parametrize("to", ["chrome", "csv"])
def test_a_reader_that_leaves_early_is_no_failure(to: str, tmp_path: Path) -> None:
    path = tmp_path / "long.json"
    path.write_bytes(write_file(kernel(f"k{i}", str(i), "0.5") for i in range(20_000)))
    words = [sys.executable, "-m", "inferometer", "export", str(path), "--to", to, "--table", "launches"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        said = process.stderr.read()
    assert (process.returncode, said) == (0, b"")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--to", "excel", "-o", "x"], 2, "'perfetto', 'chrome', 'parquet', 'csv'"),
        (["-o", "x"], 2, "--to"),
        (["--to", "perfetto"], 2, "needs -o OUT: name a file"),
        (["--to", "parquet"], 2, "needs -o OUT: name a folder"),
        (["--to", "csv"], 2, "or choose one --table"),
        (["--to", "csv", "-o", "-"], 2, "can't go to standard output"),
        (["--to", "parquet", "-o", "-", "--table", "calls"], 2, "can't go to standard output"),
        (["--to", "chrome", "--json"], 2, "standard output is taken"),
        (["--to", "csv", "-o", "{folder}/x", "--table", "lunches"], 3, "nearest first: launches"),
        (["--to", "csv", "-o", "{folder}/x", "--table", "log"], 3, "no rows to export"),
        (["--to", "chrome", "-o", "{folder}/no/such/x.json"], 3, "no such folder"),
        (["--to", "chrome", "-o", "{file}"], 3, "already exists"),
        (["--to", "chrome", "-o", "{folder}", "--force"], 3, "is a folder"),
        (["--to", "parquet", "-o", "{folder}", "--force"], 3, "holds 'trace.json'"),
        (["--to", "parquet", "-o", "{file}", "--force"], 3, "is a file"),
    ],
)
def test_wrong_calls_say_what_was_wrong(
    words: list[str], code: int, said: str, trace_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = trace_file.read_bytes()
    places = {"file": trace_file, "folder": trace_file.parent}
    found, out, err = run("export", trace_file, *(word.format(**places) for word in words), capsys=capsys)
    assert (found, out) == (code, "")
    assert said in err
    assert [each.name for each in trace_file.parent.iterdir()] == ["trace.json"]
    assert trace_file.read_bytes() == before


def test_an_existing_output_is_told_before_the_input_is_read(
    trace_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run("export", "nowhere.json", "--to", "chrome", "-o", trace_file, capsys=capsys)
    assert (code, "already exists" in err) == (3, True)


@pytest.mark.parametrize("content", [b"", b"\x89PNG\r\n", b'{"traceEvents": []}', write_file(EVENTS)[:-60]])
def test_what_is_no_trace_or_a_cut_one_gives_no_traceback(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "файл 文件.json"
    path.write_bytes(content)
    for to in ("perfetto", "chrome", "parquet", "csv"):
        code, _, err = run("export", path, "--to", to, "-o", tmp_path / to, capsys=capsys)
        assert code in (0, 3)
        assert (path.name in err) if code else ("truncated" in err)


@pytest.mark.parametrize("to", ["perfetto", "chrome", "parquet", "csv"])
def test_a_disk_that_is_full_is_one_message_and_leaves_nothing(to: str, tmp_path: Path) -> None:
    resource = pytest.importorskip("resource", reason="needs limits of a process")
    path = tmp_path / "long.json"
    path.write_bytes(write_file(kernel(f"k{i}", str(i), "0.5", correlation=i * 7919) for i in range(5_000)))

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    words = [sys.executable, "-m", "inferometer", "export", str(path), "--to", to, "-o", str(tmp_path / "out")]
    done = subprocess.run(words, capture_output=True, preexec_fn=limit, check=False, timeout=60)
    assert done.returncode == 3, done.stderr
    assert b"out: can't be written" in done.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["long.json"]
