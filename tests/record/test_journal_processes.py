"""The journal of a process that is killed, forks, or ends without closing it."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import inferometer
from inferometer.trace.trace import Trace

FLUSH_S = 0.05
SLACK_S = 1.5  # other processes may keep the flushing thread waiting

# Two threads write numbered rows until they have enough; all of it is merged often, and closed.
WRITER = """
import sys, threading, time
from pathlib import Path
from inferometer.record.journal import parts
from inferometer.record.journal.journal import Journal

parts.MOST_SMALL = 2
path, flush_s, rows, at_once = Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
journal = Journal(path, flush_s=flush_s)
print("ready", flush=True)

def write(thread):
    for number in range(0, rows, at_once):
        numbers = range(number, number + at_once)
        columns = {"op": "a", "thread": thread, "start_ns": [journal.clock.now()] * at_once, "external_id": numbers}
        journal.add("ops", at_once, columns)
        if at_once == 1:
            time.sleep(0.0002)

threads = [threading.Thread(target=write, args=(thread,)) for thread in (1, 2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("closing", flush=True)
journal.close()
print("closed", flush=True)
"""


_STARTED: list[subprocess.Popen[str]] = []


@pytest.fixture(autouse=True)
def _end_processes() -> Iterator[None]:
    """Of a test that failed, too, with what they forked."""
    yield
    while _STARTED:
        process = _STARTED.pop()
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def started(script: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "error", "-c", script, *map(str, arguments)]
    _STARTED.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True))
    return _STARTED[-1]


def killed(process: subprocess.Popen[str]) -> int:
    """Kill it; when that was, ns since 1970."""
    at = time.time_ns()
    process.kill()
    process.communicate(timeout=30)
    return at


def wait_for(process: subprocess.Popen[str], word: str) -> None:
    assert process.stdout is not None
    assert process.stdout.readline().strip() == word


def numbers_by_thread(trace: Trace) -> dict[int, list[int]]:
    rows = trace.ops.select("thread", "external_id").collect().rows()
    return {thread: [number for each, number in rows if each == thread] for thread in (1, 2)}


@pytest.mark.parametrize("seed", range(12))
def test_a_kill_loses_no_more_than_what_waited(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "run.ifm"
    process = started(WRITER, path, FLUSH_S, 1_000_000, 1)
    wait_for(process, "ready")
    time.sleep(random.Random(seed).uniform(0, 0.8))
    end = killed(process)
    trace = inferometer.open(path)
    assert trace.losses.total("recording_ended_early") == 1
    for numbers in numbers_by_thread(trace).values():
        assert numbers == list(range(len(numbers)))
    assert trace.facts.clock_base_ns is not None
    last = max(trace.ops.collect()["start_ns"], default=0)
    assert end - trace.facts.clock_base_ns - last < (FLUSH_S + SLACK_S) * 1e9


@pytest.mark.parametrize("seed", range(8))
def test_a_kill_while_it_is_closed_loses_nothing_that_was_written(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "run.ifm"
    process = started(WRITER, path, 0.02, 300_000, 10_000)
    wait_for(process, "ready")
    wait_for(process, "closing")
    before = numbers_by_thread(inferometer.open(path))
    time.sleep(random.Random(seed).uniform(0, 0.15))
    killed(process)
    trace = inferometer.open(path)
    is_finished = trace.facts.recorded["finished"]
    assert trace.losses.total("recording_ended_early") == (0 if is_finished else 1)
    for thread, numbers in numbers_by_thread(trace).items():
        assert sorted(numbers) == list(range(len(numbers)))
        assert len(numbers) >= (300_000 if is_finished else len(before[thread]))


def test_the_end_of_the_program_closes_a_journal(tmp_path: Path) -> None:
    script = """
import sys
from pathlib import Path
from inferometer.record.journal.journal import Journal
Journal(Path(sys.argv[1])).add("ops", 1, {"op": "a", "thread": 1, "start_ns": [1], "dur_ns": 1, "external_id": [0]})
"""
    process = started(script, tmp_path / "run.ifm")
    process.communicate(timeout=30)
    assert process.returncode == 0
    trace = inferometer.open(tmp_path / "run.ifm")
    assert (numbers_by_thread(trace)[1], trace.facts.recorded) == ([0], {"finished": True})


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="files can't be limited here")
def test_files_that_may_not_grow_leave_a_readable_store(tmp_path: Path) -> None:
    script = """
import random, resource, sys
from pathlib import Path
from inferometer.record.journal.journal import Journal
reported = []
with Journal(Path(sys.argv[1]), flush_s=1e6, on_trouble=reported.append) as journal:
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
    for rows in (10, 100_000, 10):
        values = [random.random() for _ in range(rows)]
        journal.add("counters", rows, {"metric": "m", "time_ns": range(rows), "value": values})
        journal.flush()
print(len(reported), "File too large" in reported[0])
"""
    process = started(script, tmp_path / "run.ifm")
    assert process.communicate(timeout=30)[0].split() == ["1", "True"]
    trace = inferometer.open(tmp_path / "run.ifm")
    assert trace.count_rows()["counters"] == 20
    assert trace.losses.total("rows_not_written") == 100_000


FORKING = """
import os, sys, time
from pathlib import Path
from inferometer.record.journal.journal import Journal

def add(journal, number):
    journal.add("ops", 1, {"op": "a", "thread": 1, "start_ns": [number], "dur_ns": 1, "external_id": [number]})

path = Path(sys.argv[1])
parent = Journal(path, flush_s=0.05)
add(parent, 0)
parent.flush()  # so that Polars has threads, which the child then lacks
child = os.fork()
if child == 0:
    add(parent, 100)
    parent.lose("not_recorded")
    parent.flush()
    parent.close()
    own = Journal(path.with_name("child.ifm"), clock=parent.clock, flush_s=0.05)
    for number in range(5):
        add(own, number)
        time.sleep(0.03)
    if sys.argv[2] == "killed":
        time.sleep(60)
    grandchild = os.fork()
    if grandchild == 0:
        add(own, 100)
        own.close()
        os._exit(0)
    os.waitpid(grandchild, 0)
    own.close()
    os._exit(0)
add(parent, 1)
print(child, flush=True)
if sys.argv[2] != "killed":
    assert os.waitpid(child, 0)[1] == 0
parent.close()
print(parent.clock.base_ns, flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_writes_nothing_of_its_parent_but_its_own(tmp_path: Path) -> None:
    process = started(FORKING, tmp_path / "run.ifm", "ends")
    output = process.communicate(timeout=30)[0].split()
    assert process.returncode == 0
    parent, child = (inferometer.open(tmp_path / name) for name in ("run.ifm", "child.ifm"))
    assert (numbers_by_thread(parent)[1], list(parent.losses)) == ([0, 1], [])
    assert (numbers_by_thread(child)[1], list(child.losses)) == ([0, 1, 2, 3, 4], [])
    assert parent.facts.recorded == child.facts.recorded == {"finished": True}
    assert parent.facts.clock_base_ns == child.facts.clock_base_ns == int(output[1])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_that_is_killed_leaves_its_rows(tmp_path: Path) -> None:
    process = started(FORKING, tmp_path / "run.ifm", "killed")
    assert process.stdout is not None
    child = int(process.stdout.readline())
    until = time.monotonic() + 30
    while len(rows_of(tmp_path / "child.ifm")) < 5 and time.monotonic() < until:
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    process.communicate(timeout=30)
    assert rows_of(tmp_path / "child.ifm") == [0, 1, 2, 3, 4]
    assert inferometer.open(tmp_path / "child.ifm").losses.total("recording_ended_early") == 1


def rows_of(path: Path) -> list[int]:
    return numbers_by_thread(inferometer.open(path))[1] if path.exists() else []
