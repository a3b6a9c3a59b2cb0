"""Records one run in which a fault comes and goes: what `inferometer watch` should notice, date, and see end."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from fault_recorder.faults import FAULTS
from fault_recorder.program import Program
from fault_recorder.recording import disturb, prepare, recorder_words

_PATIENCE_S = 300.0


def record_toggled(name: str, folder: Path, *, times: int, on_s: float, off_s: float) -> Path:
    """Record a run with the fault on for `on_s`, `times` times, and off for `off_s` before, between and after.

    Returns the folder with `run.ifm` and `truth.json`, whose `slow_ns` are begins and ends on the recording's clock.
    """
    from inferometer.trace.store import read_store

    fault = FAULTS[name]
    if fault.change or not (fault.parallel or name == "cpu_stop"):
        raise SystemExit(f"{name}: expected a fault that can be started and ended while a program runs")
    folder = next(each for i in range(10_000) if not (each := folder / f"{name}-toggled-{i}").exists())
    folder.mkdir(parents=True)
    program, store, slow = Program(**fault.program), folder / "run.ifm", []
    with tempfile.TemporaryDirectory(dir=folder) as text, contextlib.ExitStack() as stack:
        place = Path(text)
        prepare(program, place, stack)
        words = recorder_words(program, store, times * (on_s + off_s) + off_s, place)
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        _wait_for(place / "id", process)
        for _ in range(times):
            time.sleep(off_s)
            with contextlib.ExitStack() as faulty:
                begin_ns = time.time_ns()
                disturb(name, fault, program, place, faulty)
                time.sleep(on_s)
            slow.append((begin_ns, time.time_ns()))
        _, said = process.communicate()
    if process.returncode:
        raise SystemExit(f"{store}: the recording ended with {process.returncode}\n{said}")
    base_ns = read_store(store, ()).facts.clock_base_ns or 0
    slow_ns = [[at - base_ns for at in both] for both in slow]
    truth = {"fault": name, **asdict(fault), "cores": os.cpu_count(), "slow_ns": slow_ns}
    (folder / "truth.json").write_text(json.dumps(truth, indent=1) + "\n")
    return folder


def _wait_for(file: Path, process: subprocess.Popen[str]) -> None:
    """Until the program has begun."""
    end = time.monotonic() + _PATIENCE_S
    while not (file.exists() and file.read_text()):
        if process.poll() is not None or time.monotonic() > end:
            raise SystemExit(f"the program did not begin: {process.communicate()[1] if process.poll() else ''}")
        time.sleep(0.05)
