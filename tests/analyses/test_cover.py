"""Sets of times, against counting nanosecond by nanosecond."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples

from inferometer.analyses.cover import Cover

INTERVALS = st.lists(st.tuples(st.integers(-20, 40), st.integers(0, 12)), max_size=12)
WINDOWS = st.lists(st.tuples(st.integers(-25, 55), st.integers(0, 30)), min_size=1, max_size=6)


def columns(rows: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    start = np.array([first for first, _ in rows], dtype=np.int64)
    return start, start + np.array([length for _, length in rows], dtype=np.int64)


def test_intervals_that_overlap_or_touch_are_one_and_empty_ones_are_none() -> None:
    cover = Cover.of(*columns([(30, 5), (0, 10), (10, 2), (5, 3), (50, 0)]))
    assert (cover.start_ns.tolist(), cover.end_ns.tolist()) == ([0, 30], [12, 35])


@given(INTERVALS, WINDOWS)
@examples(150)
def test_covered_time_is_what_counting_gives(intervals: list[tuple[int, int]], windows: list[tuple[int, int]]) -> None:
    covered = {t for start, length in intervals for t in range(start, start + length)}
    found = Cover.of(*columns(intervals)).within(*columns(windows))
    assert found.tolist() == [len(covered & set(range(start, start + length))) for start, length in windows]
