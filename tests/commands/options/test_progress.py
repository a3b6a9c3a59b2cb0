"""What long work says where there is no terminal: a line every few seconds, by a clock of ours."""

import io
import sys
import time
from collections.abc import Callable

import pytest

from inferometer.commands.options import progress

Tick = Callable[[float], None]


@pytest.fixture
def tick(monkeypatch: pytest.MonkeyPatch) -> Tick:
    """Lets seconds pass."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.delenv(progress.VARIABLE, raising=False)

    def pass_by(seconds: float) -> None:
        now[0] += seconds

    return pass_by


def test_work_is_told_every_five_seconds_in_a_pipe(tick: Tick, capsys: pytest.CaptureFixture[str]) -> None:
    with progress.working() as say:
        for step in range(13):
            say(f"step {step}")
            tick(1)
    assert capsys.readouterr().err.splitlines() == [
        "inferometer: making step 5, after 5 s",
        "inferometer: making step 10, after 10 s",
    ]


def test_a_file_is_told_with_its_part_where_its_size_is_known(tick: Tick, capsys: pytest.CaptureFixture[str]) -> None:
    with progress.reading("a\tb.json") as report:
        assert report is not None
        report(1_000_000, 4_000_000)
        tick(5)
        report(3_000_000, 4_000_000)
        tick(7)
        report(3_000_000, None)
    assert capsys.readouterr().err.splitlines() == [
        "inferometer: reading a b.json: 75% of 4.000 MB, after 5 s",
        "inferometer: reading a b.json: 3.000 MB, after 12 s",
    ]


def test_a_small_file_has_a_size_too(tick: Tick, capsys: pytest.CaptureFixture[str]) -> None:
    with progress.reading("small.json") as report:
        assert report is not None
        tick(5)
        report(160_000, 320_000)
        tick(5)
        report(320_000, 320_000)
    assert capsys.readouterr().err.splitlines() == [
        "inferometer: reading small.json: 50% of 320.000 kB, after 5 s",
        "inferometer: reading small.json: 100% of 320.000 kB, after 10 s",
    ]


def test_things_are_counted_with_their_rate_and_the_time_left(tick: Tick, capsys: pytest.CaptureFixture[str]) -> None:
    with progress.counting("traces") as say:
        tick(5)
        say(1, 40, 0, 80_000_000)
        tick(5)
        say(4, 40, 20_000_000, 80_000_000)
    assert capsys.readouterr().err.splitlines() == [
        "inferometer: traces 1 of 40, 0.0 MB/s, after 5 s",
        "inferometer: traces 4 of 40, 2.0 MB/s, 30 s left, after 10 s",
    ]


def test_nobody_is_told_who_doesnt_want_it(
    tick: Tick, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(progress.VARIABLE, "0")
    with progress.working() as say:
        tick(60)
        say("much")
    with progress.reading("a.json") as report:
        assert report is None
    assert capsys.readouterr().err == ""


def test_a_terminal_has_no_lines(tick: Tick, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress.reading("a.json") as report:
        tick(60)
        assert report is not None
        report(1, 2)
    assert "inferometer: reading" not in terminal.getvalue()
