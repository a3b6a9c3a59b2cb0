"""The two windows that a cause is looked for in: what was sampled in a pause at an edge belongs to neither."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from benchmarks.watch_pairs import joined
from tests.traces import trace_of

from inferometer.formats.opening import open_trace
from inferometer.trace.trace import Trace
from inferometer.watch.recorded import steps_of
from inferometer.watch.session import Session
from inferometer.watch.watcher import Watcher
from inferometer.watch.why import DATED_WITHIN, find_why, windows_of

H200 = Path(__file__).resolve().parents[2] / "samples" / "h200"
MS = 10**6
ONSET, END = 60, 120


def _trace(pauses_ms: dict[int, int], step_ms: int = 10) -> tuple[Trace, list[int]]:
    """120 steps, one after the other but for pauses after some, and a sample every ms; also, when each begins."""
    starts, at = [], 0
    for number in range(END):
        starts.append(at)
        at += (step_ms + pauses_ms.get(number, 0)) * MS
    steps = [{"start_ns": start, "dur_ns": step_ms * MS, "phase": "decode"} for start in starts]
    counters = [{"metric": "disk_util", "time_ns": ns, "value": 1.0} for ns in range(0, at, MS)]
    return trace_of(steps=steps, counters=counters), [*starts, at]


def _sampled(pauses_ms: dict[int, int], step_ms: int = 10) -> tuple[Sequence[int], Sequence[int], list[int]]:
    """When the samples of both windows were taken, with the slow one from the step `ONSET` on."""
    trace, starts = _trace(pauses_ms, step_ms)
    found = windows_of(trace, 0, starts[ONSET], starts[ONSET], starts[END])
    normal, slow = (run.counters.select("time_ns").collect()["time_ns"].to_list() for run in found)
    return normal, slow, starts


@pytest.mark.parametrize("pauses_ms", [{}, {30: 500, 90: 500}, {ONSET + DATED_WITHIN: 500}, {ONSET: 50}])
def test_all_samples_are_in_the_windows_where_there_is_no_pause_at_the_onset(pauses_ms: dict[int, int]) -> None:
    normal, slow, starts = _sampled(pauses_ms)
    assert [*normal, *slow] == [*range(0, starts[END], MS)]


@pytest.mark.parametrize("after", [0, 1, DATED_WITHIN - 1])
def test_the_slow_window_begins_after_a_pause_among_its_first_steps(after: int) -> None:
    normal, slow, starts = _sampled({ONSET + after: 500})
    assert normal == [*range(0, starts[ONSET], MS)]
    assert slow == [*range(starts[ONSET + after + 1], starts[END], MS)]


@pytest.mark.parametrize("before", [1, 2, DATED_WITHIN])
def test_the_normal_window_ends_before_a_pause_among_its_last_steps(before: int) -> None:
    normal, slow, starts = _sampled({ONSET - before - 1: 500})
    assert normal == [*range(0, starts[ONSET - before - 1] + 10 * MS, MS)]
    assert slow == [*range(starts[ONSET], starts[END], MS)]


def test_what_is_read_once_a_second_has_no_pauses() -> None:
    trace, starts = _trace(dict.fromkeys(range(END), 990))
    assert [len(run.counters.collect()) for run in windows_of(trace, 0, starts[ONSET], starts[ONSET], starts[END])] == [
        ONSET * 1000,
        (END - ONSET) * 1000,
    ]


def test_windows_without_steps_are_as_they_were_asked_for() -> None:
    counters = [{"metric": "disk_util", "time_ns": ns, "value": 1.0} for ns in range(100)]
    normal, slow = windows_of(trace_of(counters=counters), 10, 30, 40, 70)
    assert [len(run.counters.collect()) for run in (normal, slow)] == [20, 30]


def test_traffic_on_the_bus_of_an_h200_is_named_though_the_onset_is_dated_before_a_pause() -> None:
    normal = H200 / "normal.ifm"
    trace = joined(normal, H200 / "pcie_traffic.ifm", normal)
    steps, first = steps_of(trace), len(steps_of(open_trace(normal)))
    session = Session(Watcher())
    session.watch(steps)
    at = next(i for i, one in enumerate(session.account.slowdowns) if one.worse)
    window = session.account.window(at)
    traffic = trace.counters.filter(pl.col("metric") == "gpu_pcie_transmit").sort("time_ns").collect()
    times, rates = (traffic[name].to_numpy() for name in ("time_ns", "value"))
    is_early = (times >= window.last_ns) & (times < steps[first].start_ns)
    assert rates[is_early].size == 1
    assert rates[is_early] < np.median(rates)  # sampled before the fault, after the onset as it is dated
    _, slow = windows_of(trace, *window)
    assert slow.counters.select(pl.col("time_ns").min()).collect().item() > times[is_early][0]
    why = find_why(trace, *window)
    assert why is not None
    assert (why.verdict, why.metric) == ("cause named", "gpu_pcie_transmit")
