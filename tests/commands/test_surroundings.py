"""The command line in the surroundings that users have: terminals, odd encodings, odd file names, missing color."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.kineto_files import call, event, kernel, write_file
from tests.traces import rows

import inferometer
from inferometer import Limits
from inferometer.commands.main import cli
from inferometer.errors import InputError

Word = str | bytes | Path
needs_named_pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
FILE = write_file([call(), kernel("gemm μ<T>", "100", "10"), event("quantum", "q", "1", "1")])


@pytest.fixture
def trace_file(tmp_path: Path) -> Path:
    path = tmp_path / "trace.json"
    path.write_bytes(FILE)
    return path


def run(*words: Word, **surroundings: str) -> subprocess.CompletedProcess[bytes]:
    """One call in a process of its own, with these environment variables."""
    command = [sys.executable, "-m", "inferometer", *words]
    done = subprocess.run(command, capture_output=True, env={**os.environ, **surroundings}, check=False, timeout=60)
    assert b"Traceback" not in done.stderr
    return done


def run_on_a_terminal(*words: str | Path, **surroundings: str) -> str:
    """What a terminal of 100 columns gets to see."""
    ours, theirs = pytest.importorskip("pty", reason="needs pseudo-terminals").openpty()
    command = [sys.executable, "-m", "inferometer", *words]
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", **surroundings}
    for name in ("NO_COLOR", "FORCE_COLOR"):
        if name not in surroundings:
            environment.pop(name, None)
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        seen = b""
        try:
            while piece := os.read(ours, 4096):
                seen += piece
        except OSError:  # how Linux says that the other side closed
            pass
    os.close(ours)
    assert process.returncode == 0
    return seen.decode()


def test_a_terminal_gets_color_and_none_under_no_color(trace_file: Path) -> None:
    assert "\x1b[1m" in run_on_a_terminal("summary", trace_file)
    plain = run_on_a_terminal("summary", trace_file, NO_COLOR="1")
    assert "gemm " in plain
    assert not any(f"[{color}m" in plain for color in range(30, 38))


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_output_of_any_encoding_is_whole(encoding: str, trace_file: Path) -> None:
    for words in (["summary"], ["kernels", "--csv"], ["kernels", "--json"]):
        done = run(words[0], trace_file, *words[1:], PYTHONIOENCODING=encoding)
        assert (done.returncode, done.stderr.count(b"error")) == (0, 0)
        assert b"gemm" in done.stdout


def test_a_file_name_that_is_not_text_is_a_file_name(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/\xff.json"
    Path(os.fsdecode(path)).write_bytes(FILE)
    assert b"\\udcff.json" in run("summary", path).stdout
    assert json.loads(run("kernels", path, "--json").stdout)["source"].endswith("\\udcff.json")
    assert run("import", path, "-o", tmp_path / "text.ifm").returncode == 0
    assert run("kernels", tmp_path / "text.ifm").returncode == 0
    (tmp_path / "text.ifm").rename(Path(os.fsdecode(path + b".ifm")))
    calls: list[list[Word]] = [
        ["kernels", path + b"x"],
        ["kernels", path + b".ifm"],
        ["import", path, "-o", path + b".new.ifm"],
    ]
    for refused in calls:
        done = run(*refused)
        assert (done.returncode, done.stdout) == (3, b"")


def test_json_of_every_command_is_one_document(
    trace_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = str(tmp_path / "trace.ifm")
    for words in (
        ["formats"],
        ["kernels", str(trace_file)],
        ["summary", str(trace_file)],
        ["import", str(trace_file), "-o", store],
        ["summary", store],
        ["kernels", store],
    ):
        cli.main([*words, "--json"], standalone_mode=False)
        out, err = capsys.readouterr()
        assert err == ""
        json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def test_losses_go_beside_the_data(trace_file: Path) -> None:
    done = run("summary", trace_file)
    assert b"warning: 1 unknown_category [quantum]" in done.stdout
    done = run("import", trace_file, "-o", f"{trace_file}.ifm")
    assert b"warning: 1 unknown_category [quantum]" in done.stderr


def test_hostile_names_drive_no_terminal_from_stderr(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(
        '{"traceEvents": [{"ph": "X", "cat": "a\\u001b[2J", "name": "b", "ts": 1, "dur": 1, "pid": 1, "tid": 1}]}'
    )
    assert b"\x1b" not in run("import", path, "-o", tmp_path / "a.ifm").stderr
    path.write_bytes(b'{"\x1b[2J": 1, "\x1b]0;title\x07": 2}')
    done = run("kernels", path, "--format", "kineto")
    assert (done.returncode, b"\x1b" in done.stderr) == (3, False)


@pytest.mark.parametrize(
    ("flags", "limits"),
    [([], Limits()), (["--no-limits"], Limits(None, event_bytes=None, held_bytes=None, lines=None))],
)
def test_limits_hold_unless_they_are_lifted(
    flags: list[str], limits: Limits, trace_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def refuse(path: str, *_: object, **options: object) -> None:
        asked.append((path, options["limits"]))
        raise InputError("refused")

    monkeypatch.setattr("inferometer.formats.opening.open_trace", refuse)
    with pytest.raises(InputError, match="refused"):
        cli.main(["summary", str(trace_file), *flags], standalone_mode=False)
    assert asked == [(str(trace_file), limits)]


def test_standard_input_can_be_imported(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "inferometer", "import", "-", "-o", str(tmp_path / "a.ifm")]
    subprocess.run(command, input=FILE, capture_output=True, check=True, timeout=60)
    trace = inferometer.open(tmp_path / "a.ifm")
    assert (trace.facts.source, rows(trace, "launches", "kernel")) == ("stdin", ["gemm μ<T>"])


@needs_named_pipes
def test_an_interrupt_is_no_traceback(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with (
        subprocess.Popen(
            [sys.executable, "-m", "inferometer", "kernels", str(pipe)], stderr=subprocess.PIPE
        ) as process,
        pipe.open("wb", buffering=0) as writer,
    ):
        writer.write(b'{"traceEvents": [')
        process.send_signal(2)
        assert process.stderr
        assert process.stderr.read().strip() == b"interrupted"
    assert process.returncode == 130
