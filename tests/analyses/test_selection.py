"""Which launches a question is about: a device, a stream, a rank, a window of time."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples
from tests.traces import trace_of

from inferometer.analyses.selection import Selection
from inferometer.analyses.tables.kernels import kernel_table
from inferometer.errors import InputError, UnknownName
from inferometer.trace.trace import Trace

OP = {"op": "aten::mm", "start_ns": 1_000, "dur_ns": 10}


def make_trace() -> Trace:
    places = [("gpu:0", 7, 0), ("gpu:0", 8, 0), ("gpu:1", 7, 1), (None, None, None)]
    return trace_of(
        [
            {"device": device, "stream": stream, "rank": rank, "start_ns": 2_000 + 100 * i, "dur_ns": 10**i}
            for i, (device, stream, rank) in enumerate(places)
        ],
        ops=[OP],
    )


@pytest.mark.parametrize(
    ("selection", "total_ns"),
    [
        (Selection(), 1111),
        (Selection(device="gpu:0"), 11),
        (Selection(device="0"), 11),
        (Selection(device="gpu:1"), 100),
        (Selection(stream=7), 101),
        (Selection(rank=0), 11),
        (Selection(device="0", stream=8, rank=0), 10),
        (Selection(device="1", stream=7, between_ns=(0, 10**9)), 100),
        (Selection(between_ns=(0, 1_100)), 1),
        (Selection(between_ns=(1_000, 1_101)), 11),
        (Selection(between_ns=(1_000, 1_100)), 1),
        (Selection(between_ns=(-5, 1_001)), 1),
        (Selection(between_ns=(0, 1)), 0),
    ],
)
def test_launches_are_those_selected(selection: Selection, total_ns: int) -> None:
    assert kernel_table(make_trace(), selection).total_ns == total_ns


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        (Selection(device="gpu:2"), 'unknown device "gpu:2"\n  Known, nearest first: gpu:0, gpu:1'),
        (Selection(device="2"), 'unknown device "gpu:2"'),
        (Selection(stream=9), 'unknown stream "9"\n  Known, nearest first: 7, 8'),
        (Selection(rank=3), 'unknown rank "3"\n  Known, nearest first: 0, 1'),
    ],
)
def test_an_unknown_place_lists_the_known_ones(selection: Selection, message: str) -> None:
    with pytest.raises(UnknownName) as caught:
        kernel_table(make_trace(), selection)
    assert str(caught.value).startswith(message)


def test_a_rank_without_device_work_is_known() -> None:
    trace = trace_of([{"rank": 0}], facts={"ranks": (0, 8)})
    assert kernel_table(trace, Selection(rank=8)).kernels == 0


def test_a_trace_without_ranks_knows_none() -> None:
    with pytest.raises(UnknownName, match="No rank is known here"):
        kernel_table(trace_of([{}]), Selection(rank=0))


@pytest.mark.parametrize("window", [(5, 5), (5, 4), (0, -1)])
def test_a_window_out_of_order_is_refused(window: tuple[int, int]) -> None:
    with pytest.raises(InputError, match="expected two times in order"):
        kernel_table(make_trace(), Selection(between_ns=window))


def test_a_window_behind_the_trace_is_refused() -> None:
    with pytest.raises(InputError, match="begins at 9,999 ns, but by hand is only 2,300 ns long"):
        kernel_table(make_trace(), Selection(between_ns=(9_999, 99_999)))


def test_a_window_of_a_trace_without_times_is_refused() -> None:
    with pytest.raises(InputError, match="has no times"):
        kernel_table(trace_of(), Selection(between_ns=(0, 1)))


def test_a_window_needs_every_table_since_any_may_hold_the_start() -> None:
    with pytest.raises(InputError, match="was not read"):
        kernel_table(trace_of([{}], tables={"launches"}), Selection(between_ns=(0, 1)))


@given(
    st.lists(st.tuples(st.integers(0, 500), st.integers(0, 50)), min_size=1, max_size=30),
    st.lists(st.integers(1, 499), max_size=6, unique=True),
)
@examples(50)
def test_adjoining_windows_add_up(launches: list[tuple[int, int]], cuts: list[int]) -> None:
    trace = trace_of(
        [{"start_ns": start, "dur_ns": dur} for start, dur in launches],
        ops=[{"op": "whole", "start_ns": 0, "dur_ns": 1_000}],
    )
    edges = [0, *sorted(cuts), 501]
    parts = [kernel_table(trace, Selection(between_ns=pair)) for pair in pairwise(edges)]
    assert sum(part.total_ns for part in parts) == kernel_table(trace).total_ns
    assert sum(int(part.frame["count"].sum()) for part in parts) == len(launches)
