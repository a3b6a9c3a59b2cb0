"""What a candidate's process may do to ours: nothing but fail, in time, and with nothing of it left."""

import os
import re
import subprocess
import sys
import uuid
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from inferometer.bench.answers import UnreadableAnswer, read_answer
from inferometer.bench.candidates import Candidate
from inferometer.bench.failures import CandidateFailed
from inferometer.bench.isolation import CandidateProcess, while_alive
from inferometer.bench.session import ProcessLimits, Session
from inferometer.bench.supervised import Supervised, last_lines
from inferometer.operators import require_operator

torch = pytest.importorskip("torch", reason="torch isn't installed")

ARGS = {"token_count": 4, "hidden_size": 64, "eps": 1e-6}
HEAD = (
    "import os, sys, time, shutil, signal, torch\n"
    "def pipes():\n"
    "    for n in range(3, 64):\n"
    "        try:\n"
    "            if os.readlink(f'/proc/self/fd/{n}').startswith('pipe'): yield n\n"
    "        except OSError: pass\n"
    "def rms_norm(x, weight, *, eps):\n"
)
CHANNEL = "it wrote to the channel of its replies"
HOSTILE = {
    "a reply without end": ("    while True: [os.write(n, b'x' * 65536) for n in pipes()]\n", CHANNEL),
    "a reply nested deeply": ("    [os.write(n, b'[' * 100_000 + b'\\n') for n in pipes()]\n", CHANNEL),
    "a reply of another kind": ("    [os.write(n, b'{\"error\": 3}\\n') for n in pipes()]\n", CHANNEL),
    "200 MB of output, then an end": (
        "    for _ in range(200): sys.stderr.write('y' * 1_000_000)\n    print('\\nlast', flush=True); os._exit(3)\n",
        "its process ended with 3: last",
    ),
    "its folder removed": ("    shutil.rmtree(os.path.dirname(os.getcwd()))\n    return x * 1\n", "does not exist"),
    "its working directory removed": ("    os.rmdir(os.getcwd())\n    return x * 1\n", "No such file or directory"),
    "its replies closed": (
        "    [os.close(n) for n in pipes()]\n    time.sleep(99)\n",
        "it closed the channel of its replies",
    ),
    "stopped by itself": ("    os.kill(os.getpid(), signal.SIGSTOP)\n", "took longer than 2 s"),
    "a crash": ("    os.kill(os.getpid(), signal.SIGSEGV)\n", "its process ended with -11"),
    "a pipe in place of its outputs": (
        "    os.mkfifo(os.path.dirname(os.getcwd()) + '/outputs')\n    return x * 1\n",
        "took longer than 2 s",
    ),
    "its supervisor killed": (
        "    os.kill(os.getppid(), signal.SIGKILL)\n    time.sleep(99)\n",
        "its process ended with -9",
    ),
}


def process_of(folder: Path, body: str, *, seconds: float = 60) -> CandidateProcess:
    path = folder / "candidate.py"
    path.write_text(HEAD + body)
    session = Session(
        require_operator("rms_norm"), Candidate("mine", path), limits=ProcessLimits(seconds=seconds, threads=1)
    )
    return CandidateProcess(session)


def ask(process: CandidateProcess) -> None:
    """Twice, since what it did may show later."""
    inputs = require_operator("rms_norm").inputs(**ARGS, seed=1)
    process.answer(inputs, ARGS)
    process.answer(inputs, ARGS)


@pytest.mark.parametrize("name", HOSTILE)
def test_it_fails_in_time_and_alone(name: str, tmp_path: Path) -> None:
    body, words = HOSTILE[name]
    seconds = 2 if "longer" in words else 60
    with (
        process_of(tmp_path, body, seconds=seconds) as process,
        pytest.raises(CandidateFailed, match=re.escape(words)) as failed,
    ):
        ask(process)
    assert len(str(failed.value)) < 300


def test_the_end_of_the_channel_is_no_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be there before the supervisor knows that the process has ended."""

    def explain(process: CandidateProcess) -> None:
        raise CandidateFailed("its process ended with 3")

    monkeypatch.setattr(CandidateProcess, "_explain_end", explain)
    for written, words in ((b"", "its process ended with 3"), (b"{}", CHANNEL)):
        reading, writing = os.pipe()
        os.write(writing, written)
        os.close(writing)
        process = object.__new__(CandidateProcess)
        process._received = bytearray()
        with os.fdopen(reading, "rb", buffering=0) as process._replies, pytest.raises(CandidateFailed, match=words):
            process._refuse_unasked()


def test_each_start_of_a_process_is_worth_a_shape_at_least() -> None:
    left, starts = [1, 2, 3], 0
    while left:
        starts += 1
        for _ in while_alive(left, lambda: False):
            pass
    assert starts == 3
    left = [1, 2, 3]
    assert list(while_alive(left, lambda: True)) == [1, 2, 3]
    assert left == []


def test_what_is_cut_short_is_still_to_be_done() -> None:
    left = [1, 2]
    assert next(while_alive(left, lambda: True)) == 1
    assert left == [1, 2]


def test_what_it_started_ends_with_it_whatever_its_session(tmp_path: Path) -> None:
    mark = uuid.uuid4().hex
    body = (
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        if os.fork() == 0:\n"
        f"            os.execv(sys.executable, [sys.executable, '-c', 'import time; time.sleep(60)', '{mark}'])\n"
        "        os._exit(0)\n"
        "    time.sleep(0.5)\n"
        "    return torch.rms_norm(x, x.shape[-1:], weight, eps)\n"
    )
    with process_of(tmp_path, body) as process:
        ask(process)
        assert len(running(mark)) == 2
    assert running(mark) == []


def running(mark: str) -> list[int]:
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark.encode() in each.read_bytes():
                found.append(int(each.parent.name))
        except OSError:
            continue
    return found


def test_the_end_of_a_command_is_reported_as_it_was(tmp_path: Path) -> None:
    log = tmp_path / "log"
    for body, status in (("print('x' * 100_000); raise SystemExit(7)", 7), ("import os; os.abort()", -6)):
        command = [sys.executable, "-c", body]
        assert Supervised(command, cwd=tmp_path, env={}, log=log).wait(30) == status
    assert log.stat().st_size <= 65_536


def test_a_command_that_goes_on_is_ended(tmp_path: Path) -> None:
    process = Supervised([sys.executable, "-c", "import time; time.sleep(60)"], cwd=tmp_path, env={})
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.1)
    assert not process.has_ended
    assert process.end() == -9
    assert process.has_ended


@pytest.mark.parametrize(
    ("text", "count", "lines"),
    [
        ("", 1, ""),
        ("a\n\nb\n", 1, "b"),
        ("a\nTraceback (most\nb\x1b[0m\n", 2, "a\nb\\x1b[0m"),
        ("a" * 9_000, 1, "a" * 4_000),
    ],
)
def test_only_the_end_of_a_log_is_read(text: str, count: int, lines: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(text)
    assert last_lines(log, count) == lines
    assert last_lines(tmp_path / "none") == ""


def test_an_answer_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "outputs"
    torch.save({"outputs": [torch.arange(3)], "inputs": {"x": torch.ones(1)}}, path)
    answer = read_answer(path, 1 << 20)
    assert [each.tolist() for each in answer.outputs] == [[0, 1, 2]]
    assert {name: each.tolist() for name, each in answer.inputs.items()} == {"x": [1.0]}


def save_odd(kind: str, path: Path) -> None:
    """A tensor that is no plain one: each takes little memory, and claims to have many numbers or no shape."""
    made = {
        "nested": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
        "sparse": lambda: torch.sparse_coo_tensor(torch.tensor([[0]]), torch.ones(1), (2**40,)),
        "meta": lambda: torch.empty(2**40, device="meta"),
    }
    torch.save({"outputs": [made[kind]()], "inputs": {}}, path)


@pytest.mark.filterwarnings("ignore:.*(nested|[Ss]parse):UserWarning")
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: None, "it wrote no outputs"),
        (lambda path: path.mkdir(), "expected its outputs in a file, found something else"),
        (
            lambda path: path.write_bytes(b"x" * 3_000_001),
            "expected outputs of at most 3,000,000 bytes, found 3,000,001",
        ),
        (lambda path: path.write_bytes(b"nothing"), "File is not a zip file"),
        (lambda path: zipped(path, "data/0", zipfile.ZIP_DEFLATED), "the file claims to hold more than it does"),
        (lambda path: zipped(path, "data.pkl", zipfile.ZIP_STORED), "the list of them is too long"),
        (lambda path: torch.save([torch.ones(1)], path), "its outputs can't be read back"),
        (lambda path: torch.save({"outputs": [], "inputs": 3}, path), "its outputs can't be read back"),
        (lambda path: torch.save({"outputs": "ab", "inputs": {}}, path), "expected tensors in its outputs, found str"),
        (
            lambda path: torch.save({"outputs": [], "inputs": {"x": 3}}, path),
            "expected tensors in its outputs, found int",
        ),
        *((partial(save_odd, kind), "expected plain tensors") for kind in ("nested", "sparse", "meta")),
    ],
    ids=[
        "none",
        "folder",
        "large",
        "other",
        "packed",
        "pickle",
        "list",
        "no inputs",
        "text",
        "number",
        "nested",
        "sparse",
        "meta",
    ],
)
def test_what_is_no_answer_says_why(make: Callable[[Path], Any], words: str, tmp_path: Path) -> None:
    path = tmp_path / "outputs"
    make(path)
    with pytest.raises(UnreadableAnswer, match=words):
        read_answer(path, 3_000_000)


def zipped(path: Path, name: str, how: int) -> None:
    with zipfile.ZipFile(path, "w", how) as archive:
        archive.writestr(name, b"0" * (2 << 20))
