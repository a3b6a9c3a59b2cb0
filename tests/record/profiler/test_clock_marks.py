import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from inferometer.record.profiler.clock_marks import Mark, align


def _mark(
    name: str, group: int, at: int, *, offset: int, early: int = 10, late: int = 10
) -> tuple[Mark, tuple[int, int]]:
    """A range from `at` to `at + 100` of the profiler, between readings `early` before and `late` behind."""
    start, end = at + offset, at + 100 + offset
    return Mark(name, group, start - early, start + late, end - early, end + late), (at, at + 100)


def test_offset_lies_within_the_bounds_that_all_marks_allow() -> None:
    wide, wide_at = _mark("a", 0, 1_000, offset=500, early=2_000, late=10)
    other, other_at = _mark("b", 0, 2_000, offset=500, early=20, late=3_000)
    found = align([wide, other], {"a": wide_at, "b": other_at})
    assert found is not None
    assert abs(found.offset_ns - 500) <= found.error_ns
    assert found.error_ns == 16  # from 20 below to 10 above, and one for rounding


def test_marks_at_both_ends_give_the_drift() -> None:
    first, first_at = _mark("a", 0, 0, offset=500)
    last, last_at = _mark("b", 1, 1_000_000_000, offset=1_500)
    found = align([first, last], {"a": first_at, "b": last_at})
    assert found is not None
    assert found.drift == 1e-6
    assert found.apply(np.array([50, 500_000_050, 1_000_000_050])).tolist() == [550, 500_001_050, 1_000_001_550]


def test_nothing_recorded_is_no_alignment() -> None:
    mark, _ = _mark("a", 0, 0, offset=0)
    assert align([mark], {}) is None
    assert align([], {"a": (0, 1)}) is None


def test_bounds_that_contradict_each_other_make_the_error_larger() -> None:
    mark, at = _mark("a", 0, 1_000, offset=500)
    other, other_at = _mark("b", 0, 2_000, offset=700)
    found = align([mark, other], {"a": at, "b": other_at})
    assert found is not None
    assert found.offset_ns == 600
    assert found.error_ns >= 90


@given(
    offset=st.integers(-(2**62), 2**62),
    drift=st.integers(-100, 100),
    slack=st.lists(st.tuples(st.integers(0, 5_000), st.integers(0, 5_000)), min_size=2, max_size=8),
)
def test_true_times_are_within_the_error(offset: int, drift: int, slack: list[tuple[int, int]]) -> None:
    marks, recorded = [], {}
    for i, (early, late) in enumerate(slack):
        group = int(i >= len(slack) // 2)
        moved = offset + group * drift * 1_000  # drift of up to 100 us within a second
        mark, recorded[f"m{i}"] = _mark(f"m{i}", group, group * 1_000_000_000, offset=moved, early=early, late=late)
        marks.append(mark)
    found = align(marks, recorded)
    assert found is not None
    times = found.apply(np.array([50, 1_000_000_050]))
    assert abs(int(times[0]) - (50 + offset)) <= found.error_ns + 1
    assert abs(int(times[1]) - (1_000_000_050 + offset + drift * 1_000)) <= found.error_ns + 1
