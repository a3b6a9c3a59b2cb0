from tests.record.sinks import MemorySink

from inferometer.record.profiler.account import Account
from inferometer.record.profiler.clock_marks import Alignment
from inferometer.record.profiler.window_rows import About
from inferometer.record.profiler.window_tables import Joined
from inferometer.trace.facts import Device

_JOINED = Joined({}, Alignment(500, 0, 2e-6, 40, "marks"))


def test_notes_are_brought_up_to_date_and_not_repeated() -> None:
    sink = MemorySink()
    account = Account(sink, 10, 1.0)
    for i in range(2):
        account.ended(i * 1_000, 30_000_000, 990_000_000)
        account.gap(i * 1_000, 10_000_000)
        account.wrote(_JOINED)
    recorded, clock = sink.facts.notes
    assert recorded.startswith("torch.profiler: recorded 2 windows")
    assert "20.0 ms (1.00% of the time)" in recorded
    assert "60.0 ms (3.00%, at most 30.0 ms at once)" in recorded
    assert "+2.000 us a second" in clock
    assert "at most 0.04 us" in clock


def test_gaps_are_counters_of_their_time() -> None:
    sink = MemorySink()
    account = Account(sink, 10, 1.0)
    account.ended(5_000, 30, 990)
    account.gap(5_000, 10)
    rows = sink.rows("counters").select("metric", "process", "time_ns", "value", "unit").rows()
    assert rows == [("profiler_pause", 10, 5_000, 30.0, "ns"), ("profiler_gap", 10, 5_000, 10.0, "ns")]


def test_problems_lost_windows_and_warnings_are_said_once() -> None:
    sink = MemorySink()
    account = Account(sink, 10, 1.0)
    for _ in range(2):
        account.problem("no")
        account.lose_window("w.json: cut")
    account.stderr_lines.lines["CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"] = 3
    account.say()
    assert sink.facts.notes[:2] == ("torch.profiler: no", "torch.profiler lost 2 windows: w.json: cut")
    assert sink.facts.notes[2].startswith("Kineto warned 3 times")
    assert "administrators" in sink.facts.notes[2]
    assert len(sink.facts.notes) == 3


def test_devices_are_told_once() -> None:
    sink = MemorySink()
    account = Account(sink, 10, 1.0)
    for _ in range(2):
        account.found(About((Device("gpu:0", "H100"),), {"cupti_version": "24"}))
    assert sink.facts.devices == (Device("gpu:0", "H100"),)
    assert sink.facts.versions == {"cupti_version": "24"}
