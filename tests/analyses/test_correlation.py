"""Which call queued a launch."""

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples
from tests.traces import trace_of

from inferometer.analyses.correlation import NO_CALL, find_calls, gather_known, tie_launches, when_asked

pytestmark = pytest.mark.usefixtures("both_sizes")

CALL = {"api": "cudaLaunchKernel", "process": 1, "thread": 2, "start_ns": 0, "dur_ns": 1}


def tied(launches: list[dict[str, Any]], calls: list[dict[str, Any]]) -> list[int | None]:
    """The call of each launch, in the launches' order; both ways to tie agree."""
    trace = trace_of(launches, calls=[CALL | call for call in calls])
    numbered = trace.calls.with_row_index("call")
    found = tie_launches(trace.launches.with_row_index("launch"), numbered).sort("launch").collect()
    rows = find_calls(trace.launches.collect(), trace.calls.collect()).tolist()
    assert [None if row < 0 else row for row in rows] == found["call"].to_list()
    return found["call"].to_list()


def test_ids_tie_within_one_process_and_rank() -> None:
    calls = [
        {"rank": 0, "process": 1, "correlation_id": 5},
        {"rank": 0, "process": 2, "correlation_id": 5},
        {"rank": 1, "process": 1, "correlation_id": 5},
    ]
    launches = [
        {"rank": 1, "process": 1, "correlation_id": 5},
        {"rank": 0, "process": 2, "correlation_id": 5},
        {"rank": 0, "process": 1, "correlation_id": 6},
        {"rank": 0, "process": 3, "correlation_id": 5},
    ]
    assert tied(launches, calls) == [2, 1, None, None]


def test_an_unknown_rank_or_process_is_a_value_and_an_unknown_id_is_none() -> None:
    calls: list[dict[str, Any]] = [{"process": None, "correlation_id": 5}, {"process": None, "correlation_id": None}]
    launches: list[dict[str, Any]] = [
        {"correlation_id": 5},
        {"correlation_id": None},
        {"correlation_id": 5, "process": 1},
    ]
    assert tied(launches, calls) == [0, None, None]


def test_an_unknown_id_is_not_0() -> None:
    ids: list[dict[str, Any]] = [{"process": 1, "correlation_id": 0}, {"process": 1, "correlation_id": None}]
    assert tied(ids, ids) == [0, None]


def test_processes_of_one_rank_have_ids_of_their_own() -> None:
    calls = [{"process": process, "correlation_id": 5} for process in (1, 2)]
    assert tied([{"process": 2, "correlation_id": 5}], calls) == [1]


def test_a_graph_launch_has_many_launches_and_of_equal_calls_the_first_is_meant() -> None:
    calls = [{"correlation_id": 5, "start_ns": 9}, {"correlation_id": 5, "start_ns": 3}]
    assert tied([{"process": 1, "correlation_id": 5}] * 3, calls) == [1, 1, 1]
    calls = [{"correlation_id": 7, "start_ns": 3}, *({"correlation_id": 5, "start_ns": start} for start in (9, 6))]
    assert tied([{"process": 1, "correlation_id": 5}], calls) == [2]


def test_ids_far_from_all_others_are_found_too() -> None:
    ids = [7, 2**62, 5, -(2**63), 6, 2**63 - 1, 6]
    calls = [{"correlation_id": each, "start_ns": number} for number, each in enumerate(ids)]
    wanted = [5, 2**63 - 1, 4, -(2**63), 2**62, 6, 2**62 - 1]
    assert tied([{"process": 1, "correlation_id": each} for each in wanted], calls) == [2, 5, None, 3, 1, 4, None]


@pytest.mark.parametrize(
    ("ids", "wanted", "rows"),
    [
        ([5, 6, 7], [7, 4, 8, 5], [2, -1, -1, 0]),
        ([5, 6, 7, 2**61, 2**62], [2**62, 2**61, 7], [4, 3, 2]),
        ([5, 6, 7, 2**61], [2**62, 7], [-1, 2]),
        ([-(2**63), 5, 6, 7], [7, -(2**63), 4], [3, 0, -1]),
        (range(1_000), [999, 1_000, 0], [999, -1, 0]),
    ],
)
def test_calls_are_found_by_their_rows_and_minus_1_is_none(ids: list[int], wanted: list[int], rows: list[int]) -> None:
    owner = {"rank": 0, "process": 1}
    calls, launches = (pl.DataFrame([owner | {"correlation_id": each} for each in some]) for some in (ids, wanted))
    assert find_calls(launches, calls.with_columns(start_ns=pl.int_range(pl.len()))).tolist() == rows


OWNED = st.fixed_dictionaries(
    {
        "rank": st.sampled_from([None, 0]),
        "process": st.sampled_from([None, 1, 2]),
        "correlation_id": st.none() | st.integers(0, 6) | st.sampled_from([2**40, -(2**63)]),
        "start_ns": st.integers(0, 9),
    }
)


@given(st.lists(OWNED, max_size=12), st.lists(OWNED, max_size=12))
@examples(100)
def test_both_ways_to_tie_agree(launches: list[dict[str, Any]], calls: list[dict[str, Any]]) -> None:
    tied(launches, calls)


def test_rows_at_unknown_places_are_null() -> None:
    rows = pl.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    assert gather_known(rows, np.array([1, NO_CALL, 0])).rows() == [(2, "y"), (None, None), (1, "x")]
    assert gather_known(rows, np.array([1, 1])).rows() == [(2, "y"), (2, "y")]
    assert gather_known(rows, np.array([NO_CALL])).rows() == [(None, None)]


@pytest.mark.parametrize("tables", [{"launches", "calls"}, {"launches"}])
def test_work_was_asked_for_when_its_call_began_and_on_the_cpu_when_it_began_itself(tables: set[str]) -> None:
    launches: list[dict[str, Any]] = [
        {"start_ns": 900, "process": 1, "correlation_id": 5},
        {"start_ns": 950, "process": 1, "correlation_id": 6},
        {"start_ns": 990, "device": "cpu"},
    ]
    trace = trace_of(launches, tables=tables, calls=[CALL | {"start_ns": 300, "correlation_id": 5}])
    found = when_asked(trace.launches.collect(), trace)
    assert (found.name, found.to_list()) == ("asked_ns", [300 if "calls" in tables else None, None, 990])
