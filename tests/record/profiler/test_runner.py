"""The order in which windows of a profile end, are written and begin: on a device its times would be lost else."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.record.sinks import MemorySink

from inferometer.record.profiler.account import Account
from inferometer.record.profiler.runner import Runner
from inferometer.record.profiler.window_rows import WindowRows
from inferometer.record.profiler.window_tables import Joining
from inferometer.record.profiler.windows import Windows

pytest.importorskip("torch", reason="torch isn't installed")


class Profile:
    """A session that says what is asked of it."""

    def __init__(self, *, has_device: bool) -> None:
        self.has_device, self.said = has_device, list[str]()

    def is_taken(self) -> bool:
        return False

    def begin(self) -> None:
        self.said.append("begin")

    def turn(self) -> Any:
        self.said.append("turn")
        return self

    def end(self) -> Any:
        self.said.append("end")
        return self

    def save(self, path: str) -> None:
        self.said.append("save")
        Path(path).write_text("{}")

    def settle(self) -> None:
        self.said.append("settle")

    def mark(self, name: str, now: Callable[[], int]) -> tuple[int, int, int, int]:
        return now(), now(), now(), now()


def run(profile: Profile, *, capturing: bool = False) -> list[str]:
    """What a cut of the first window asks for."""
    sink = MemorySink()
    account = Account(sink, 1, 1.0)
    runner = Runner(profile, sink, account, Joining(1, "here", 0), apart=False)  # type: ignore[arg-type]
    runner.begin()
    profile.said.clear()
    runner._captures.open = int(capturing)
    runner.do("cut")
    said = list(profile.said)
    runner._captures.open = 0
    runner._windows.close()
    return said


def test_a_window_with_a_device_is_written_before_the_next_begins() -> None:
    assert run(Profile(has_device=True)) == ["settle", "end", "save", "begin"]


def test_without_a_device_the_next_begins_first_so_that_no_op_is_lost() -> None:
    assert run(Profile(has_device=False)) == ["turn", "save"]


@pytest.mark.parametrize("has_device", [True, False])
def test_while_a_graph_is_captured_no_window_ends(has_device: bool) -> None:
    assert run(Profile(has_device=has_device), capturing=True) == []


@pytest.mark.parametrize(
    ("device", "durations", "is_lost"),
    [("gpu:0", [0, 0], True), ("gpu:0", [0, 7], False), ("cpu", [0, 0], False)],
)
def test_a_window_whose_device_work_has_no_times_is_lost_and_said(
    monkeypatch: pytest.MonkeyPatch, device: str, durations: list[int], is_lost: bool
) -> None:
    from inferometer.record.profiler import windows as module
    from inferometer.record.profiler.clock_marks import Alignment
    from inferometer.record.profiler.window_tables import Joined

    launches = pl.DataFrame({"device": [device] * 2, "start_ns": [1, 2], "dur_ns": durations})
    joined = Joined({"launches": launches}, Alignment(0, 0, 0.0, 1, "marks"))
    monkeypatch.setattr(module, "join_window", lambda *args, **options: joined)
    sink = MemorySink()
    account = Account(sink, 1, 1.0)
    windows = Windows(sink, Joining(1, "here", 0), account, apart=False)
    try:
        windows._reader.read = lambda path: WindowRows({})  # type: ignore[method-assign]
        windows._write(module.Window(1, Path("w.json"), []))
    finally:
        windows.close()
    assert account.lost_windows == is_lost
    assert account.why_lost == ("PyTorch gave its device work no times" if is_lost else None)
