"""Work in a guarded process: what comes back, what breaks a limit, and that nothing of it stays."""

import gc
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from inferometer.errors import FormatError, InputError, Unavailable
from inferometer.guarded import Guarded, GuardedError

MODULE = """
import ctypes, os, sys, time
from inferometer.errors import FormatError, InputError, Unavailable

class Panic(BaseException): pass
def raising(error):
    def function(*args): raise error
    return function
def spin():
    while True: pass
def recurse(): return recurse()
def say(text):
    print(text); os.write(1, text.encode()); return text
SERVED = {
    "echo": lambda *args: args, "pid": os.getpid, "spin": spin, "recurse": recurse, "say": say,
    "memory": lambda: bytearray(8 << 30), "abort": os.abort, "leave": lambda: os._exit(7),
    "huge": lambda: "x" * (80 << 20), "fault": lambda: ctypes.string_at(8),
    "no_text": lambda: "\\ud800", "nothing_sendable": lambda: object(),
    "input": raising(InputError("a: b", hint="c")), "format": raising(FormatError("f")),
    "unavailable": raising(Unavailable("u")), "panic": raising(Panic("p")), "exit": raising(SystemExit(3)),
    "environment": lambda: sorted(os.environ),
}
"""


@pytest.fixture
def guarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Guarded:
    (tmp_path / "served_here.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    return Guarded("served_here", seconds=1.0)


def test_results_come_back_from_one_process(guarded: Guarded) -> None:
    assert not guarded.is_running
    assert guarded.call("echo", 1, "é", [b"x", None]) == [1, "é", [b"x", None]]
    assert guarded.call("echo", "x" * (1 << 20)) == ["x" * (1 << 20)]
    assert guarded.call("pid") == guarded.call("pid") != os.getpid()
    assert guarded.call("say", "no reply") == "no reply"


def test_errors_of_ours_are_raised_here(guarded: Guarded) -> None:
    with pytest.raises(InputError) as error:
        guarded.call("input")
    assert (type(error.value), error.value.message, error.value.hint) == (InputError, "a: b", "c")
    with pytest.raises(FormatError, match="f"):
        guarded.call("format")
    with pytest.raises(Unavailable, match="u"):
        guarded.call("unavailable")


@pytest.mark.parametrize(
    ("function", "says"),
    [
        ("spin", "longer than 1 s of the processor"),
        ("memory", "MemoryError"),
        ("recurse", "RecursionError"),
        ("panic", "Panic: p"),
        ("exit", "SystemExit"),
        ("abort", "SIGABRT"),
        ("fault", "SIGSEGV"),
        ("leave", "exit status 7"),
        ("huge", "more than 67,108,864"),
        ("no_text", "UnicodeEncodeError"),
        ("nothing_sendable", "TypeError"),
    ],
)
def test_what_goes_wrong_says_how_and_the_next_call_works(guarded: Guarded, function: str, says: str) -> None:
    with pytest.raises(GuardedError, match=says):
        guarded.call(function)
    assert guarded.call("echo", 2) == [2]


def test_no_variable_of_ours_that_it_doesnt_need_is_passed_on(
    guarded: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_TOKEN", "x")
    assert "A_TOKEN" not in guarded.call("environment")


def test_a_file_is_read_there_without_further_processes(guarded: Guarded) -> None:
    assert "INFEROMETER_PROCESSES" in guarded.call("environment")


def test_the_process_ends_with_what_uses_it(guarded: Guarded) -> None:
    other = Guarded("served_here")
    pids = [each.call("pid") for each in (guarded, other)]
    guarded.close()
    del other
    gc.collect()
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_ctrl_c_in_a_call_leaves_no_reply_for_the_next(guarded: Guarded) -> None:
    guarded.call("echo")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            guarded.call("spin")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    began = time.monotonic()
    assert guarded.call("echo", 3) == [3]
    assert time.monotonic() - began < 60


def test_threads_and_forks_get_their_own_replies(guarded: Guarded) -> None:
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda i: guarded.call("echo", i), range(200))) == [[i] for i in range(200)]
    pid = guarded.call("pid")
    child = os.fork()
    if child == 0:
        os._exit(0 if not guarded.is_running and guarded.call("pid") != pid else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert guarded.call("pid") == pid
