"""Which calls wait for the device, and how long the device had nothing to do meanwhile."""

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples

from inferometer.analyses.timeline.waits import find_waits

CALL = {"api": "cudaStreamSynchronize", "rank": None, "process": 1, "start_ns": 0, "dur_ns": 10, "ended_ns": None}
LAUNCH = {"rank": None, "process": 1, "start_ns": 0, "dur_ns": 1}


def waits(calls: list[dict[str, Any]], launches: list[dict[str, Any]]) -> list[dict[str, Any]]:
    called = pl.DataFrame([CALL | call for call in calls], schema_overrides={"rank": pl.Int64, "ended_ns": pl.Int64})
    schema = dict.fromkeys(LAUNCH, pl.Int64)
    return find_waits(called, pl.DataFrame([LAUNCH | launch for launch in launches], schema=schema)).to_dicts()


def test_waits_are_counted_by_api_with_the_time_in_which_no_device_worked() -> None:
    calls: list[dict[str, Any]] = [
        {"dur_ns": 10},
        {"start_ns": 100, "dur_ns": 30},
        {"api": "cudaDeviceSynchronize", "dur_ns": 4},
    ]
    launches = [{"start_ns": 2, "dur_ns": 3}, {"start_ns": 90, "dur_ns": 20}, {"start_ns": 120, "dur_ns": 100}]
    assert waits(calls, launches) == [
        {
            "api": "cudaStreamSynchronize",
            "kind": "synchronize",
            "count": 2,
            "of_calls": 2,
            "total_ns": 40,
            "max_ns": 30,
            "idle_ns": 7 + 10,
            "idle_share": 17 / 40,
        },
        {
            "api": "cudaDeviceSynchronize",
            "kind": "synchronize",
            "count": 1,
            "of_calls": 1,
            "total_ns": 4,
            "max_ns": 4,
            "idle_ns": 2,
            "idle_share": 0.5,
        },
    ]


@pytest.mark.parametrize(
    ("api", "ended_ns", "waited"),
    [
        ("cudaMemcpyAsync", 9, True),
        ("cudaMemcpyAsync", 10, True),
        ("cudaMemcpyAsync", 11, False),
        ("cudaMemcpyAsync", None, False),
        ("cudaMemcpy", 9, True),
        ("cudaMemcpy", 11, False),  # returned before its copy had ended
        ("cudaMemcpy", None, True),  # by its name: no device work tells
        ("hipMemcpyWithStream_spt", 9, True),
        ("cudaLaunchKernel", 9, False),
        ("cudaFree", None, False),
        ("cudaStreamWaitEvent", None, False),
    ],
)
def test_a_copy_waits_when_it_returned_after_its_end(api: str, ended_ns: int | None, waited: bool) -> None:
    found = waits([{"api": api, "ended_ns": ended_ns}], [{}])
    assert [row["kind"] for row in found] == (["copy"] if waited else [])


def test_only_devices_of_the_same_process_count_where_launches_tell_it() -> None:
    elsewhere = {"process": 2, "start_ns": 0, "dur_ns": 10}
    assert [row["idle_ns"] for row in waits([{}], [elsewhere])] == [10]
    assert [row["idle_ns"] for row in waits([{}], [elsewhere | {"process": None}])] == [0]


def test_without_launches_idle_time_is_not_known() -> None:
    assert [(row["idle_ns"], row["idle_share"]) for row in waits([{}], [])] == [(None, None)]


def test_calls_that_take_no_time_have_no_share() -> None:
    assert [(row["total_ns"], row["idle_share"]) for row in waits([{"dur_ns": 0}], [{}])] == [(0, None)]


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 15)), min_size=1, max_size=6),
    st.lists(st.tuples(st.integers(-5, 40), st.integers(0, 12)), min_size=1, max_size=8),
)
@examples(80)
def test_idle_time_is_what_counting_gives(calls: list[tuple[int, int]], launches: list[tuple[int, int]]) -> None:
    found = waits(
        [{"start_ns": start, "dur_ns": dur} for start, dur in calls],
        [{"start_ns": start, "dur_ns": dur} for start, dur in launches],
    )
    busy = {t for start, dur in launches for t in range(start, start + dur)}
    assert found[0]["total_ns"] == sum(dur for _, dur in calls)
    assert found[0]["idle_ns"] == sum(t not in busy for start, dur in calls for t in range(start, start + dur))
