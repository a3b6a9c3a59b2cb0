"""Unions of intervals, and where they meet, against counting nanosecond by nanosecond."""

from collections import defaultdict
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.analyses.intervals import Times, busy_by, busy_sums, concurrent_sums, longest_pauses, merge

pytestmark = pytest.mark.usefixtures("both_sizes")

ROW = st.tuples(st.sampled_from(["a", "b", None]), st.integers(-20, 40), st.integers(0, 25))
SCHEMA = {"device": pl.String, "start_ns": pl.Int64, "dur_ns": pl.Int64}


def busy(*rows: tuple[str | None, int, int]) -> dict[str | None, int]:
    frame = pl.DataFrame(list(rows), schema=SCHEMA, orient="row")
    return dict(busy_by(frame, ["device"]).rows())


@pytest.mark.parametrize(
    ("intervals", "total"),
    [
        ([(0, 10)], 10),
        ([(0, 10), (10, 5)], 15),
        ([(0, 10), (12, 5)], 15),
        ([(0, 10), (2, 5)], 10),
        ([(2, 5), (0, 10), (8, 10)], 18),
        ([(0, 10), (0, 10), (0, 10)], 10),
        ([(0, 100), (1, 1), (50, 60)], 110),
        ([(5, 0), (5, 0)], 0),
    ],
)
def test_what_is_open_at_least_once_counts_once(intervals: list[tuple[int, int]], total: int) -> None:
    assert busy(*(("a", start, dur) for start, dur in intervals)) == {"a": total}


def test_groups_do_not_mix_and_nulls_are_a_group() -> None:
    assert busy(("a", 0, 10), ("b", 5, 10), (None, 0, 3), (None, 2, 3)) == {"a": 10, "b": 10, None: 5}


def test_no_intervals_are_no_groups() -> None:
    assert busy() == {}


@given(st.lists(ROW, max_size=25))
def test_any_intervals_are_as_busy_as_counting_says(rows: list[tuple[str | None, int, int]]) -> None:
    open_ns = defaultdict[str | None, set[int]](set)
    summed: defaultdict[str | None, int] = defaultdict(int)
    for device, start, dur in rows:
        open_ns[device].update(range(start, start + dur))
        summed[device] += dur
    found = busy(*rows)
    assert found == {device: len(times) for device, times in open_ns.items()}
    for device, total in found.items():
        assert max(dur for name, _, dur in rows if name == device) <= total <= summed[device]


@given(st.lists(ROW, max_size=25), st.randoms(use_true_random=False))
def test_order_changes_nothing(rows: list[tuple[str | None, int, int]], order: object) -> None:
    shuffled = list(rows)
    order.shuffle(shuffled)  # type: ignore[attr-defined]
    assert busy(*shuffled) == busy(*rows)


def arrays(rows: list[tuple[str | None, int, int]]) -> tuple[list[str | None], Times, Times, Times]:
    """The devices, and of each row the number of its device, its start and its end."""
    names = sorted({name for name, *_ in rows}, key=str)
    columns = ([names.index(name), start, start + dur] for name, start, dur in rows)
    group, start, end = np.array(list(columns), dtype=np.int64).reshape(-1, 3).T
    return names, group, start, end


def concurrent(*rows: tuple[str | None, int, int]) -> dict[str | None, int]:
    names, group, start, end = arrays(list(rows))
    return dict(zip(names, concurrent_sums(group, start, end, len(names)).tolist(), strict=True))


@given(st.lists(ROW, max_size=25))
def test_arrays_are_as_busy_as_frames(rows: list[tuple[str | None, int, int]]) -> None:
    names, group, start, end = arrays(rows)
    assert dict(zip(names, busy_sums(group, start, end, len(names)).tolist(), strict=True)) == busy(*rows)


@given(st.lists(ROW, max_size=25))
def test_the_longest_pause_is_the_longest_run_of_moments_without_any(rows: list[tuple[str | None, int, int]]) -> None:
    names, group, start, end = arrays(rows)
    found = longest_pauses(group, start, end, len(names))
    for name, longest in zip(names, found.tolist(), strict=True):
        own = [(start, start + dur) for device, start, dur in rows if device == name]
        edges = sorted({edge for one in own for edge in one})
        pauses = [
            after - before
            for before, after in pairwise(edges)
            if not any(first <= before and after <= last for first, last in own)
        ]
        assert longest == max(pauses, default=0)


def test_groups_whose_times_are_far_apart_are_summed_one_by_one() -> None:
    far = 2**61
    group, start = np.array([0, 0, 1, 1, 2]), np.array([-far, 1 - far, far, far + 5, 0])
    assert busy_sums(group, start, start + 3, 4).tolist() == [4, 6, 3, 0]
    assert concurrent_sums(group, start, start + 3, 4).tolist() == [2, 0, 0, 0]


@pytest.mark.parametrize(
    ("intervals", "total"),
    [
        ([(0, 10)], 0),
        ([(0, 10), (10, 5)], 0),
        ([(0, 10), (2, 5)], 5),
        ([(0, 10), (0, 10), (0, 10)], 10),
        ([(0, 100), (10, 10), (15, 10), (90, 20)], 25),
        ([(5, 0), (5, 0), (0, 9)], 0),
    ],
)
def test_what_is_open_twice_or_more_is_concurrent(intervals: list[tuple[int, int]], total: int) -> None:
    assert concurrent(*(("a", start, dur) for start, dur in intervals)) == {"a": total}


@given(st.lists(ROW, max_size=25))
def test_any_intervals_meet_for_as_long_as_counting_says(rows: list[tuple[str | None, int, int]]) -> None:
    opened = defaultdict[str | None, list[int]](list)
    for device, start, dur in rows:
        opened[device] += range(start, start + dur)
    assert concurrent(*rows) == {name: len({t for t in ts if ts.count(t) > 1}) for name, ts in opened.items()}


@given(st.lists(st.tuples(st.integers(-20, 40), st.integers(0, 25)), max_size=25))
def test_merged_intervals_are_the_union_apart_and_in_order(rows: list[tuple[int, int]]) -> None:
    rows = sorted(rows)
    start = np.array([row[0] for row in rows], np.int64)
    first, last = merge(start, start + np.array([row[1] for row in rows], np.int64))
    assert (first[1:] > last[:-1]).all()
    covered = [t for pair in zip(first.tolist(), last.tolist(), strict=True) for t in range(*pair)]
    assert covered == sorted({t for begin, dur in rows for t in range(begin, begin + dur)})
