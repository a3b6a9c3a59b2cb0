"""The command line as users meet it: help, forms of output, exit codes, and never a traceback."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import get_args

import click
import pytest
from tests.kineto_files import call, event, kernel, write_file

from inferometer.analyses.labels import By
from inferometer.analyses.rows import SortKey
from inferometer.analyses.tables.spans import SpanSortKey
from inferometer.commands import main as command_line
from inferometer.commands.main import cli, main
from inferometer.registry import collect

EVENTS = [
    call(ts="90", correlation=1),
    kernel("gemm", "100", "10", correlation=1),
    kernel("_ZN2at6native11fill_kernelEv", "120", "5", correlation=2),
    kernel("gemm", "130", "30", correlation=3, stream=9),
    event("gpu_memcpy", "Memcpy HtoD", "170", "2", pid=0, tid=7, device=0, stream=7, bytes=64),
]
COMMANDS = sorted(collect("inferometer.commands", "run"))
HEAVY = ("polars", "numpy", "rich", "jinja2", "plotly", "scipy", "isal", "cpp_demangle")


@pytest.fixture
def trace_file(tmp_path: Path) -> Path:
    path = tmp_path / "folder" / "trace.json"
    path.parent.mkdir()
    path.write_bytes(write_file(EVENTS))
    return path


def run(*words: object, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of one call."""
    with pytest.raises(SystemExit) as stopped:
        main([str(word) for word in words])
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    return int(stopped.value.code or 0), out, err


def run_apart(*words: object, stdin: bytes | None = None, **env: str) -> subprocess.CompletedProcess[bytes]:
    """The same in a process of its own."""
    command = [sys.executable, "-m", "inferometer", *map(str, words)]
    return subprocess.run(command, input=stdin, capture_output=True, env={**os.environ, **env}, check=False, timeout=60)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_every_command_opens_with_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(command, "--help", capsys=capsys)
    assert code == 0
    assert f"Example:\n    inferometer {command}" in out
    assert "--json" in out or command == "serve"  # it prints an address


@pytest.mark.parametrize(
    ("command", "option", "words"),
    [
        ("kernels", "by", (*get_args(By), "op-args")),
        ("kernels", "sort", (*get_args(SortKey), "instances", "avg", "med")),
        ("calls", "sort", (*get_args(SortKey), "calls", "avg", "med")),
        ("spans", "sort", get_args(SpanSortKey)),
    ],
)
def test_options_have_the_words_that_the_analyses_know(command: str, option: str, words: tuple[str, ...]) -> None:
    """Commands spell them out, since analyses load heavy libraries."""
    found = cli.get_command(click.Context(cli), command)
    assert found is not None
    (choice,) = [param.type for param in found.params if param.name == option]
    assert isinstance(choice, click.Choice)
    assert set(choice.choices) == set(words)


def test_every_command_is_found_by_its_file_and_no_other_file_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_line, "_commands", dict[str, click.Command])
    context = click.Context(cli)
    found = {name: cli.get_command(context, name) for name in COMMANDS}
    assert found == collect("inferometer.commands", "run") | {"import": None}  # no file can have its name
    assert [cli.get_command(context, name) for name in ("base", "options.files", "", "KERNELS")] == [None] * 4


def test_help_loads_nothing_heavy_and_is_quick() -> None:
    program = (
        "import sys, time; began = time.process_time()\n"
        "from inferometer.commands.main import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)\n"
        "print(time.process_time() - began, file=sys.stderr)"
    )
    runs = [  # the first one may still have to compile
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
        for _ in range(3)
    ]
    assert {run.stderr.split("\n")[0] for run in runs} == {"[]"}
    assert min(float(run.stderr.split("\n")[1]) for run in runs) < 0.3


def test_a_look_defines_no_dataclasses_but_results(trace_file: Path) -> None:
    program = (
        "import dataclasses, sys\n"
        "from inferometer.commands.main import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "from inferometer.analyses.result import Result\n"
        "ours = {found for name, module in list(sys.modules.items()) if name.startswith('inferometer.')\n"
        "        for found in vars(module).values() if isinstance(found, type) and dataclasses.is_dataclass(found)}\n"
        "print(*(found.__qualname__ for found in ours if not issubclass(found, Result)), file=sys.stderr)"
    )
    for command in ("kernels", "summary"):
        words = [sys.executable, "-c", program, command, str(trace_file)]
        done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
        assert (command, done.stderr.split()) == (command, [])  # each takes 0.3 ms to define, a Struct 10 us


def test_kernels_as_json_has_the_promised_shape(trace_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run("kernels", trace_file, "--json", capsys=capsys)
    data = json.loads(out)
    assert code == 0
    assert data["source"] == str(trace_file)
    assert data["total_ns"] == 45_000
    assert data["losses"]["scope"] == ["launches", "totals"]
    assert data["rows"][0] == {
        "kernel": "gemm",
        "short": "gemm",
        "share": pytest.approx(40 / 45),
        "total_ns": 40_000,
        "count": 2,
        "mean_ns": 20_000.0,
        "median_ns": 20_000.0,
        "min_ns": 10_000,
        "max_ns": 30_000,
        "stddev_ns": pytest.approx(14_142.1356),
    }


def test_names_are_demangled_unless_raw_is_asked_for(trace_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = {}
    for flag in ([], ["--raw"]):
        _, out, _ = run("kernels", trace_file, "--json", *flag, capsys=capsys)
        names[bool(flag)] = [row["kernel"] for row in json.loads(out)["rows"]]
    assert names == {False: ["gemm", "at::native::fill_kernel()"], True: ["gemm", "_ZN2at6native11fill_kernelEv"]}


@pytest.mark.parametrize(
    ("options", "kernels"),
    [
        (["--top", "1"], ["gemm"]),
        (["--match", "fill"], ["at::native::fill_kernel()"]),
        (["--stream", "7", "--sort", "name"], ["at::native::fill_kernel()", "gemm"]),
        (["--device", "0", "--sort", "min"], ["gemm", "at::native::fill_kernel()"]),
        (["--memory", "--sort", "min"], ["gemm", "at::native::fill_kernel()", "Memcpy HtoD"]),
        (["--between", "25us", "35us"], ["at::native::fill_kernel()"]),
        (["--between", "0", "0.000015"], ["gemm"]),
        (["--sort", "avg"], ["gemm", "at::native::fill_kernel()"]),
    ],
)
def test_options_choose_and_order_the_rows(
    options: list[str], kernels: list[str], trace_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = run("kernels", trace_file, "--json", *options, capsys=capsys)
    assert [row["kernel"] for row in json.loads(out)["rows"]] == kernels


def test_more_rows_than_there_are_may_be_asked_for(trace_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    every = run("kernels", trace_file, "--json", capsys=capsys)[1]
    assert run("kernels", trace_file, "--json", "--top", 10**30, capsys=capsys)[:2] == (0, every)


def test_csv_has_exact_numbers_under_nsights_titles(trace_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run("kernels", trace_file, "--csv", "--top", "1", capsys=capsys)
    head, row = out.splitlines()
    assert head.startswith("Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name")
    assert row.split(",")[1:3] == ["40000", "2"]


def test_summary_tells_what_the_file_is(trace_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run("summary", trace_file, capsys=capsys)
    assert code == 0
    assert "PyTorch profiler (Kineto)" in out
    assert "4 launches, 1 call" in out
    assert "Top kernels" in out


def test_a_store_answers_as_its_file_does(trace_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = tmp_path / "trace.ifm"
    code, out, _ = run("import", trace_file, "-o", store, capsys=capsys)
    assert (code, out) == (0, f"{store}: 4 launches, 1 call\n")
    rows = []
    for source in (trace_file, store):
        _, text, _ = run("kernels", source, "--json", capsys=capsys)
        rows.append(json.loads(text)["rows"])
    assert rows[0] == rows[1]
    code, _, err = run("import", trace_file, "-o", store, capsys=capsys)
    assert code == 3
    assert "--force" in err
    assert run("import", trace_file, "-o", store, "--force", "--json", capsys=capsys)[0] == 0


def test_formats_names_what_can_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run("formats", "--json", capsys=capsys)
    assert "kineto" in [fmt["name"] for fmt in json.loads(out)["formats"]]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["kernels", "nowhere.json"], 3, "nowhere.json: No such file"),
        (["kernels", "{file}", "--match", "("], 3, "expected a regular expression"),
        (["kernels", "{file}", "--device", "gpu:9"], 3, "gpu:0"),
        (["kernels", "{file}", "--rank", "1"], 3, "rank"),
        (["kernels", "{file}", "--between", "2", "1"], 3, "expected two times in order"),
        (["kernels", "{file}", "--between", "1 parsec", "2"], 3, "1 parsec"),
        (["kernels", "{file}", "--between", "5s", "6s"], 3, "is only"),
        (["kernels", "{file}", "--format", "nonsense"], 3, "kineto"),
        (["kernels", "{file}", "--top", "0"], 2, "--top"),
        (["kernels", "{file}", "--json", "--csv"], 2, "are mutually exclusive"),
        (["kernels"], 2, "FILE"),
        (["kernel", "{file}"], 2, "Did you mean kernels?"),
        (["summary", "{folder}/.."], 3, "one profile per rank, found only"),
        (["import", "{file}"], 2, "--output"),
        (["import", "{file}", "-o", "{folder}/no/such/place.ifm"], 3, "no such folder"),
        (["import", "{file}", "-o", "{folder}", "--force"], 3, "not a store"),
    ],
)
def test_wrong_calls_say_what_was_wrong(
    words: list[str], code: int, said: str, trace_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = {"file": trace_file, "folder": trace_file.parent}
    found, out, err = run(*(word.format(**places) for word in words), capsys=capsys)
    assert (found, out) == (code, "")
    assert said in err


@pytest.mark.parametrize(
    "content", [b"", b"\x00" * 100, b"\x89PNG\r\n", b"{}", b'{"traceEvents": 7}', "ключ: 值".encode()]
)
def test_what_is_no_trace_is_refused_in_one_message(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "файл 文件.json"
    path.write_bytes(content)
    for command in ("kernels", "summary"):
        code, out, err = run(command, path, capsys=capsys)
        assert (code, out) == (3, "")
        assert err.startswith("error: ")
        assert path.name in err


def test_a_bug_of_ours_is_told_without_a_traceback(
    trace_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr("inferometer.analyses.tables.kernels.kernel_table", fail)
    code, _, err = run("kernels", trace_file, capsys=capsys)
    assert code == 70
    assert "ZeroDivisionError: planted" in err
    assert "--debug" in err
    with pytest.raises(ZeroDivisionError):
        main(["--debug", "kernels", str(trace_file)])
    with pytest.raises(ZeroDivisionError):
        main(["kernels", str(trace_file), "--debug"])


def test_the_end_of_a_file_of_ours_is_no_interruption(
    trace_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise EOFError("marshal data too short")

    monkeypatch.setattr("inferometer.analyses.tables.kernels.kernel_table", fail)
    code, _, err = run("kernels", trace_file, capsys=capsys)
    assert (code, "EOFError: marshal data too short" in err, "interrupted" in err) == (70, True, False)


@pytest.mark.parametrize("words", [("leaderboard", "x" * 300), ("leaderboard", "a/" * 3_000)], ids=["name", "path"])
def test_a_path_that_the_system_refuses_is_bad_input(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(*words, capsys=capsys)
    assert (code, out) == (3, "")
    assert "File name too long\n  Check the path and its permissions." in err


@pytest.mark.skipif(os.name != "posix", reason="closes numbered files")
@pytest.mark.parametrize(("closed", "file", "code"), [((0,), "-", 3), ((1,), None, 0), ((0, 1, 2), None, 0)])
def test_standard_streams_that_are_closed_are_no_failure_of_ours(
    closed: tuple[int, ...], file: str | None, code: int, trace_file: Path, tmp_path: Path
) -> None:
    store = tmp_path / "made.ifm"
    words = ["kernels", file] if file else ["import", str(trace_file), "-o", str(store)]
    shut = " ".join(f"{number}>&-" for number in closed)
    command = ["sh", "-c", f'exec "$@" {shut}', "sh", sys.executable, "-m", "inferometer", *words]
    assert subprocess.run(command, check=False, timeout=60).returncode == code
    if file is None:
        assert run_apart("kernels", store).returncode == 0, "nothing that was printed is in the store"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's /dev/full")
@pytest.mark.parametrize("words", [["summary"], ["kernels", "--json"], ["export", "--to", "chrome", "-o", "-"]])
def test_a_full_disk_behind_standard_output_is_one_line(trace_file: Path, words: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        command = [sys.executable, "-m", "inferometer", words[0], str(trace_file), *words[1:]]
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    assert (ended.returncode, ended.stderr) == (3, "error: standard output: No space left on device\n")


def test_losses_of_a_cut_file_are_shown_beside_the_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cut.json"
    path.write_bytes(write_file(EVENTS)[:-60])
    code, out, _ = run("kernels", path, capsys=capsys)
    assert code == 0
    assert "warning: 1 truncated" in out
    code, out, err = run("kernels", path, "--csv", capsys=capsys)
    assert "truncated" not in out
    assert "warning: 1 truncated" in err


def test_a_packed_file_that_was_cut_is_a_warning_as_a_plain_one_is(
    shared_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = (shared_data / "traces/kineto/a100_event_sync.json.gz").read_bytes()
    path = tmp_path / "cut.json.gz"
    path.write_bytes(whole[: len(whole) * 3 // 4])
    code, out, err = run("kernels", path, "--csv", capsys=capsys)
    assert (code, len(out.splitlines()) > 1) == (0, True)
    assert err.startswith("warning: 1 broken_compression: ")
    assert "error" not in err
    code, out, _ = run("summary", path, "--json", capsys=capsys)
    assert {each["severity"] for each in json.loads(out)["losses"]["entries"]} <= {"warning", "info"}
    assert code == 0


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_standard_input_is_read_plain_or_packed(pack: "type[bytes]") -> None:
    done = run_apart("kernels", "-", "--json", stdin=pack(write_file(EVENTS)))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["total_ns"] == 45_000


def test_a_reader_that_leaves_early_is_no_failure(trace_file: Path) -> None:
    words = [sys.executable, "-m", "inferometer", "kernels", str(trace_file)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        said = process.stderr.read()
    assert (process.returncode, said) == (0, b"")


def test_a_pipe_gets_no_escape_sequences(trace_file: Path) -> None:
    done = run_apart("summary", trace_file, FORCE_COLOR="", NO_COLOR="1")
    assert done.returncode == 0
    assert b"\x1b" not in done.stdout


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["compare", "a", "b", "--device", "A100"], "--device is --hardware here"),
        (["findings", "{file}", "--device", "Apple M3"], "--device is --hardware here"),
        (["summary", "{file}", "--device", "Apple M3"], "--device is --hardware here"),
        (["report", "{file}", "--device", "Apple M3", "-o", "run.html"], "--device is --hardware here"),
        (["operators", "--device", "H20"], "--device is --hardware here"),
        (["leaderboard", "--device", "H20", "--json"], "--device is --hardware here"),
        (["hardware", "--device-file", "mine.json"], "--device-file is --hardware-file here"),
        (["kernels", "{file}", "--model-config", "gemma-3-1b", "--device", "Apple M3"], "what it ran on is --hardware"),
    ],
)
def test_device_chooses_one_of_the_trace_and_hardware_names_a_datasheet(
    words: list[str], hint: str, trace_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(*(str(word).format(file=trace_file) for word in words), capsys=capsys)
    assert (code, out) == (2, "")
    assert hint in err
