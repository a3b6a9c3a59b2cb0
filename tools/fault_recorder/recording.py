"""Records a pair of runs: the program under `inferometer record`, and next to the second one what disturbs it.

What else the machine does is measured, too: the processor time of everything but the program, its recorder and its
fault. Pairs in whose runs that differs much hold another fault than theirs, and are recorded again.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fault_recorder.faults import FAULTS, LOOPS_A_CORE, PERIOD_US, QUOTA_US, SPIN, STOPPED_S, Fault
from fault_recorder.program import PAGES_BYTES, REPLY_BYTES, Program

RUNS = ("normal", "fault")
UNEVEN_CORES = 0.25
TRIES = 2
_GROUPS = Path("/sys/fs/cgroup")
_TICKS_A_S = os.sysconf("SC_CLK_TCK")
_ENDLESS_S = 3_600.0
_BUSY = (0, 1, 2, 5, 6)  # user, nice, system, irq, softirq of the first line of /proc/stat


def record_pair(name: str, folder: Path, seconds: float) -> Path:
    """Record a normal run and one with the fault. Returns their folder, where the truth is written, too."""
    pair = next(each for i in range(10_000) if not (each := folder / f"{name}-{i}").exists())
    for attempt in range(1, TRIES + 1):
        pair.mkdir(parents=True)
        others = {run: _record(pair, name, run, seconds) for run in RUNS}
        if abs(others["normal"] - others["fault"]) <= UNEVEN_CORES or attempt == TRIES:
            break
        shutil.rmtree(pair)
    truth = {"fault": name, **asdict(FAULTS[name]), "cores": os.cpu_count(), "others_cores": others, "tries": attempt}
    (pair / "truth.json").write_text(json.dumps(truth, indent=1) + "\n")
    return pair


def _record(pair: Path, name: str, run: str, seconds: float) -> float:
    """Record one run. Returns how many cores other programs used meanwhile."""
    fault, is_faulty = FAULTS[name], run == "fault"
    program = Program(**{**fault.program, **(fault.change if is_faulty else {})})
    with tempfile.TemporaryDirectory(dir=pair) as folder, _others() as others, contextlib.ExitStack() as stack:
        place = Path(folder)
        prepare(program, place, stack)
        words = recorder_words(program, pair / f"{run}.ifm", seconds, place)
        if name == "cpu_quota":
            group = stack.enter_context(_control_group(QUOTA_US if is_faulty else None))
            words = ["sh", "-c", 'echo $$ > "$0"; exec "$@"', str(group / "cgroup.procs"), *words]
        if is_faulty:
            disturb(name, fault, program, place, stack)
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{pair}, {run}: the recording ended with {done.returncode}\n{done.stderr}")
    return others["cores"]


def recorder_words(program: Program, store: Path, seconds: float, place: Path) -> list[str]:
    """The command that records the program."""
    own = [sys.executable, str(Path(__file__).parents[1] / "record_faults.py"), "work", "--seconds", str(seconds)]
    own += ["--place", str(place), "--program", json.dumps(asdict(program))]
    return [sys.executable, "-m", "inferometer", "record", "-o", str(store), "--", *own]


def prepare(program: Program, place: Path, stack: contextlib.ExitStack) -> None:
    """What the program needs in both runs: a file that it reads, a service that it asks."""
    if program.reads:
        with (place / "pages").open("wb") as file:
            for _ in range(PAGES_BYTES >> 20):
                file.write(os.urandom(1 << 20))
            os.fsync(file.fileno())
    if program.asks:
        service = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        (place / "port").write_text(str(service.getsockname()[1]))
        stack.enter_context(_answering(service))


def disturb(name: str, fault: Fault, program: Program, place: Path, stack: contextlib.ExitStack) -> None:
    """Starts the fault; it ends with `stack`."""
    if name == "cpu_stop":
        stack.enter_context(_stopping(place / "id"))
    if name == "second_recorder":
        (place / "other").mkdir()
        stack.enter_context(_process(recorder_words(program, place / "other.ifm", _ENDLESS_S, place / "other")))
    if not fault.parallel:
        return
    cores = os.cpu_count() or 1
    copies = {"one": 1, "other cores": max(cores - 1, 1), "each core": cores}[fault.copies]
    copies *= LOOPS_A_CORE if fault.parallel == SPIN and fault.copies == "each core" else 1
    words = ["nice", "-n", str(fault.nice)] if fault.nice else []
    words += ["taskset", "-c", str(program.core)] if program.core is not None else []
    file = place / ("pages" if program.reads else "written")
    for _ in range(copies):
        stack.enter_context(_process([*words, sys.executable, "-c", fault.parallel, str(file)]))


@contextlib.contextmanager
def _others() -> Iterator[dict[str, float]]:
    """On leaving, `cores`: the processor time of all but our children over the time that passed."""
    found: dict[str, float] = {}
    began, busy, own = time.monotonic(), _busy_s(), _children_s()
    yield found
    passed = time.monotonic() - began
    found["cores"] = round(max(_busy_s() - busy - (_children_s() - own), 0.0) / passed, 3)


def _busy_s() -> float:
    values = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    return sum(int(values[at]) for at in _BUSY) / _TICKS_A_S


def _children_s() -> float:
    """Processor time of this process and of the children that it has waited for."""
    return sum(
        used.ru_utime + used.ru_stime
        for used in map(resource.getrusage, (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF))
    )


@contextlib.contextmanager
def _process(words: Sequence[str]) -> Iterator[None]:
    """A program in parallel with the block, and what it starts."""
    process = subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextlib.contextmanager
def _control_group(quota_us: int | None) -> Iterator[Path]:
    """A new control group with that quota in each period; without one where it is None."""
    is_first = (_GROUPS / "cpu" / "cpu.cfs_quota_us").exists()
    group = (_GROUPS / "cpu" if is_first else _GROUPS) / f"record_faults_{os.getpid()}"
    try:
        group.mkdir()
        if is_first:
            (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (group / "cpu.cfs_quota_us").write_text(str(quota_us or -1))
        else:
            (group / "cpu.max").write_text(f"{quota_us or 'max'} {PERIOD_US}")
    except OSError as error:
        raise SystemExit(f"{group}: no control group with a quota can be made here ({error}); try cpu_stop") from error
    try:
        yield group
    finally:
        group.rmdir()


@contextlib.contextmanager
def _stopping(number: Path) -> Iterator[None]:
    """Stops and continues the program whose number comes to stand in `number`."""

    def stop_often(ended: threading.Event) -> None:
        while not (number.exists() and number.read_text()):
            if ended.wait(STOPPED_S):
                return
        process, is_stopped = int(number.read_text()), False
        with contextlib.suppress(ProcessLookupError):
            while not ended.wait(STOPPED_S) or is_stopped:
                is_stopped = not is_stopped
                os.kill(process, signal.SIGSTOP if is_stopped else signal.SIGCONT)

    with _thread(stop_often):
        yield


@contextlib.contextmanager
def _answering(service: socket.socket) -> Iterator[None]:
    """Answers each byte of whoever connects with `REPLY_BYTES`."""
    reply = bytes(REPLY_BYTES)

    def answer(ended: threading.Event) -> None:
        service.settimeout(0.1)
        while not ended.is_set():
            with contextlib.suppress(TimeoutError, ConnectionError):
                asked, _ = service.accept()
                asked.settimeout(None)
                with asked:
                    while asked.recv(1):
                        asked.sendall(reply)

    with _thread(answer):
        yield


@contextlib.contextmanager
def _thread(work: Any) -> Iterator[None]:
    """Runs `work(ended)` in parallel with the block; `ended` is set behind it."""
    ended = threading.Event()
    thread = threading.Thread(target=work, args=(ended,))
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
