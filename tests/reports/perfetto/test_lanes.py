"""Slices of one lane nest or lie side by side, however they overlap."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples

from inferometer.reports.perfetto.lanes import assign_lanes

INTERVALS = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 15)), max_size=60)


def lanes_of(*slices: tuple[int, int]) -> list[int]:
    starts, ends = (np.array(each, np.int64) for each in zip(*slices, strict=True))
    return assign_lanes(starts, ends).tolist()


@pytest.mark.parametrize(
    ("slices", "lanes"),
    [
        ([(0, 10), (10, 20), (20, 30)], [0, 0, 0]),
        ([(0, 10), (2, 8), (3, 4), (8, 10), (10, 11)], [0, 0, 0, 0, 0]),
        ([(0, 10), (5, 15), (15, 20)], [0, 1, 0]),
        ([(0, 10), (5, 15), (6, 14), (7, 9)], [0, 1, 1, 0]),
        ([(0, 10), (5, 15), (6, 16), (12, 13)], [0, 1, 2, 0]),
    ],
)
def test_a_slice_that_crosses_an_end_goes_to_the_next_lane(slices: list[tuple[int, int]], lanes: list[int]) -> None:
    assert lanes_of(*slices) == lanes


@given(INTERVALS)
@examples(300)
def test_no_two_slices_of_a_lane_cross(intervals: list[tuple[int, int]]) -> None:
    slices = sorted(((start, start + dur) for start, dur in intervals), key=lambda each: (each[0], -each[1]))
    lanes = lanes_of(*slices) if slices else []
    for i, (start, end) in enumerate(slices):
        for (other, other_end), lane in zip(slices[i + 1 :], lanes[i + 1 :], strict=True):
            assert lane != lanes[i] or other >= end or (start <= other and other_end <= end)


def test_many_slices_that_all_overlap_are_placed_in_a_moment() -> None:
    """One lane for each, without a search through all of them."""
    n = 20_000
    starts = np.arange(n, dtype=np.int64)
    began = time.process_time()
    assert len(set(assign_lanes(starts, starts + n).tolist())) == n
    assert time.process_time() - began < 2
