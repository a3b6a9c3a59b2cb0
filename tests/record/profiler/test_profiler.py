"""Real profiles of this machine's processor."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import polars as pl
import pytest
from tests.record.sinks import MemorySink

from inferometer.record.interception.open_ops import OpenOps
from inferometer.record.profiler.profiler import Profiling

torch: Any = pytest.importorskip("torch", reason="torch isn't installed")
_SHORT_S = 0.15


@pytest.fixture
def sink() -> MemorySink:
    return MemorySink()


@pytest.fixture
def make(sink: MemorySink) -> Iterator[Callable[..., Profiling]]:
    """Profilings that are stopped in the end; windows are read in this process, which is quicker to start."""
    made: list[Profiling] = []

    def make_one(**options: Any) -> Profiling:
        made.append(Profiling(sink, **{"window_s": _SHORT_S, "read_apart": False} | options))
        return made[-1]

    yield make_one
    for each in made:
        each.stop()


def _work(number: int) -> int:
    """So many products."""
    a = torch.ones(16, 16)
    for _ in range(number):
        torch.mm(a, a)
    return number


def _count(sink: MemorySink, op: str = "aten::mm") -> int:
    return sink.rows("ops").filter(pl.col("op") == op).height


def test_windows_follow_each_other_and_every_op_is_there_once(sink: MemorySink, make: Callable[..., Profiling]) -> None:
    profiling = make(window_s=0.05)
    profiling.start()
    started = sink.clock.now()
    done = 0
    for _ in range(6):
        done += _work(200)
        time.sleep(0.03)
        profiling.step()  # nothing runs while the window turns over: nothing is lost
    profiling.stop()
    ops = sink.rows("ops")
    assert _count(sink) == done
    assert profiling.account.windows >= 3
    assert ops["external_id"].is_unique().all()
    assert (ops["external_id"] // (1 << 40)).n_unique() >= 3
    starts = ops["start_ns"].to_list()
    assert min(starts) >= started - 10_000
    assert max(starts) <= sink.clock.now()
    assert ops["thread"].unique().to_list() == [threading.get_native_id()]
    assert ops["process"].unique().to_list() == [os.getpid()]


def test_ops_of_all_threads_are_recorded_or_in_a_gap(sink: MemorySink, make: Callable[..., Profiling]) -> None:
    """Without steps windows are cut anywhere: what is missing ran in a gap, which a counter tells."""
    calls: dict[int, list[tuple[int, int]]] = {}

    def loop(until: float) -> None:
        a, own = torch.ones(16, 16), calls.setdefault(threading.get_native_id(), [])
        while time.monotonic() < until:
            begun = sink.clock.now()
            torch.mm(a, a)
            own.append((begun, sink.clock.now()))
            time.sleep(0.0005)

    profiling = make()
    profiling.start()
    threads = [threading.Thread(target=loop, args=(time.monotonic() + 4 * _SHORT_S,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    profiling.stop()
    gaps = [(row[0], row[0] + int(row[1])) for row in _gaps(sink)]
    assert len(gaps) >= 2
    ops = sink.rows("ops").filter(pl.col("op") == "aten::mm")
    slack = max(profiling.account.errors_ns) + 1_000
    for thread_id, made in calls.items():
        starts = ops.filter(pl.col("thread") == thread_id).sort("start_ns")["start_ns"].to_list()
        missing = 0
        for begun, ended in made:
            if starts and begun - slack <= starts[0] <= ended + slack:
                starts.pop(0)
            else:
                missing += 1
                assert any(begun <= end + slack and ended >= start - slack for start, end in gaps)
        assert starts == [], "each op has one row"
        assert missing < len(made) / 4


def _gaps(sink: MemorySink) -> list[tuple[int, float]]:
    return sink.rows("counters").filter(pl.col("metric") == "profiler_gap").select("time_ns", "value").rows()


def test_times_agree_with_our_clock_within_the_error(sink: MemorySink, make: Callable[..., Profiling]) -> None:
    from torch.profiler import record_function

    profiling = make()
    profiling.start()
    readings: dict[str, tuple[int, int, int, int]] = {}
    until = time.monotonic() + 3 * _SHORT_S
    while time.monotonic() < until:
        name, now = f"range {len(readings)}", sink.clock.now
        before = now()
        with record_function(name):
            inside = now(), now()
        readings[name] = (before, *inside, now())
        time.sleep(0.002)
    profiling.stop()
    spans = sink.rows("spans")
    assert spans.height > len(readings) / 2
    assert spans["span"].str.starts_with("range ").all(), "our own marks are left out"
    error = max(profiling.account.errors_ns) + 2
    assert error < 1_000_000
    ends = {}
    for name, start, dur in spans.select("span", "start_ns", "dur_ns").iter_rows():
        before, entered, leaving, after = readings[name]
        assert before - error <= start <= entered + error
        ends[name] = (leaving - error, start + dur, after + error)
    late = [name for name, (low, end, high) in ends.items() if not low <= end <= high]
    assert len(late) <= profiling.account.cut + profiling.account.windows  # a window's end cuts what is open


def test_steps_end_windows_only_when_one_is_due(make: Callable[..., Profiling]) -> None:
    profiling = make(window_s=30.0)
    profiling.start()
    for _ in range(20):
        profiling.step()
    profiling.stop()
    assert profiling.account.windows == 1


def test_flush_writes_what_was_recorded(sink: MemorySink, make: Callable[..., Profiling]) -> None:
    profiling = make(window_s=30.0)
    profiling.start()
    _work(7)
    profiling.flush()
    assert _count(sink) == 7
    _work(3)
    profiling.stop()
    assert _count(sink) == 10


def test_start_and_stop_twice_and_again(sink: MemorySink, make: Callable[..., Profiling]) -> None:
    profiling = make(window_s=30.0)
    profiling.stop()
    profiling.start()
    profiling.start()
    _work(3)
    profiling.stop()
    profiling.stop()
    _work(5)
    profiling.start()
    _work(2)
    profiling.stop()
    assert _count(sink) == 5
    profiling.step()
    profiling.flush()


def test_ops_are_launches_of_the_processor(sink: MemorySink, make: Callable[..., Profiling]) -> None:
    profiling = make(window_s=30.0)
    profiling.start()
    torch.nn.functional.linear(torch.ones(4, 4), torch.ones(4, 4), torch.ones(4))
    profiling.stop()
    launches = sink.rows("launches")
    assert launches.filter(pl.col("kernel") == "aten::addmm").height == 1
    assert launches["device"].unique().to_list() == ["cpu"]
    assert not set(launches["kernel"]) & {"aten::linear", "aten::t", "aten::as_strided"}


def test_intercepted_ops_are_left_out(sink: MemorySink, make: Callable[..., Profiling]) -> None:
    open_ops = OpenOps()
    profiling = make(window_s=30.0, intercepted=True, open_ops=open_ops)
    profiling.start()
    begun = sink.clock.now()
    _work(4)
    ended = sink.clock.now()
    _work(3)
    open_ops.add(threading.get_native_id(), [begun], [ended], [5])
    profiling.stop()
    assert _count(sink) == 3
    assert profiling.account.duplicates >= 4
    assert sink.rows("launches").height == 0


def test_the_programs_own_profile_and_ours_both_work(sink: MemorySink, make: Callable[..., Profiling]) -> None:
    profiling = make()
    profiling.start()
    _work(3)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as own:
        _work(5)
        time.sleep(2 * _SHORT_S)
    _work(2)
    profiling.stop()
    assert sum(event.count for event in own.key_averages() if event.key == "aten::mm") == 5
    assert _count(sink) == 5
    assert sum("own profile" in note for note in sink.facts.notes) == 1
    assert max(gap for _, gap in _gaps(sink)) > 1e9 * _SHORT_S


def test_a_profile_that_runs_already_is_waited_for(sink: MemorySink, make: Callable[..., Profiling]) -> None:
    profiling = make()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as own:
        profiling.start()
        _work(5)
    _work(2)
    profiling.stop()
    assert sum(event.count for event in own.key_averages() if event.key == "aten::mm") == 5
    assert _count(sink) == 2
    assert any("own profile" in note for note in sink.facts.notes)


def test_nothing_goes_to_the_terminal(make: Callable[..., Profiling], capfd: pytest.CaptureFixture[str]) -> None:
    profiling = make()
    profiling.start()
    for _ in range(3):
        _work(5)
        time.sleep(_SHORT_S)
    profiling.stop()
    assert profiling.account.windows >= 2
    assert capfd.readouterr() == ("", "")


def test_what_cannot_be_recorded_is_said_and_not_raised(
    sink: MemorySink, make: Callable[..., Profiling], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch._C._autograd, "kineto_available", lambda: False)
    profiling = make()
    profiling.start()
    profiling.step()
    profiling.stop()
    assert sink.facts.notes == (
        "torch.profiler: this torch was built without Kineto, its profiler. Install a released torch.",
    )


def test_a_window_that_cannot_be_read_is_said(
    sink: MemorySink, make: Callable[..., Profiling], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inferometer.record.profiler.runner.save", lambda result, path: path.write_text("no JSON"))
    profiling = make()
    profiling.start()
    _work(3)
    profiling.stop()
    assert any(note.startswith("torch.profiler lost 1 windows: ") for note in sink.facts.notes)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # the child may deadlock: not this one
def test_a_forked_child_is_left_alone(make: Callable[..., Profiling]) -> None:
    profiling = make(window_s=30.0)
    profiling.start()
    _work(1)
    child = os.fork()
    if child == 0:
        try:
            _work(3)
            profiling.step()
            profiling.stop()
            again = Profiling(MemorySink())
            again.start()
            os._exit(0 if again.problem else 3)
        finally:
            os._exit(4)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    _work(1)


def test_windows_are_read_in_another_process(sink: MemorySink, make: Callable[..., Profiling]) -> None:
    profiling = make(window_s=30.0, read_apart=True)
    profiling.start()
    _work(3)
    profiling.stop()
    assert _count(sink) == 3
