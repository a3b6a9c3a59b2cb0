"""What rules share of single launches is what the analyses alone would tell."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.traces import trace_of
from tests.truth.raw import FILES

import inferometer
from inferometer.analyses.launched_by.attribution import attribute
from inferometer.analyses.roofline.table import roofline
from inferometer.analyses.tables.summary import busy_times, summarize
from inferometer.analyses.timeline.gaps import find_gaps
from inferometer.analyses.timeline.work import find_work
from inferometer.findings.evidence.launch_evidence import LaunchEvidence
from inferometer.findings.first_look import first_look
from inferometer.trace.trace import Trace

SAMPLE = Path(__file__).parents[3] / "samples" / "decode.json.gz"
NAMES = ("gemm", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "Memcpy HtoD (Pageable -> Device)")


def launches(devices: int, streams: int) -> Iterator[dict[str, Any]]:
    """Out of order: the copies come last, as Nsight Systems has them."""
    for is_copy in (False, True):
        for i in range(24):
            name = NAMES[i % 3]
            if is_copy == name.startswith("Memcpy"):
                yield {
                    "kind": "memcpy" if is_copy else "kernel",
                    "kernel": name,
                    "device": f"gpu:{i % devices}",
                    "stream": i % streams,
                    "process": 1,
                    "correlation_id": i,
                    "start_ns": 100 * i,
                    "dur_ns": 70,
                    **({} if is_copy else {"grid": [i % 4, 2, 1], "block": [64, 1, 1]}),
                }


def made(devices: int, streams: int) -> Trace:
    call = {"api": "cudaLaunchKernel", "process": 1, "thread": 2, "dur_ns": 10}
    calls = [call | {"correlation_id": i, "start_ns": 100 * i - 50} for i in range(24)]
    return trace_of(list(launches(devices, streams)), calls=calls)


@pytest.mark.parametrize(("devices", "streams"), [(1, 1), (1, 2), (2, 1), (2, 3)])
def test_work_is_arranged_as_by_itself(devices: int, streams: int) -> None:
    trace = made(devices, streams)
    evidence, alone = LaunchEvidence(trace).device_work, find_work(trace)
    assert evidence.places.rows() == alone.places.rows()
    columns = alone.launches.columns
    assert evidence.launches.select(columns).rows() == alone.launches.rows()


def test_what_was_released_is_made_again() -> None:
    evidence = LaunchEvidence(made(2, 3))
    gaps, attribution, steps = evidence.gaps, evidence.attribution, evidence.steps
    evidence.release()
    assert set(vars(evidence)) == {"trace", "device", "attribution", "_shapes", "steps"}
    assert evidence.attribution is attribution
    assert evidence.steps is steps
    assert evidence.gaps.equals(gaps)


def test_calls_of_ops_are_dropped_once_the_roofline_has_them() -> None:
    with inferometer.open(SAMPLE) as trace:
        evidence, alone = LaunchEvidence(trace), roofline(attribute(trace, with_op_calls=True), trace)
        assert evidence.roofline is not None
        assert "attribution" in vars(evidence)
        assert "with_op_calls" not in vars(evidence)
        assert evidence.roofline.frame.equals(alone.frame)


def test_the_summary_of_a_first_look_says_what_it_says_alone() -> None:
    with inferometer.open(SAMPLE) as trace:
        alone = summarize(trace).notable
        assert any("For " in remark and "the host was late" in remark for remark in alone)
        assert first_look(trace).summary.notable == alone


def check_busy_times(trace: Trace) -> None:
    found = LaunchEvidence(trace).busy_times.sort("rank", "device")
    assert found.height == trace.launches.select("rank", "device").unique().collect().height
    assert found.rows() == busy_times(trace).sort("rank", "device").rows()


@pytest.mark.parametrize("name", ["decode.json.gz", "nsys.sqlite.gz"])
def test_busy_times_are_those_of_the_trace_alone(name: str) -> None:
    with inferometer.open(SAMPLE.with_name(name)) as trace:
        check_busy_times(trace)


@pytest.mark.parametrize(("devices", "streams"), [(1, 1), (1, 2), (2, 1), (2, 3)])
def test_busy_times_of_several_places_are_those_of_the_trace_alone(devices: int, streams: int) -> None:
    check_busy_times(made(devices, streams))


@pytest.mark.parametrize("file", FILES)
def test_busy_times_of_real_files_are_those_of_the_trace_alone(file: str, shared_data: Path) -> None:
    with inferometer.open(shared_data / "traces" / "kineto" / f"{file}.json.gz") as trace:
        check_busy_times(trace)


@pytest.mark.parametrize(("devices", "streams"), [(1, 1), (1, 2), (2, 1), (2, 3)])
def test_gaps_know_the_launch_that_ended_them(devices: int, streams: int) -> None:
    trace = made(devices, streams)
    found, alone = LaunchEvidence(trace).gaps, find_gaps(trace, find_work(trace))
    assert found.height > 10
    assert (
        found.select("device", "gap_start_ns", "gap_ns", "cause").rows()
        == alone.select("device", "gap_start_ns", "gap_ns", pl.col("cause")).rows()
    )
    assert found["thread"].to_list() == [2] * found.height
    assert found["is_replay"].to_list() == [False] * found.height


@pytest.mark.parametrize("streams", [1, 2])
def test_work_is_in_the_order_of_streams_and_sizes_have_numbers(streams: int) -> None:
    work = LaunchEvidence(made(1, streams)).work
    assert work.select("stream", "start_ns").rows() == sorted(work.select("stream", "start_ns").rows())
    kernels = work.filter(pl.col("kind") == "kernel")
    assert kernels["shape_hash"].n_unique() == 4


def stepping(*launched_ns: int) -> LaunchEvidence:
    """Launches whose calls began then, in steps from 0 to 300 ns."""
    call = {"api": "cudaLaunchKernel", "process": 1, "thread": 2, "dur_ns": 1}
    calls = [call | {"correlation_id": i, "start_ns": ns} for i, ns in enumerate(launched_ns, start=1)]
    rows = [
        {"process": 1, "correlation_id": i, "start_ns": ns + 40, "dur_ns": 1} for i, ns in enumerate(launched_ns, 1)
    ]
    marks = [
        {"span": f"ProfilerStep#{n}", "start_ns": 100 * n, "dur_ns": 100, "process": 1, "thread": 2} for n in range(3)
    ]
    return LaunchEvidence(trace_of(rows, calls=calls, spans=marks))


def test_a_time_is_shared_by_the_steps_that_launch_something() -> None:
    assert stepping(0, 10, 110).a_step(60) == ", 30 ns per step over 2 steps"
    assert stepping(0, 110, 210, 299).a_step(60) == ", 20 ns per step over 3 steps"  # which begins when no step is open
    assert stepping(0, 10).a_step(60) == ""


def test_it_is_not_where_launches_lie_outside_of_steps() -> None:
    assert stepping(-10, 10, 110).a_step(60) == ""
    assert stepping(10, 110, 301).a_step(60) == ""
    assert stepping(*range(99), 110, 111, -1, -2).a_step(60) == ", 30 ns per step over 2 steps"
    assert stepping(*range(99), 110, -1, -2, -3).a_step(60) == ""
