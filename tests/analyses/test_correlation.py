"""Which call queued a launch."""

from typing import Any

from tests.traces import trace_of

from inferometer.analyses.correlation import find_calls, tie_launches

CALL = {"api": "cudaLaunchKernel", "process": 1, "thread": 2, "start_ns": 0, "dur_ns": 1}


def tied(launches: list[dict[str, Any]], calls: list[dict[str, Any]]) -> list[int | None]:
    """The call of each launch, in the launches' order; both ways to tie agree."""
    trace = trace_of(launches, calls=[CALL | call for call in calls])
    numbered = trace.calls.with_row_index("call")
    found = tie_launches(trace.launches.with_row_index("launch"), numbered).sort("launch").collect()
    in_time = numbered.sort("start_ns", "call").collect()
    rows = find_calls(trace.launches.collect(), in_time).tolist()
    assert [None if row < 0 else in_time["call"][row] for row in rows] == found["call"].to_list()
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


def test_a_graph_launch_has_many_launches_and_of_equal_calls_the_first_is_meant() -> None:
    calls = [{"correlation_id": 5, "start_ns": 9}, {"correlation_id": 5, "start_ns": 3}]
    assert tied([{"process": 1, "correlation_id": 5}] * 3, calls) == [1, 1, 1]
