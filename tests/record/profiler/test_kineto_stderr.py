import os
from contextlib import suppress

import pytest

from inferometer.record.profiler.kineto_stderr import StderrLines, kept_quiet

_START = b"USDT:2026-01-02 03:04:05 24469:24473 SyncActivityProfilerHandler.cpp:52] profiler_start\n"
_DROPPED = b"WARNING:2026-01-02 03:04:%02d 24469:24473 CuptiActivityApi.cpp:270] Dropped 12 activity records\n"
_TORCH = b"[W0102 03:04:05.424660745 profiler_kineto.cpp:942] disableProfiler called\n"
_OTHER_TORCH = b"[W0102 03:04:05.424660745 Module.cpp:12] something of the program's\n"
_THREAD = b"ERROR: External init callback must run in same thread as registerClient (-2079938880 != -1480864896)\n"


def test_kinetos_lines_are_counted_and_others_go_on() -> None:
    said = StderrLines()
    text = b"".join(
        [_START, b"mine\n", _DROPPED % 5, _DROPPED % 6, _TORCH, _OTHER_TORCH, _THREAD, b"ERROR: mine, too\n"]
    )
    assert said.take(text) == b"mine\n" + _OTHER_TORCH + b"ERROR: mine, too\n"
    assert said.lines == {
        "CuptiActivityApi.cpp:270] Dropped 12 activity records": 2,
        "profiler_kineto.cpp:942] disableProfiler called": 1,
    }


def test_standard_error_is_as_before(capfd: pytest.CaptureFixture[str]) -> None:
    said = StderrLines()
    with suppress(ValueError), kept_quiet(said):
        os.write(2, _START + b"mine\n")
        raise ValueError("within")
    os.write(2, b"later\n")
    assert capfd.readouterr().err == "mine\nlater\n"
