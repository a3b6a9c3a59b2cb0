"""Lanes have every event of a trace on a row where it overlaps no other; calls are tied to their work."""

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import SHARED_DATA
from tests.traces import trace_of

import inferometer
from inferometer.analyses.timeline.lanes.events import NO_TIE, Lanes
from inferometer.analyses.timeline.lanes.find import find_lanes
from inferometer.analyses.timeline.lanes.rows import MOST_ROWS, stack_rows
from inferometer.trace.trace import Trace

KINETO = SHARED_DATA / "traces" / "kineto"
TEXTS = {"launches": "kernel", "calls": "api", "ops": "op", "frames": "frame", "spans": "span", "host_events": "kind"}


def lanes_of(trace: Trace, **more: Any) -> Lanes:
    found = find_lanes(trace, **more)
    assert found is not None
    return found


def events(line: Lanes) -> list[tuple[str, str, int, int, str]]:
    lane = line.row_lane[line.event_row]
    return [
        (line.lanes[lane[i]].kind, line.lanes[lane[i]].name, start, dur, line.names[name])
        for i, (start, dur, name) in enumerate(
            zip(line.start_ns.tolist(), line.dur_ns.tolist(), line.name.tolist(), strict=True)
        )
    ]


def test_lanes_are_streams_then_threads_from_the_earliest_time_on() -> None:
    line = lanes_of(
        trace_of(
            [{"stream": 9, "kernel": "b", "start_ns": 30, "dur_ns": 5}, {"stream": 7, "start_ns": 20, "dur_ns": 1}],
            calls=[{"api": "cudaLaunchKernel", "process": 1, "thread": 2, "start_ns": 10, "dur_ns": 4}],
            ops=[{"op": "aten::mm", "process": 1, "thread": 2, "start_ns": 8, "dur_ns": 9}],
            spans=[
                {"span": "on host", "process": 1, "thread": 2, "start_ns": 8, "dur_ns": 0},
                {"span": "on device", "device": "gpu:0", "stream": 7, "start_ns": 20, "dur_ns": 2},
            ],
        )
    )
    assert (line.origin_ns, line.length_ns) == (8, 27)
    assert events(line) == [
        ("device_range", "stream 7: ranges", 12, 2, "on device"),
        ("stream", "stream 7", 12, 1, "k"),
        ("stream", "stream 9", 22, 5, "b"),
        ("range", "ranges", 0, 0, "on host"),
        ("op", "ops", 0, 9, "aten::mm"),
        ("call", "calls", 2, 4, "cudaLaunchKernel"),
    ]
    assert [lane.group for lane in line.lanes] == ["gpu:0"] * 3 + ["process 1, thread 2"] * 3


@pytest.mark.parametrize("start_ns", [2**61, 2**62 + 5, 2**63 - 200, -(2**63)])
def test_times_at_the_end_of_all_numbers_are_drawn(start_ns: int) -> None:
    line = lanes_of(trace_of([{"stream": 7, "start_ns": start_ns + at, "dur_ns": 50} for at in (0, 20, 90)]))
    assert (line.origin_ns, line.start_ns.tolist(), line.dur_ns.tolist()) == (start_ns, [0, 90, 20], [50] * 3)


@pytest.mark.parametrize(
    ("start_ns", "dur_ns"), [(2**62, 2**62), (2**62, 2**63 - 1), (-(2**63), 2**63 - 1), (0, 2**53)]
)
def test_times_too_far_apart_have_no_lanes(start_ns: int, dur_ns: int) -> None:
    times = [(start_ns, dur_ns), (start_ns, 5), (start_ns + 9, dur_ns)]
    assert find_lanes(trace_of([{"start_ns": start, "dur_ns": dur} for start, dur in times])) is None


def test_work_is_tied_to_the_call_that_queued_it() -> None:
    line = lanes_of(
        trace_of(
            [
                {"start_ns": 20, "process": 1, "correlation_id": 5},
                {"start_ns": 30, "process": 1, "correlation_id": 4},
                {"start_ns": 40, "process": 2, "correlation_id": 4},
            ],
            calls=[
                {"api": "a", "process": 1, "thread": 1, "start_ns": 1, "dur_ns": 2, "correlation_id": 4},
                {"api": "b", "process": 1, "thread": 1, "start_ns": 5, "dur_ns": 2, "correlation_id": 5},
            ],
        )
    )
    tied = [None if tie == NO_TIE else line.names[line.name[tie]] for tie in line.tie.tolist()]
    assert tied == ["b", "a", None, None, None]


def test_what_nests_stands_below_what_is_around_it() -> None:
    starts = np.array([0, 0, 2, 5, 20])
    lengths = np.array([10, 4, 1, 5, 0])
    assert stack_rows(starts, lengths).tolist() == [0, 1, 2, 1, 0]


def test_what_overlaps_without_nesting_takes_the_first_free_row() -> None:
    assert stack_rows(np.array([0, 5, 12]), np.array([10, 10, 10])).tolist() == [0, 1, 0]


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 12)), min_size=1, max_size=40))
def test_on_one_row_nothing_overlaps(drawn: list[tuple[int, int]]) -> None:
    drawn.sort(key=lambda each: (each[0], -each[1]))
    start, dur = (np.array(values, dtype=np.int64) for values in zip(*drawn, strict=True))
    row = stack_rows(start, dur)
    for each in np.unique(row):
        own = row == each
        assert (start[own][1:] >= (start + np.maximum(dur, 1))[own][:-1]).all()


def test_what_needs_too_many_rows_is_counted_with_its_time() -> None:
    ops: list[dict[str, Any]] = [
        {"op": f"op {i}", "process": 1, "thread": 1, "start_ns": i, "dur_ns": 1_000 - 2 * i} for i in range(300)
    ]
    line = lanes_of(trace_of(ops=ops))
    (lane,) = line.lanes
    assert (lane.rows, lane.deeper) == (MOST_ROWS, 300 - MOST_ROWS)
    assert lane.deeper_ns == sum(1_000 - 2 * i for i in range(MOST_ROWS, 300))
    assert lane.deeper_ns + int(line.dur_ns.sum()) == sum(each["dur_ns"] for each in ops)


def test_ten_thousand_streams_have_a_lane_each() -> None:
    line = lanes_of(trace_of([{"stream": i, "start_ns": 10 * i, "dur_ns": 3} for i in range(10_000)]))
    assert len(line.lanes) == 10_000
    assert [lane.name for lane in line.lanes[:3]] == ["stream 0", "stream 1", "stream 2"]
    assert line.start_ns.tolist() == [10 * i for i in range(10_000)]


def test_late_clocks_count_from_their_origin_and_spans_of_ages_are_refused() -> None:
    late = 2**62
    line = lanes_of(trace_of([{"start_ns": late, "dur_ns": 5}, {"start_ns": late + 9, "dur_ns": 1}]))
    assert (line.origin_ns, line.start_ns.tolist()) == (late, [0, 9])
    assert find_lanes(trace_of([{"start_ns": 0}, {"start_ns": late}])) is None
    assert find_lanes(trace_of([{"start_ns": 0, "dur_ns": late}])) is None


def test_without_times_there_are_no_lanes() -> None:
    assert find_lanes(trace_of()) is None
    assert find_lanes(trace_of(tables={"facts"} & {"launches"})) is None


def test_steps_are_a_lane_and_those_without_a_time_are_left_out() -> None:
    steps = pl.DataFrame(
        {"step": [3, 4], "phase": ["decode", None], "start_ns": [5, 9], "wall_ns": [4, None]},
        schema_overrides={"wall_ns": pl.Int64},
    )
    line = lanes_of(trace_of([{"start_ns": 5}]), steps=steps)
    assert events(line)[0] == ("step", "steps", 0, 4, "step 3, decode")


@pytest.mark.skipif(not KINETO.is_dir(), reason="needs ../shared/data/traces")
@pytest.mark.parametrize("name", ["a100_nccl", "h100_vit", "mi300_resnet_ddp", "v100_graph_branches", "cpu_only"])
def test_of_real_traces_every_row_of_every_table_is_on_the_time_line(name: str) -> None:
    trace = inferometer.open(KINETO / f"{name}.json.gz")
    line = lanes_of(trace)
    drawn = sorted((start + line.origin_ns, dur, text) for _, _, start, dur, text in events(line))
    rows = [
        row
        for table, text in TEXTS.items()
        for row in trace.tables[table].select("start_ns", "dur_ns", text).collect().rows()
    ]
    assert drawn == sorted(rows)
    row = line.event_row
    same = row[1:] == row[:-1]
    assert (line.start_ns[1:] >= (line.start_ns + np.maximum(line.dur_ns, 1))[:-1])[same].all()
    samples = trace.counters.drop_nulls("value").collect()
    assert sum(len(each.value) for each in line.samples) == samples.height


def test_a_trace_of_counters_alone_has_their_samples_and_no_lane() -> None:
    rows = [{"metric": "gpu_util", "unit": "%", "time_ns": at, "value": 1.0} for at in (5, 9)]
    line = lanes_of(trace_of(counters=rows))
    assert (line.lanes, len(line.start_ns), line.length_ns) == ((), 0, 4)
    assert [each.time_ns.tolist() for each in line.samples] == [[0, 4]]
