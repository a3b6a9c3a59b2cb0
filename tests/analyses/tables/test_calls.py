"""Host calls: the table of Nsight Systems, what came of the calls on the device, and what is reported of it."""

from pathlib import Path
from typing import Any, get_args

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from tests.effort import examples
from tests.traces import trace_of

import inferometer
from inferometer import Trace
from inferometer.analyses.rows import SortKey
from inferometer.analyses.tables.calls import NEEDED, CallTable, call_table
from inferometer.analyses.tables.host_selection import HostSelection
from inferometer.errors import InputError, UnknownName
from inferometer.reports.views.view import remarks_of, sections_of

CALL = {"api": "cudaLaunchKernel", "process": 1, "thread": 2, "start_ns": 0, "dur_ns": 1}
APIS = [
    "cudaLaunchKernel_v7000",
    "cudaLaunchKernel",
    "cudaMemcpyAsync_v3020",
    "cudaStreamSynchronize",
    "cuCtxGetDevice",
]
CALLS = st.fixed_dictionaries(
    {
        "api": st.sampled_from(APIS),
        "rank": st.sampled_from([None, 0, 1]),
        "process": st.sampled_from([None, 1]),
        "thread": st.sampled_from([None, 2, 3]),
        "start_ns": st.integers(0, 1000),
        "dur_ns": st.integers(0, 200),
        "correlation_id": st.none() | st.integers(0, 12),
    }
)
LAUNCHES = st.fixed_dictionaries(
    {
        "rank": st.sampled_from([None, 0, 1]),
        "process": st.sampled_from([None, 1]),
        "device": st.sampled_from([None, "gpu:0"]),
        "start_ns": st.integers(0, 1200),
        "dur_ns": st.integers(0, 100),
        "correlation_id": st.none() | st.integers(0, 12),
    }
)


def trace_with(calls: list[dict[str, Any]], launches: list[dict[str, Any]] = []) -> Trace:  # noqa: B006
    return trace_of(
        [{"process": 1} | launch for launch in launches],
        calls=[CALL | {"correlation_id": None} | call for call in calls],
    )


A_STEP = trace_with(
    [
        {"api": "cudaLaunchKernel_v7000", "start_ns": 0, "dur_ns": 10, "correlation_id": 1},
        {"api": "cudaLaunchKernel", "start_ns": 20, "dur_ns": 30, "correlation_id": 2},
        {"api": "cudaStreamSynchronize_v3020", "start_ns": 60, "dur_ns": 140, "correlation_id": 3},
    ],
    [
        {"start_ns": 15, "dur_ns": 40, "correlation_id": 1},
        {"start_ns": 70, "dur_ns": 100, "correlation_id": 2},
        {"start_ns": 0, "dur_ns": 5, "correlation_id": 99},
    ],
)


def apis(table: CallTable) -> list[str]:
    return table.frame["api"].to_list()


def said(table: CallTable) -> str:
    return "\n".join(remarks_of(table))


def test_calls_are_counted_by_function_without_versions() -> None:
    table = call_table(A_STEP)
    assert table.frame.select("api", "count", "total_ns", "mean_ns", "min_ns", "max_ns").rows() == [
        ("cudaStreamSynchronize", 1, 140, 140.0, 140, 140),
        ("cudaLaunchKernel", 2, 40, 20.0, 10, 30),
    ]
    assert table.frame["share"].to_list() == pytest.approx([140 / 180, 40 / 180])
    assert (table.total_ns, table.shown_ns, table.apis) == (180, 180, 2)
    assert apis(call_table(A_STEP, raw=True)) == [
        "cudaStreamSynchronize_v3020",
        "cudaLaunchKernel",
        "cudaLaunchKernel_v7000",
    ]


def test_delay_queue_and_waits_come_with_it() -> None:
    table = call_table(A_STEP)
    assert table.delays.select("api", "calls", "delay_min_ns", "delay_max_ns", "queued_min_ns").rows() == [
        ("cudaLaunchKernel", 2, 15, 50, 5),
        (None, 2, 15, 50, 5),
    ]
    assert table.queues.select("device", "launches", "window_ns", "busy_ns", "queued_idle_ns", "starved_ns").rows() == [
        ("gpu:0", 3, 170, 145, 25, 0)
    ]
    assert table.waits.select("api", "count", "total_ns", "idle_ns").rows() == [("cudaStreamSynchronize", 1, 140, 40)]
    assert (table.launches, table.without_call) == (3, 1)


def test_the_first_things_to_see_are_said() -> None:
    text = said(call_table(A_STEP))
    assert (
        "cudaStreamSynchronize takes 77.8 % of the call time (140 ns, longest 140 ns), waiting for the device." in text
    )
    assert "No device of its process worked for 28.6 % of that (40 ns)." in text
    assert "Launch delay: median 32 ns, p99 50 ns, longest 50 ns." in text
    assert "Launches without a call in the file: 1 of 3" in text
    assert "starved" not in text


def test_a_starved_device_is_said_with_its_share() -> None:
    calls = [{"start_ns": 0, "correlation_id": 1}, {"start_ns": 90, "correlation_id": 2}]
    launches = [{"start_ns": 0, "dur_ns": 10, "correlation_id": 1}, {"start_ns": 95, "dur_ns": 5, "correlation_id": 2}]
    assert "gpu:0 is starved for 80.0 % of its window (80 ns): idle, and the host has queued nothing." in said(
        call_table(trace_with(calls, launches))
    )


def test_graph_launches_are_said_with_their_kernels() -> None:
    calls = [{"api": "cudaGraphLaunch_v10000", "correlation_id": i} for i in (1, 2)]
    launches = [{"start_ns": i, "correlation_id": 1 + i % 2, "graph_node_id": i} for i in range(60)]
    assert "60 launches come from 2 graph launches, 30 each on average." in said(
        call_table(trace_with(calls, launches))
    )
    assert "60 launches come from one graph launch." in said(
        call_table(trace_with(calls[:1], [launch | {"correlation_id": 1} for launch in launches]))
    )


def test_launch_calls_that_did_nothing_are_said() -> None:
    calls = [{"correlation_id": 1}, {"correlation_id": 2}]
    assert "No device work was recorded for 2 launch calls" in said(call_table(trace_with(calls)))
    assert "Launch calls without device work in the file: 1." in said(
        call_table(trace_with(calls, [{"correlation_id": 1}]))
    )


def test_allocations_and_clocks_that_disagree_are_said() -> None:
    calls: list[dict[str, Any]] = [{"api": "cudaMalloc_v3020", "dur_ns": 50}, {"start_ns": 50, "correlation_id": 1}]
    text = said(call_table(trace_with(calls, [{"start_ns": 30, "correlation_id": 1}])))
    assert "Allocating and freeing memory takes 98.0 % of the call time (cudaMalloc)" in text
    assert "Device work begins up to 20 ns before its call: the clocks of host and device disagree." in text


def test_no_calls_are_an_empty_table_that_says_how_to_record_them() -> None:
    table = call_table(trace_of([{}]))
    assert (table.frame.height, table.total_ns, table.delays["calls"].to_list()) == (0, 0, [0])
    assert [section.title for section in sections_of(table)] == ["Host calls"]
    assert "No host calls" in said(table)
    assert "--trace=cuda" in said(table)


def test_launches_that_no_call_can_be_found_for_are_said() -> None:
    assert "No launch can be tied to a call" in said(call_table(trace_with([{}], [{"correlation_id": 7}])))


@pytest.mark.parametrize("sort", get_args(SortKey))
def test_rows_stand_as_asked(sort: SortKey) -> None:
    calls = [{"api": f"cu{i % 5}", "dur_ns": (i * 7919) % 101} for i in range(60)]
    table = call_table(trace_with(calls), sort=sort)
    column = {"name": "api", "count": "count"}.get(sort, f"{sort}_ns")
    values = table.frame[column].to_list()
    assert values == sorted(values, reverse=sort != "name")


def test_matching_and_the_top_pick_rows_and_change_none() -> None:
    whole = call_table(A_STEP)
    some = call_table(A_STEP, match="Launch")
    assert some.frame.equals(whole.frame.filter(pl.col("api") == "cudaLaunchKernel"))
    assert (some.total_ns, some.shown_ns, some.apis) == (180, 40, 2)
    assert some.delays.equals(whole.delays)
    assert some.waits.height == 0
    top = call_table(A_STEP, top=1)
    assert apis(top) == ["cudaStreamSynchronize"]
    assert top.delays["api"].to_list() == [None]
    assert remarks_of(top)[0] == "1 of 2 APIs shown, 77.8 % of the call time."
    assert remarks_of(top)[1:] == remarks_of(whole)


def test_a_window_takes_calls_that_begin_in_it_and_looks_at_the_queue_within() -> None:
    table = call_table(A_STEP, HostSelection(between_ns=(20, 80)))
    assert table.frame.select("api", "count").rows() == [("cudaStreamSynchronize", 1), ("cudaLaunchKernel", 1)]
    assert table.delays["delay_min_ns"].to_list() == [50, 50]
    assert table.queues.select("start_ns", "window_ns", "busy_ns", "queued_idle_ns").rows() == [(20, 60, 45, 15)]
    assert table.waits["idle_ns"].to_list() == [40]
    assert (table.launches, table.without_call) == (1, 0)


def test_a_rank_is_chosen_and_an_unknown_one_refused() -> None:
    trace = trace_with(
        [{"rank": rank, "dur_ns": rank + 1, "correlation_id": 1} for rank in (0, 1)],
        [{"rank": rank, "correlation_id": 1, "start_ns": 10 * rank} for rank in (0, 1)],
    )
    one = call_table(trace, HostSelection(rank=1))
    assert (one.total_ns, one.launches, one.delays["delay_max_ns"].to_list()) == (2, 1, [10, 10])
    with pytest.raises(UnknownName, match='unknown rank "7"'):
        call_table(trace, HostSelection(rank=7))


def test_bad_options_are_refused() -> None:
    with pytest.raises(InputError, match="match: expected a regular expression"):
        call_table(A_STEP, match="(")
    with pytest.raises(InputError, match="between: expected two times in order"):
        call_table(A_STEP, HostSelection(between_ns=(5, 5)))


def test_json_is_complete_and_named_as_promised() -> None:
    data = call_table(A_STEP, top=1).as_json()
    assert list(data) == [
        *("source", "total_ns", "shown_ns", "apis", "launches", "launches_without_call", "rows", "launch_delay"),
        *("queues", "queue_series", "waits", "remarks", "losses"),
    ]
    assert data["rows"][0] | {"share": 0} == {
        "api": "cudaStreamSynchronize",
        "share": 0,
        "total_ns": 140,
        "count": 1,
        "mean_ns": 140.0,
        "median_ns": 140.0,
        "min_ns": 140,
        "max_ns": 140,
        "stddev_ns": 0.0,
    }
    assert len(data["queue_series"]) == 60


@given(st.lists(CALLS, max_size=25), st.lists(LAUNCHES, max_size=25), st.booleans())
@examples(80)
def test_any_trace_is_answered_and_its_time_conserved(
    calls: list[dict[str, Any]], launches: list[dict[str, Any]], raw: bool
) -> None:
    table = call_table(trace_of(launches, calls=calls), raw=raw)
    assert table.frame["total_ns"].sum() == table.total_ns == sum(call["dur_ns"] for call in calls)
    assert table.frame["count"].sum() == len(calls)
    tied = int(table.delays["launches"][-1])
    assert tied + table.without_call == table.launches == len(launches)
    keys = {(call["rank"], call["process"], call["correlation_id"]) for call in calls}
    found = [(each["rank"], each["process"], each["correlation_id"]) for each in launches]
    assert tied == sum(key in keys and key[2] is not None for key in found)
    for wait in table.waits.iter_rows(named=True):
        assert wait["idle_ns"] is None or 0 <= wait["idle_ns"] <= wait["total_ns"]
    assert table.as_json()["remarks"] == list(remarks_of(table))
    assert all(section.frame.height for section in sections_of(table)[1:])


@pytest.mark.parametrize("name", ["h100_qwen1.5-0.5b", "mi300_sglang_qwen3-8b_decode", "rank0_sampled", "cpu_only"])
def test_real_captures_read_only_the_columns_needed(name: str, shared_data: Path) -> None:
    path = shared_data / "traces" / "kineto" / f"{name}.json.gz"
    some, whole = call_table(inferometer.open(path, NEEDED)), call_table(inferometer.open(path))
    assert_frame_equal(some.frame, whole.frame)  # the deviation's last digits depend on the order of the sum
    assert some.queues.equals(whole.queues)
    assert some.without_call == whole.losses.total("launch_before_window")
