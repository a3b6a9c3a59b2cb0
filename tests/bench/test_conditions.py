"""Conditions of a machine that is pretended: its clock moves only when it is looked at, so nothing sleeps."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, repeat

import numpy as np
import pytest

from inferometer.bench.conditions import Watch, drop_throttled
from inferometer.hardware.measure.load import HostLoad
from inferometer.hardware.measure.nvml import POWER_CAP, GpuState

MS = 1_000_000
HOT = frozenset({"HW thermal", "HW slowdown"})
STATE = GpuState(1.755e9, 2.619e9, 50.0, 400.0, 1_000.0, frozenset(), False)


class Clock:
    """Each look takes a millisecond; `pass_ms` is what lies between samples."""

    def __init__(self) -> None:
        self.now_ns = 0

    def __call__(self) -> int:
        self.now_ns += MS
        return self.now_ns


@dataclass
class Gpu:
    """Says one state after the other, the last one for ever."""

    states: Iterator[GpuState]
    seen: frozenset[int] | None = None
    asked: int = 0

    def state(self) -> GpuState:
        return next(self.states)

    def processes(self) -> frozenset[int] | None:
        self.asked += 1
        return self.seen


@dataclass
class Host:
    found: dict[str, float] = field(default_factory=dict)

    def state(self) -> dict[str, float]:
        return self.found


def watch(
    states: Sequence[GpuState],
    *,
    seen: frozenset[int] | None = None,
    own: tuple[int, ...] = (),
    host: Host | None = None,
) -> Watch:
    """Samples of these states, each 50 ms after the other and 1 ms long."""
    clock = Clock()
    gpu = Gpu(chain(states, repeat(states[-1])), seen)
    watched = Watch("cuda:0", own, gpu=gpu, host=host or Host(), clock=clock, cpu_clock=lambda: 0)
    for i in range(len(states)):
        clock.now_ns = 50 * MS * i - MS
        watched.take()
    return watched


def test_metrics_are_least_median_and_greatest() -> None:
    states = [replace(STATE, temperature_c=float(degrees), energy_j=1_000.0 + degrees) for degrees in (50, 53, 51)]
    found = watch(states, host=Host({"load": 1.5})).conditions()
    assert found.metrics == {
        "temperature_c": (50, 51, 53),
        "sm_clock_hz": (1.755e9, 1.755e9, 1.755e9),
        "memory_clock_hz": (2.619e9, 2.619e9, 2.619e9),
        "power_w": (400, 400, 400),
        "energy_j": (0, 1, 3),
        "load": (1.5, 1.5, 1.5),
    }
    assert found.throttled == {}
    assert found.remarks == ()


def test_what_the_driver_doesnt_tell_is_absent() -> None:
    found = watch([GpuState(None, None, None, None, None, None, None)] * 3).conditions()
    assert (found.metrics, found.throttled) == ({}, {})
    (remark,) = found.remarks
    assert "NVML doesn't answer" in remark


def test_throttling_has_shares_and_spans_from_the_sample_before_to_the_one_after() -> None:
    hot, capped = replace(STATE, reasons=HOT), replace(STATE, reasons=frozenset({POWER_CAP}))
    watched = watch([STATE, capped, hot, hot, STATE, STATE, hot, STATE])
    assert watched.throttled_spans() == [(50 * MS, 201 * MS), (250 * MS, 351 * MS)]
    found = watched.conditions()
    assert found.throttled == {"HW slowdown": 3 / 8, "HW thermal": 3 / 8, POWER_CAP: 1 / 8}
    assert [remark for remark in found.remarks if "power cap" in remark] == [
        "The power cap lowered the clocks in 12.5 % of the samples."
    ]


def test_spans_that_share_a_sample_are_one() -> None:
    hot = replace(STATE, reasons=HOT)
    assert watch([hot, STATE, hot]).throttled_spans() == [(0, 101 * MS)]
    assert watch([hot]).throttled_spans() == [(0, MS)]
    assert watch([STATE]).throttled_spans() == []


def test_calls_that_overlap_a_throttled_span_are_dropped() -> None:
    spans = [(100, 200), (150, 250), (400, 500)]
    starts = [0, 0, 0, 120, 240, 250, 260, 390, 499, 500, 90]
    ends = [90, 100, 101, 130, 300, 260, 400, 600, 510, 600, 700]
    expected = [False, False, True, True, True, False, False, True, True, False, True]
    assert drop_throttled(starts, ends, spans).tolist() == expected
    assert drop_throttled(starts, ends, []).tolist() == [False] * len(starts)
    assert drop_throttled([], [], spans).tolist() == []


def test_dropping_is_what_a_slow_check_of_every_pair_says() -> None:
    rng = np.random.default_rng(1)
    begins, starts = rng.integers(0, 2_000, 20), rng.integers(0, 2_000, 500)
    spans = [(int(begin), int(begin + length)) for begin, length in zip(begins, rng.integers(1, 60, 20), strict=True)]
    ends = starts + rng.integers(1, 40, 500)
    slow = [any(begin < end and stop > start for begin, stop in spans) for start, end in zip(starts, ends, strict=True)]
    assert drop_throttled(starts, ends, spans).tolist() == slow
    assert any(slow)
    assert not all(slow)


def test_clocks_that_arent_locked_are_told_while_busy_only() -> None:
    clocks = [replace(STATE, sm_clock_hz=hz) for hz in (1.98e9, 1.98e9, 1.755e9, 1.755e9)]
    (remark,) = watch(clocks).conditions().remarks
    assert remark == ("The SM clock varied by 11.4 % while the GPU was busy (1755 to 1980 MHz): clocks aren't locked.")
    idle = replace(STATE, sm_clock_hz=0.21e9, is_idle=True)
    found = watch([idle, STATE, STATE]).conditions()
    assert found.remarks == ()
    assert found.metrics["sm_clock_hz"] == (1.755e9,) * 3


def test_warming_up_is_told_with_its_slope() -> None:
    warming = [replace(STATE, temperature_c=40.0 + i) for i in range(11)]
    (remark,) = watch(warming).conditions().remarks
    assert remark == "The GPU's temperature went from 40 to 50 °C, +1200.0 °C a minute: warm it up longer."
    assert watch([replace(STATE, temperature_c=50.0 + i % 2) for i in range(11)]).conditions().remarks == ()


def test_other_processes_on_the_gpu_are_told_where_ids_can_be_compared() -> None:
    assert watch([STATE] * 3, seen=frozenset({7}), own=(7,)).conditions().remarks == ()
    (remark,) = watch([STATE] * 3, seen=frozenset({7, 8, 9}), own=(7,)).conditions().remarks
    assert remark == "Other processes had the GPU too: 8, 9. Repeat it alone."
    assert watch([STATE] * 3, seen=frozenset({901, 902}), own=(7,)).conditions().remarks == ()
    (unknown,) = watch([STATE] * 3, seen=frozenset({901, 902, 903}), own=(7,)).conditions().remarks
    assert "at least 1 of them" in unknown


def test_what_this_process_started_is_no_other_process_on_the_gpu() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        seen = frozenset({7, child.pid})
        assert watch([STATE] * 3, seen=seen, own=(7,)).conditions().remarks == ()
        child.communicate()
    (remark,) = watch([STATE] * 3, seen=seen, own=(7,)).conditions().remarks
    assert remark == f"Other processes had the GPU too: {child.pid}. Repeat it alone."


def test_who_has_the_gpu_is_asked_once_a_second() -> None:
    clock, gpu = Clock(), Gpu(repeat(STATE), frozenset())
    watched = Watch("cuda:0", gpu=gpu, host=Host(), clock=clock, cpu_clock=lambda: 0)
    for i in range(41):
        clock.now_ns = 50 * MS * i
        watched.take()
    assert gpu.asked == 3


def test_load_by_others_is_told() -> None:
    (remark,) = watch([STATE] * 3, host=Host({"others_share": 0.25})).conditions().remarks
    assert remark == "Other processes took 25.0 % of all cores (median). Repeat it alone."


def test_a_process_may_begin_later(monkeypatch: pytest.MonkeyPatch) -> None:
    made = list[HostLoad]()

    def make(own: set[int]) -> HostLoad:
        made.append(HostLoad(own))
        return made[-1]

    monkeypatch.setattr("inferometer.bench.conditions.HostLoad", make)
    watched = Watch("cuda:0", gpu=Gpu(repeat(STATE), frozenset({7, os.getpid()})), clock=Clock(), cpu_clock=lambda: 0)
    assert set(made[0].own) == {os.getpid()}
    watched.add_own(7)
    assert set(made[0].own) == {7, os.getpid()}
    watched.take()
    assert not [remark for remark in watched.conditions().remarks if "had the GPU" in remark]


def test_a_cpu_has_no_gpu_and_says_once_what_it_doesnt_tell() -> None:
    watched = Watch("cpu", host=Host({"load": 0.5}), clock=Clock(), cpu_clock=lambda: 0)
    for _ in range(5):
        watched.take()
    found = watched.conditions()
    assert found.metrics == {"load": (0.5, 0.5, 0.5)}
    assert found.remarks == ("Clocks of the cores are unknown: the machine doesn't tell them.",)
    assert watched.throttled_spans() == []


def test_what_sampling_takes_is_measured_and_told_where_it_is_much() -> None:
    clock, took = Clock(), iter(range(0, 10**9, 5 * MS))
    watched = Watch("cuda:0", gpu=Gpu(repeat(STATE)), host=Host(), clock=clock, cpu_clock=lambda: next(took))
    for i in range(41):
        clock.now_ns = 50 * MS * i - MS
        watched.take()
        if i == 10:
            assert watched.conditions().remarks == ()  # too short to say so
    assert watched.cpu_share == pytest.approx(41 * 5 / 2_001)
    assert watched.conditions().remarks == ("Watching the machine itself took 10.2 % of a core.",)


def test_a_thread_samples_until_the_end() -> None:
    enough, names = threading.Event(), list[str]()

    class Counting(Host):
        def state(self) -> dict[str, float]:
            names.append(threading.current_thread().name)
            if len(names) == 3:
                enough.set()
            return {"load": 1.0}

    with Watch("cpu", host=Counting()) as watched:
        assert enough.wait(10)
    assert names[0] == names[-1] == threading.current_thread().name
    assert set(names[1:-1]) == {"inferometer-watch"}
    assert len(watched.samples) == len(names) >= 4
    times = [sample.began_ns for sample in watched.samples]
    assert times == sorted(times)
    assert "inferometer-watch" not in {thread.name for thread in threading.enumerate()}


def test_a_gpu_that_isnt_there_is_unknown() -> None:
    torch = pytest.importorskip("torch", reason="torch isn't installed")
    if torch.cuda.is_available():
        pytest.skip("needs a machine without a GPU")
    with Watch("cuda:0", host=Host()) as watched:
        pass
    (remark,) = watched.conditions().remarks
    assert "NVML doesn't answer" in remark


def test_nothing_sampled_is_nothing_said() -> None:
    watched = Watch("cpu", host=Host())
    assert watched.conditions().metrics == {}
    assert watched.conditions().remarks == ()
    assert watched.cpu_share == 0
