"""A user's program under `inferometer record` behaves as it does alone, and leaves a store however it ends.

Programs without torch: what is recorded of them are counters. A torch of three lines stands in where the hook matters.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from textwrap import dedent

import pytest

import inferometer

COMMAND = [sys.executable, "-m", "inferometer", "record"]
LIMIT_S = 60


def record(folder: Path, *words: str | Path, stdin: str = "", **added: str) -> subprocess.CompletedProcess[str]:
    """`inferometer record WORDS`, run in `folder`."""
    return subprocess.run(
        [*COMMAND, *map(str, words)],
        cwd=folder,
        input=stdin,
        check=False,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        env={**os.environ, **added},
    )


def python(code: str, *words: str) -> list[str]:
    """A program as the words of a command."""
    return ["--", sys.executable, "-c", dedent(code), *words]


def begin(folder: Path, code: str) -> subprocess.Popen[str]:
    """`inferometer record` of a program that prints a line when it is ready; in a process group of its own."""
    process = subprocess.Popen(
        [*COMMAND, *python(code)],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def rows(store: Path) -> dict[str, int]:
    with inferometer.open(str(store)) as trace:
        return trace.count_rows()


def test_a_program_gets_its_words_its_input_and_its_exit_code(tmp_path: Path) -> None:
    script = tmp_path / "a script.py"
    script.write_text("import sys; print(sys.argv[1:], sys.stdin.read(), __name__); sys.stderr.write('e'); sys.exit(7)")
    ran = record(tmp_path, "--", sys.executable, script, "a b", "ü", "--json", "-o", "x", stdin="typed")
    assert (ran.returncode, ran.stdout) == (7, "['a b', 'ü', '--json', '-o', 'x'] typed __main__\n")
    assert ran.stderr.startswith("e")
    assert "run.ifm: " in ran.stderr
    assert "Next: inferometer summary run.ifm" in ran.stderr
    assert "never imported torch" in ran.stderr
    assert rows(tmp_path / "run.ifm")["counters"] > 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a script.py", "run.ifm"]


def test_the_program_sees_no_trace_of_the_hook_but_in_its_environment(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text("import sys; sys.own_hook = True\n")
    code = """
        import sys
        print(sys.own_hook, sys.modules["sitecustomize"].__file__, "inferometer" in sys.modules)
        print([path for path in sys.path if "hook" in path], sys.path[1])
    """
    ran = record(tmp_path, *python(code), PYTHONPATH=str(tmp_path / "own"))
    assert ran.stdout.splitlines() == [
        f"True {tmp_path / 'own' / 'sitecustomize.py'} False",
        f"[] {tmp_path / 'own'}",
    ]


def test_a_module_a_shell_and_a_python_that_ignores_the_hook_run_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__main__.py").write_text("import sys; print(sys.argv[1:]); sys.exit(3)")
    ran = record(tmp_path, "-o", "1.ifm", "--", sys.executable, "-m", "package", "x")
    assert (ran.returncode, ran.stdout) == (3, "['x']\n")
    for words in (["sh", "-c", "cat; exit 5"], [sys.executable, "-I", "-c", "print('in', end=''); exit(5)"]):
        ran = record(tmp_path, "--force", "--", *words, stdin="in")
        assert (ran.returncode, ran.stdout) == (5, "in")
        assert "not Python, or a Python that ignores PYTHONPATH" in ran.stderr


@pytest.mark.parametrize(
    ("code", "want"),
    [
        ("pass", 0),
        ("raise ValueError('of the program')", 1),
        ("import os; os._exit(9)", 9),
        ("import os; os.kill(os.getpid(), 9)", 128 + 9),
        ("import os; os.kill(os.getpid(), 11)", 128 + 11),
        ("import os; os.chdir('/')", 0),
        ("import os, sys; os.execv(sys.executable, [sys.executable, '-c', 'exit(4)'])", 4),
    ],
)
def test_however_a_program_ends_its_code_is_ours_and_there_is_a_store(tmp_path: Path, code: str, want: int) -> None:
    ran = record(tmp_path, "--json", *python(code))
    assert ran.returncode == want
    told = json.loads(ran.stdout)  # a program that prints nothing: one line, ours
    assert (told["exit_code"], told["store"]) == (want, "run.ifm")
    assert told["rows"]["counters"] > 0
    assert ("ValueError: of the program" in ran.stderr) == ("ValueError" in code)
    with inferometer.open(str(tmp_path / "run.ifm")) as trace:
        assert (f"The program ended with exit code {want}." in trace.facts.notes) == (want != 0)
        assert trace.facts.recorded["finished"]


COUNTING = """
    import signal, time
    got = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, frame: got.append(number))
    print("ready", flush=True)
    while not got:
        time.sleep(0.01)
    time.sleep(0.1)
    print(got, flush=True)
    exit(6)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_sent_to_us_reaches_the_program_once(tmp_path: Path, number: signal.Signals) -> None:
    process = begin(tmp_path, COUNTING)
    process.send_signal(number)
    out, err = process.communicate(timeout=LIMIT_S)
    assert (process.returncode, out) == (6, f"[{int(number)}]\n")
    assert "run.ifm: " in err


def test_ctrl_c_at_a_terminal_reaches_the_program_once(tmp_path: Path) -> None:
    """A Ctrl-C as the terminal's driver sends it: to the group in the foreground, from the kernel."""
    pty = pytest.importorskip("pty", reason="no terminals here")
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.execv(sys.executable, [*COMMAND, *python(COUNTING)])
    said = b""
    while b"ready" not in said:
        said += os.read(terminal, 1000)
    os.write(terminal, b"\x03")
    try:
        while chunk := os.read(terminal, 1000):
            said += chunk
    except OSError:  # the other end is closed
        pass
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 6
    assert b"[2]" in said
    os.close(terminal)


def test_a_program_killed_by_a_signal_sent_to_us_tells_so_as_shells_do(tmp_path: Path) -> None:
    process = begin(tmp_path, "import time; print('ready', flush=True); time.sleep(60)")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=LIMIT_S)
    assert process.returncode == 128 + signal.SIGTERM
    assert rows(tmp_path / "run.ifm")["counters"] > 0


def test_when_we_are_killed_the_parts_can_be_read_and_joined(tmp_path: Path) -> None:
    process = begin(tmp_path, "import time; print('ready', flush=True); time.sleep(60)")
    parts = tmp_path / "run.ifm.parts"
    until = time.monotonic() + LIMIT_S
    while not any("counters-" in facts.read_text() for facts in parts.glob("*.ifm/facts.json")):
        assert time.monotonic() < until  # a file has no rows before the facts name it
        time.sleep(0.05)
    process.kill()
    process.wait()
    os.killpg(process.pid, signal.SIGKILL)  # the program itself, which lived on
    process.communicate()
    (part,) = parts.glob("*.ifm")
    assert rows(part)["counters"] > 0

    ran = record(tmp_path, "--", sys.executable, "-c", "pass")
    assert ran.returncode == 3
    assert "inferometer record --join run.ifm.parts -o OTHER.ifm" in ran.stderr
    ran = record(tmp_path, "--join", "run.ifm.parts", "-o", "saved.ifm")
    assert ran.returncode == 0, ran.stderr
    assert rows(tmp_path / "saved.ifm") == rows(part)
    with inferometer.open(str(tmp_path / "saved.ifm")) as trace:
        assert not trace.facts.recorded["finished"]


def test_what_cant_be_run_or_kept_is_refused_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text("open('ran', 'w')")
    (tmp_path / "bad").write_text("no program")
    (tmp_path / "bad").chmod(0o755)
    (tmp_path / "there.ifm").mkdir()
    (tmp_path / "a.ifm.parts").mkdir()
    (tmp_path / "a.ifm.parts" / "thesis.tex").touch()
    for words, code, said in (
        ([], 2, "expected a COMMAND after --"),
        (["--join", "x", "--", "true"], 2, "found COMMAND and --join"),
        (["--steps", "3", "--", "true"], 2, "--steps needs --server"),
        (["--", "no-such-program"], 3, "no-such-program: no such program"),
        (["--", "./plain.py"], 3, "inferometer record -- python ./plain.py"),
        (["--", "./bad"], 3, "bad: can't be run: Exec format error"),
        (["-o", "there.ifm", "--", "true"], 3, "there.ifm: already exists"),
        (["-o", "a.ifm", "--", "true"], 3, "a.ifm.parts: already exists"),
        (["-o", "a.ifm", "--force", "--", "true"], 3, "a.ifm.parts: holds 'thesis.tex', which no recording wrote"),
        (["-o", "there.ifm", "--force", "--", "true"], 3, "is not a store"),
        (["-o", "no/x.ifm", "--", "true"], 3, "no such folder"),
        (["--join", "none.ifm.parts"], 3, "found none"),
    ):
        ran = record(tmp_path, *words)
        assert (ran.returncode, ran.stdout) == (code, ""), ran.stderr
        assert said in ran.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.ifm.parts", "bad", "plain.py", "there.ifm"]


def test_a_recording_of_some_seconds_ends_before_the_program(tmp_path: Path) -> None:
    ran = record(tmp_path, "--seconds", "0.3", *python("import time; time.sleep(1); print('done')"))
    assert (ran.returncode, ran.stdout) == (0, "done\n")
    with inferometer.open(str(tmp_path / "run.ifm")) as trace:
        window = trace.window()
    assert window is not None
    assert window[1] < 0.7e9


def test_secrets_in_the_command_arent_kept(tmp_path: Path) -> None:
    record(tmp_path, *python("pass", "--api-key", "sesame-1", "--token=sesame-2", "--hub", "hf_" + "a" * 30))
    text = (tmp_path / "run.ifm" / "facts.json").read_text()
    assert "Command: " in text
    assert "sesame" not in text
    assert "hf_a" not in text


def test_what_the_program_puts_into_the_folder_of_parts_is_no_part(tmp_path: Path) -> None:
    """A file, a folder and a store of names that are no process's, a pipe and a link in the place of notes."""
    code = """
        import glob, os
        (parts,) = glob.glob("*.parts")
        open(parts + "/notanumber.ifm", "w").write("x")
        os.mkdir(parts + "/x.ifm")
        os.mkfifo(parts + "/1.python.txt")
        os.symlink("secret", parts + "/2.python.txt")
    """
    (tmp_path / "secret").write_text("a secret")
    done = record(tmp_path, *python(code))
    assert done.returncode == 0
    assert "a secret" not in done.stderr
    assert rows(tmp_path / "run.ifm")["counters"]
    assert sorted(path.name for path in (tmp_path / "run.ifm.parts").iterdir()) == ["notanumber.ifm", "x.ifm"]


def test_a_full_disk_leaves_the_program_its_exit_code(tmp_path: Path) -> None:
    """Files of 1 kB at most stand for the full disk."""
    words = ["sh", "-c", 'ulimit -f 1; exec "$@"', "sh", *COMMAND, *python("raise SystemExit(7)")]
    done = subprocess.run(words, cwd=tmp_path, check=False, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 7
    assert "no store can be made there: File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert "RuntimeWarning" not in done.stderr


def test_a_full_disk_is_told_of_a_store_and_of_exported_tables(tmp_path: Path) -> None:
    sample = Path(__file__).parents[2] / "samples" / "decode.json.gz"
    for words, said in (
        (["import", sample, "-o", "run.ifm"], "run.ifm: no store can be made there: File too large"),
        (["export", sample, "--to", "parquet", "-o", "tables"], "tables: can't be written: File too large"),
    ):
        command = ["sh", "-c", 'ulimit -f 4; exec "$@"', "sh", sys.executable, "-m", "inferometer", *map(str, words)]
        done = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True, timeout=LIMIT_S)
        assert done.returncode == 3
        assert said in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_disk_that_is_full_at_the_end_says_how_to_join_what_was_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import errno

    from inferometer.record import program
    from inferometer.record.journal.journal import Journal
    from inferometer.record.workers import parts as workers

    folder, store = tmp_path / "my run.ifm.parts", tmp_path / "my run.ifm"
    folder.mkdir()
    with Journal(folder / "1.ifm") as journal:
        journal.add("counters", 1, {"metric": "x", "time_ns": [1], "value": [1.0], "unit": "1"})

    def full(*args: object, **options: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(workers, "join_parts", full)
    done = program._joined(store, folder, program.Launched(7, None, 1.0), force=False)
    assert (done.code, done.store) == (7, None)
    assert "The recording couldn't be kept: [Errno 28] No space left on device" in done.remarks
    assert done.remarks[-1] == (
        f"What was recorded is in {folder}. Where there is room: inferometer record --join '{folder}' -o '{store}'"
    )
    monkeypatch.undo()
    assert program.join(folder, store).rows["counters"] == 1


def test_rows_that_a_full_disk_took_are_told_with_the_reason(tmp_path: Path) -> None:
    from inferometer.record import program
    from inferometer.record.journal.journal import Journal

    folder = tmp_path / "run.ifm.parts"
    folder.mkdir()
    with Journal(folder / "1.ifm") as journal:
        journal.add("counters", 1, {"metric": "x", "time_ns": [1], "value": [1.0], "unit": "1"})
        journal.lose("rows_not_written", 1_500, example="counters: No space left on device")
    done = program._joined(tmp_path / "run.ifm", folder, program.Launched(0, None, 1.0), force=False)
    assert done.store is not None
    assert "1,500 rows couldn't be written: counters: No space left on device. The rest is in the store." in [
        remark.replace("1.ifm: ", "") for remark in done.remarks
    ]
