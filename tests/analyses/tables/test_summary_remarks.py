"""Remarks: each says its piece above its threshold, with the right numbers, and nothing below."""

from typing import Any

import polars as pl
import pytest
from tests.traces import trace_of

from inferometer.analyses.tables.summary import summarize
from inferometer.analyses.timeline.gaps import find_gaps
from inferometer.analyses.timeline.work import at_place, find_work
from inferometer.reports.views.view import remarks_of
from inferometer.trace.trace import Trace

Rows = list[dict[str, Any]]


def remarks(trace: Trace, about: str = "") -> list[str]:
    return [remark for remark in remarks_of(summarize(trace)) if about in remark]


def idle_gaps(trace: Trace, device: str | None, rank: int | None = None) -> pl.DataFrame:
    return at_place(find_gaps(trace, find_work(trace)), rank, device)


def with_gaps(gap_ns: int, *, call_ns: int, n: int = 10, **more: Any) -> tuple[Rows, Rows]:
    """`n` kernels of 100 ns with gaps between, each called so long before it begins."""
    starts = [i * (100 + gap_ns) + 10_000 for i in range(n)]
    launches = [
        {"start_ns": start, "dur_ns": 100, "process": 1, "correlation_id": i, **more} for i, start in enumerate(starts)
    ]
    calls = [
        {"api": "launch", "process": 1, "start_ns": start - call_ns, "dur_ns": 5, "correlation_id": i}
        for i, start in enumerate(starts)
    ]
    return launches, calls


def test_an_idle_device_is_remarked_with_its_share() -> None:
    launches, _ = with_gaps(100, call_ns=0)
    assert remarks(trace_of(launches), "idle") == ["gpu:0 is idle 47.4 % of its window (900 ns)."]


def test_a_busy_device_is_not() -> None:
    launches, _ = with_gaps(20, call_ns=0)
    assert remarks(trace_of(launches), "idle") == []


def test_a_late_host_is_named_where_it_is_the_cause() -> None:
    launches, calls = with_gaps(100, call_ns=50)
    (remark,) = remarks(trace_of(launches, calls=calls), "idle")
    assert remark.endswith(
        "For 100.0 % of that the host was late: its call for the next work returned only after the device had gone "
        "idle. Longest gap: 100 ns, ended by k."
    )


def test_a_gap_of_several_causes_is_one_in_its_length() -> None:
    launches, calls = with_gaps(100_000, call_ns=20_000, n=2)
    wait = {"api": "cudaStreamSynchronize", "process": 1, "start_ns": 10_000, "dur_ns": 10_000}
    (remark,) = remarks(trace_of(launches, calls=[*calls, wait]), "idle")
    assert idle_gaps(trace_of(launches, calls=[*calls, wait]), "gpu:0").height == 2
    assert remark.endswith("Longest gap: 100.000 μs, ended by k.")


def test_a_host_that_called_in_time_is_not_blamed() -> None:
    launches, calls = with_gaps(100, call_ns=5_000)
    (remark,) = remarks(trace_of(launches, calls=calls), "idle")
    assert "host" not in remark


def test_a_call_of_another_process_is_no_evidence() -> None:
    launches, calls = with_gaps(100, call_ns=50)
    (remark,) = remarks(trace_of(launches, calls=[call | {"process": 2} for call in calls]), "idle")
    assert "host" not in remark


def test_each_rank_has_its_own_gaps() -> None:
    """Two ranks that take turns on devices of one number: each idles while the other works."""
    first, _ = with_gaps(100, call_ns=0, rank=0)
    second = [launch | {"rank": 1, "start_ns": launch["start_ns"] + 100} for launch in first]
    trace = trace_of([*first, *second])
    assert remarks(trace, "idle") == [
        "gpu:0 of rank 0 is idle 47.4 % of its window (900 ns).",
        "gpu:0 of rank 1 is idle 47.4 % of its window (900 ns).",
    ]
    assert idle_gaps(trace, "gpu:0", 0).height == idle_gaps(trace, "gpu:0", 1).height == 9


def test_calls_of_another_rank_say_nothing_of_a_gap() -> None:
    same = {"process": 5, "correlation_id": 1}
    call = {"api": "cudaLaunchKernel", "dur_ns": 1, **same}
    trace = trace_of(
        [{"rank": 0, "dur_ns": 10}, {"rank": 0, "start_ns": 50, "dur_ns": 10, **same}],
        calls=[call | {"rank": rank, "start_ns": 20 - rank} for rank in (0, 1)],
    )
    assert idle_gaps(trace, "gpu:0", 0)["called_ns"].to_list() == [20]


def test_gaps_are_what_is_open_between_overlapping_launches() -> None:
    trace = trace_of(
        [{"start_ns": start, "dur_ns": dur} for start, dur in ((0, 100), (10, 20), (150, 10), (155, 50), (300, 1))]
    )
    assert idle_gaps(trace, "gpu:0").select("gap_start_ns", "gap_ns").rows() == [(100, 50), (205, 95)]
    assert idle_gaps(trace, "gpu:1").height == 0
    assert idle_gaps(trace_of([{"device": None}, {"device": None, "start_ns": 9}]), None).height == 1


@pytest.mark.parametrize(("n", "dur_ns", "said"), [(100, 4_999, True), (99, 4_999, False), (100, 5_000, False)])
def test_many_short_kernels_are_remarked(n: int, dur_ns: int, said: bool) -> None:
    trace = trace_of([{"start_ns": i * 6_000, "dur_ns": dur_ns} for i in range(n)])
    assert bool(remarks(trace, "take less than 5 μs")) is said


def test_short_kernels_are_remarked_with_their_median() -> None:
    trace = trace_of([{"start_ns": i * 6_000, "dur_ns": 2_000 if i % 4 else 9_000} for i in range(400)])
    (remark,) = remarks(trace, "take less")
    assert remark.startswith("75.0 % of 400 kernels take less than 5 μs (median 2.000 μs): the cost of launches may")


@pytest.mark.parametrize(("copy_ns", "said"), [(51, False), (60, True)])
def test_copies_that_nothing_hides_are_remarked(copy_ns: int, said: bool) -> None:
    kernel, copy = {"start_ns": 0, "dur_ns": 1_000}, {"kind": "memcpy", "start_ns": 1_000, "dur_ns": copy_ns}
    assert bool(remarks(trace_of([kernel, copy]), "Copies run alone")) is said


def test_copies_behind_kernels_are_not() -> None:
    hidden = {"kind": "memcpy", "start_ns": 0, "dur_ns": 900, "stream": 8}
    assert remarks(trace_of([{"start_ns": 0, "dur_ns": 1_000}, hidden]), "Copies") == []


@pytest.mark.parametrize(("other_ns", "said"), [(30, True), (5, False)])
def test_a_dominant_kernel_is_remarked(other_ns: int, said: bool) -> None:
    launches = [{"kernel": f"k{i}", "dur_ns": 10} for i in range(7)] + [{"kernel": "big", "dur_ns": other_ns + 1}]
    assert bool(remarks(trace_of(launches), "big takes")) is said


def test_the_only_kernel_dominates_nobody() -> None:
    assert remarks(trace_of([{}]), "takes") == []


@pytest.mark.parametrize(("kernels", "said"), [(17, True), (16, False)])
def test_graph_launches_are_remarked(kernels: int, said: bool) -> None:
    launches = [{"start_ns": i, "correlation_id": 5, "process": 1} for i in range(kernels)]
    assert bool(remarks(trace_of(launches), "one graph launch")) is said


def test_graph_launches_of_several_processes_are_counted_apart() -> None:
    launches = [{"start_ns": i, "correlation_id": 5, "process": process} for i in range(20) for process in (1, 2)]
    (remark,) = remarks(trace_of(launches), "graph")
    assert remark.startswith("40 kernels come from 2 graph launches")


def test_work_queued_before_the_window_and_suspect_times_are_remarked() -> None:
    trace = trace_of([{}])
    assert remarks(trace, "before the profiling window") == remarks(trace, "outlast") == []
    trace.losses.count("launch_before_window", 1436, category="launches")
    trace.losses.count("overflows_stream", 2, category="launches", example="giant: 1,600 ns")
    assert remarks(trace, "before") == [
        "1,436 launches were queued before the profiling window: their host calls are not in the file."
    ]
    (suspect,) = remarks(trace, "outlast")
    assert suspect == (
        "2 launches outlast two or more later ones on their own stream (giant: 1,600 ns): their ends are wrong, or the "
        "profiler reports several queues as one stream. Durations and busy time depend on which it is."
    )


def test_one_launch_with_a_suspect_end_is_one() -> None:
    trace = trace_of([{}])
    trace.losses.count("overflows_stream", category="launches", example="giant: 1,600 ns")
    (remark,) = remarks(trace, "outlast")
    assert remark.startswith("One launch outlasts two or more later ones on its own stream (giant: 1,600 ns): its end")


def test_a_trace_without_kernels_says_so_and_nothing_else() -> None:
    copies = [{"kind": "memcpy", "dur_ns": 100}, {"kind": "memcpy", "start_ns": 10_000}]
    assert remarks(trace_of(copies)) == ["No kernels: all device work in the file is 2 copies."]
    assert remarks(trace_of()) == ["No kernels in the file."]
    assert remarks(trace_of(facts={"framework": "PyTorch"}))[0].startswith("No kernels: only the host was recorded")
    cut = trace_of()
    cut.losses.count("truncated")
    assert remarks(cut) == ["No kernels before the place where the file breaks off."]


def test_kernels_of_no_time_are_kernels() -> None:
    assert remarks(trace_of([{"dur_ns": 0}]), "No kernels") == []


def test_a_device_without_a_name_is_still_a_device() -> None:
    launches, _ = with_gaps(100, call_ns=0, device=None)
    assert remarks(trace_of(launches), "idle") == ["unnamed device is idle 47.4 % of its window (900 ns)."]
