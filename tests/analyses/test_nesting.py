"""Which range stands around a moment: against looking at every range for every moment."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples

from inferometer.analyses.nesting import (
    extremes_within,
    find_enclosed,
    find_innermost,
    find_nested,
    holds_any,
    order_ranges,
)

Range = tuple[int, int, int]  # lane, start, end
Point = tuple[int, int]  # lane, time

RANGES = st.lists(
    st.tuples(st.integers(0, 2), st.integers(-10, 20), st.integers(0, 15)).map(lambda r: (r[0], r[1], r[1] + r[2])),
    max_size=25,
)
pytestmark = pytest.mark.usefixtures("both_sizes")
POINTS = st.lists(st.tuples(st.integers(0, 3), st.integers(-12, 40)), max_size=25)


def columns(rows: Sequence[tuple[int, ...]], width: int) -> list[np.ndarray]:
    return [np.array([row[i] for row in rows], dtype=np.int64) for i in range(width)]


def innermost(ranges: list[Range], points: list[Point]) -> list[int]:
    return find_innermost(*columns(ranges, 3), *columns(points, 2)).tolist()


def search_slowly(ranges: list[Range], point: Point) -> int:
    """Looks at every range: the latest start, then the earliest end, then the last given."""
    around = [
        (start, -end, i) for i, (lane, start, end) in enumerate(ranges) if lane == point[0] and start <= point[1] < end
    ]
    return max(around)[2] if around else -1


def test_the_innermost_of_nested_ranges_is_found() -> None:
    outer, inner, later = (0, 0, 100), (0, 10, 20), (0, 30, 40)
    points = [(0, -1), (0, 0), (0, 10), (0, 19), (0, 20), (0, 35), (0, 99), (0, 100)]
    assert innermost([later, inner, outer], points) == [-1, 2, 1, 1, 2, 0, 2, -1]


def test_ranges_that_overlap_without_nesting_are_told_by_who_began_last() -> None:
    first, second = (0, 0, 10), (0, 5, 15)
    assert innermost([first, second], [(0, 4), (0, 7), (0, 12), (0, 15)]) == [0, 1, 1, -1]


def test_a_long_range_is_found_below_a_shorter_one_that_began_later() -> None:
    long, short, crossing = (0, 0, 20), (0, 5, 10), (0, 8, 15)
    assert innermost([long, short, crossing], [(0, 6), (0, 9), (0, 12), (0, 16)]) == [1, 2, 2, 0]


def test_of_ranges_that_begin_at_once_the_shortest_is_meant_and_of_equal_ones_the_last() -> None:
    assert innermost([(0, 0, 5), (0, 0, 9), (0, 0, 5)], [(0, 2), (0, 7)]) == [2, 1]


def test_lanes_do_not_see_each_other_and_instants_hold_nothing() -> None:
    assert innermost([(1, 0, 9), (2, 3, 3)], [(1, 3), (2, 3), (7, 3)]) == [0, -1, -1]


@pytest.mark.parametrize(("ranges", "points"), [([], [(0, 1)]), ([(0, 0, 5)], []), ([], [])])
def test_nothing_is_found_in_nothing(ranges: list[Range], points: list[Point]) -> None:
    assert innermost(ranges, points) == [-1] * len(points)
    assert [len(each) for each in find_enclosed(*columns(ranges, 3), *columns(points, 2))] == [len(ranges)] * 2


@given(RANGES, POINTS)
@examples(300)
def test_any_ranges_are_found_as_by_looking_at_every_one(ranges: list[Range], points: list[Point]) -> None:
    assert innermost(ranges, points) == [search_slowly(ranges, point) for point in points]


@given(RANGES)
@examples(300)
def test_ranges_nest_unless_two_cross_or_one_is_empty(ranges: list[Range]) -> None:
    of_lane = sorted(((start, end) for _, start, end in ranges), key=lambda each: (each[0], -each[1]))
    crosses = any(a < c < b < d for a, b in of_lane for c, d in of_lane)
    is_empty = any(start == end for start, end in of_lane)
    nested = find_nested(*columns(of_lane, 2))

    if not of_lane or crosses or is_empty:
        assert nested is None
        return
    assert nested is not None
    around = [max((j for j in range(i) if of_lane[j][1] >= end), default=-1) for i, (_, end) in enumerate(of_lane)]
    depths: list[int] = []
    for j in around:
        depths.append(0 if j < 0 else depths[j] + 1)
    assert nested.parent.tolist() == around
    assert [level.tolist() for level in nested.levels] == [
        [i for i, depth in enumerate(depths) if depth == level] for level in range(1 + max(depths))
    ]


def test_what_nests_too_deep_is_left_to_a_sweep() -> None:
    deep = np.arange(2_000, dtype=np.int64)

    assert find_nested(deep, 5_000 - deep) is not None
    assert find_nested(np.arange(2_001), 5_000 - np.arange(2_001)) is None


@given(RANGES, POINTS)
@examples(150)
def test_enclosed_points_are_those_from_the_start_up_to_the_end(ranges: list[Range], points: list[Point]) -> None:
    points.sort()
    first, last = find_enclosed(*columns(ranges, 3), *columns(points, 2))
    for (lane, start, end), a, b in zip(ranges, first.tolist(), last.tolist(), strict=True):
        assert points[a:b] == [point for point in points if point[0] == lane and start <= point[1] < end]
    assert holds_any(*columns(ranges, 3), *columns(points, 2)).tolist() == (first < last).tolist()


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 4), st.integers(0, 4), st.integers(0, 2)), max_size=20))
@examples(150)
def test_ranges_are_in_order_of_lane_and_start_the_longest_first(rows: list[tuple[int, int, int, int]]) -> None:
    by_end = sorted(range(len(rows)), key=lambda i: (*rows[i][:2], -rows[i][2]))
    by_rank = sorted(range(len(rows)), key=lambda i: (*rows[i][:2], -rows[i][2], rows[i][3]))
    assert order_ranges(*columns(rows, 3)).tolist() == by_end
    assert order_ranges(*columns(rows, 4)).tolist() == by_rank


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=70), st.data())
@examples(100)
def test_extremes_are_those_of_the_slice(values: list[int], data: st.DataObject) -> None:
    pair = st.tuples(st.integers(0, len(values) - 1), st.integers(1, len(values)))
    pairs = [(a, min(a + n, len(values))) for a, n in data.draw(st.lists(pair, max_size=20))]
    first, last = columns(pairs, 2)
    array = np.array(values, dtype=np.int64)
    assert extremes_within(array, first, last, largest=False).tolist() == [min(values[a:b]) for a, b in pairs]
    assert extremes_within(array, first, last, largest=True).tolist() == [max(values[a:b]) for a, b in pairs]


def test_deep_nesting_does_not_slow_the_sweep_down() -> None:
    n = 100_000  # every range holds all later ones: looking at every one would take 10^10 steps
    start = np.arange(n)
    lane = np.zeros(n, dtype=np.int64)
    times = np.concatenate((np.arange(n), 2 * n - 1 - np.arange(n)))
    found = find_innermost(lane, start, 2 * n - start, np.zeros(2 * n, dtype=np.int64), times)
    assert found.tolist() == [*range(n), *range(n)]
