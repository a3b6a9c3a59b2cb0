"""Processes that a recorded program starts: each records into a part of its own, `run.ifm.parts/PID.ifm`.

A forked child goes on with the interception that it inherited, but its journal is new (made at the first row), it has
no sampler of counters (the parent's sees it), and no profiler. Spawned processes and other Pythons begin by the hook
that their environment names (`plan`). What a worker wrote is there even when it is killed; one that leaves by
`os._exit`, as forked workers do, writes the rest first.
"""

import contextlib
import os
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from inferometer.record.parts import OPS, PROFILE
from inferometer.record.plan import Plan, read_plan
from inferometer.record.running import RUNNING, Running

_PATIENCE_S = 5  # how long a process that leaves by os._exit waits for its last rows to be written
_THREADS_WARNING = r"This process .* is multi-threaded, use of fork\(\) may lead to deadlocks in the child"
_HOOKED: list[Any] = []  # the real `os._exit`, once


@contextmanager
def watched(recording: Running) -> Iterator[None]:
    """While open, processes that start from this one record themselves. Raises `OSError`: no folder can be made."""
    folder, options = recording.parts, recording.options
    if folder is None or recording.clock is None:
        raise ValueError("the recording has no folder for parts, or no clock")
    folder.mkdir(exist_ok=True)
    _hook_once()
    clock, process = recording.clock, os.getpid()
    plan = Plan.of(str(folder.absolute()), clock, options)
    try:
        with _in_environment(plan), _quiet_about_threads():
            yield
    finally:
        if os.getpid() == process:  # a forked child drops what it inherited, and its folder is still wanted
            with contextlib.suppress(OSError):
                folder.rmdir()  # stays where there is a part


@contextmanager
def _in_environment(plan: Plan) -> Iterator[None]:
    """The variables that workers read; not where an enclosing recording has set them."""
    if read_plan(os.environ) is not None:
        yield
        return
    added = plan.environment(os.environ)
    before = {name: os.environ.get(name) for name in added}
    os.environ.update(added)
    try:
        yield
    finally:
        for name, value in before.items():
            if os.environ.get(name) != added[name]:
                continue  # the program set it meanwhile
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _quiet_about_threads() -> Iterator[None]:
    """Python 3.12 warns of a fork in a process with threads; the recording's own must not make a program warn."""
    if sys.version_info >= (3, 12):
        warnings.filterwarnings("ignore", _THREADS_WARNING, DeprecationWarning)
    yield


def _hook_once() -> None:
    if _HOOKED:
        return
    _HOOKED.append(os._exit)
    os.register_at_fork(after_in_child=_in_forked_child)
    os._exit = _exit_written  # type: ignore[assignment]


def _in_forked_child() -> None:
    """Nothing here may raise: the child is the user's."""
    if not RUNNING:
        return
    try:
        from inferometer.record.interception.steps import forget_marks

        PROFILE.abandon()
        forget_marks()
        for recording in list(RUNNING):
            recording.forked(recording.parts)
        OPS.begin_anew()
    except Exception:  # noqa: BLE001
        RUNNING.clear()
        OPS.abandon()


def _exit_written(status: int) -> None:
    """`os._exit`, after what was recorded is written; a process that is stuck leaves all the same."""
    if RUNNING:
        with contextlib.suppress(RuntimeError):  # no thread can be started any more
            writing = threading.Thread(target=_write_all, daemon=True)
            writing.start()
            writing.join(_PATIENCE_S)
    _HOOKED[0](status)


def _write_all() -> None:
    for recording in list(RUNNING):
        recording.flush()
