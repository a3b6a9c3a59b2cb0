"""Overlaps within a stream: which are by design, which contradict the stream's order, and that each is counted once."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.traces import LAUNCH, add_rows

import inferometer
from inferometer.trace.builder import TraceBuilder
from inferometer.trace.checks import check_launches

NAMES = ("overlaps_in_graph", "overlaps_in_stream", "overflows_stream")


def overlaps(launches: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """The counts of `NAMES` that are not 0."""
    out = TraceBuilder({"launches"})
    add_rows(out, "launches", [LAUNCH | dict(launch) for launch in launches])
    check_launches(out)
    return {name: out.losses.total(name) for name in NAMES if out.losses.total(name)}


def launch(start_ns: int, dur_ns: int, correlation_id: int | None, **others: Any) -> dict[str, Any]:
    return {"start_ns": start_ns, "dur_ns": dur_ns, "correlation_id": correlation_id, "process": 1, **others}


def test_branches_of_one_graph_launch_run_in_parallel() -> None:
    branches = [launch(0, 100, 5), launch(10, 20, 5), launch(30, 20, 5), launch(60, 60, 5)]
    assert overlaps([*branches, launch(120, 5, 6)]) == {"overlaps_in_graph": 1}


def test_a_branch_that_outlasts_its_graph_launch_has_a_wrong_end() -> None:
    graph = [launch(0, 1_000, 5), launch(10, 20, 5)]
    assert overlaps([*graph, launch(50, 5, 6), launch(60, 5, 7)]) == {"overflows_stream": 1}


def test_a_kernel_that_starts_before_the_one_ahead_ends_is_an_early_start() -> None:
    chain = [launch(0, 100, 1), launch(90, 100, 2), launch(180, 100, 3)]
    assert overlaps(chain) == {"overlaps_in_stream": 2}


def test_one_launch_inside_another_does_not_prove_a_wrong_end() -> None:
    assert overlaps([launch(0, 100, 1), launch(90, 5, 2), launch(100, 5, 3)]) == {"overlaps_in_stream": 1}


def test_two_wrong_ends_in_a_row_are_two() -> None:
    giants = [launch(0, 1_600_000, 1), launch(5, 1_600_000, 2)]
    assert overlaps([*giants, launch(10, 5, 3), launch(20, 5, 4)]) == {"overflows_stream": 2}


@pytest.mark.parametrize("unknown", [None, 0])
def test_launches_without_a_call_are_of_different_calls(unknown: int | None) -> None:
    giant = [launch(0, 1_000, unknown), launch(10, 5, unknown), launch(20, 5, unknown)]
    assert overlaps(giant) == {"overflows_stream": 1}


def test_equal_correlation_ids_of_two_processes_are_two_calls() -> None:
    both = [launch(0, 10, 5), launch(5, 10, 5, process=2)]
    assert overlaps(both) == {}  # their streams are their own, too
    assert overlaps([row | {"stream": None} for row in both]) == {}


def test_streams_are_in_order_each_for_itself() -> None:
    assert overlaps([launch(0, 100, 1), launch(10, 5, 2, stream=8), launch(20, 5, 3, device="gpu:1")]) == {}


ROWS = st.lists(
    st.tuples(
        st.integers(0, 40),
        st.sampled_from([0, 1, 2, 5, 9, 30]),
        st.sampled_from([None, 0, 1, 2, 3, 4, 5, 6]),
        st.sampled_from([7, 7, 8, None]),
    ),
    max_size=12,
    unique_by=lambda row: (row[0], row[1]),
)


@given(ROWS)
def test_the_counts_are_those_of_the_definition(drawn: list[tuple[int, int, int | None, int | None]]) -> None:
    expected = dict.fromkeys(NAMES, 0)
    for stream in (7, 8):
        lane = sorted((start, start + dur, call) for start, dur, call, on in drawn if on == stream)
        for i, (_, end, call) in enumerate(lane):
            after = i + 1
            while call and after < len(lane) and lane[after][2] == call:
                after += 1
            if not any(start < end - 1 for start, _, _ in lane[i + 1 :]):
                continue
            if not any(start < end - 1 for start, _, _ in lane[after:]):
                expected["overlaps_in_graph"] += 1
            elif sum(other < end - 1 for _, other, _ in lane[after:]) >= 2:
                expected["overflows_stream"] += 1
            else:
                expected["overlaps_in_stream"] += 1
    launches = [launch(start, dur, call, stream=on) for start, dur, call, on in drawn]
    assert overlaps(launches) == {name: n for name, n in expected.items() if n}


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("v100_graph_branches", {"overlaps_in_graph": 31}),
        ("a100_idle_64", {"overlaps_in_stream": 1}),  # a copy that starts 2 μs before a kernel ends; times are whole μs
        ("mi300_sglang_qwen3-8b_decode", {}),
    ],
)
def test_real_overlaps_are_no_warnings(shared_data: Path, name: str, counts: dict[str, int]) -> None:
    with inferometer.open(shared_data / "traces" / "kineto" / f"{name}.json.gz", {"launches"}) as trace:
        losses = {loss.name: (loss.count, loss.severity) for loss in trace.losses if loss.name in NAMES}
    assert losses == {name: (n, "info") for name, n in counts.items()}
