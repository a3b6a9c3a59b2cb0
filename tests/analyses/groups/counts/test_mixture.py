"""A few long launches among many short ones, from statistics alone."""

from hypothesis import given
from hypothesis import strategies as st

from inferometer.analyses.groups.counts.mixture import long_launches, mixtures_agree


@given(st.integers(1, 400), st.integers(401, 4_000), st.integers(20, 900))
def test_long_launches_are_counted_from_mean_median_and_longest(long: int, short: int, times: int) -> None:
    count = long + short
    assert long_launches(count, (short + long * times) / count, 1.0, times) == long


def test_rows_without_a_tail_or_statistics_have_none() -> None:
    assert long_launches(2_304, 1.981, 1.952, 3) is None
    assert long_launches(2_304, None, 1.0, 300) is None
    assert long_launches(5, 1.0, 2.0, 300) is None


def test_rows_agree_that_have_as_many_long_launches() -> None:
    assert mixtures_agree(63, 65)
    assert mixtures_agree(None, None)
    assert not mixtures_agree(63, None)
    assert not mixtures_agree(63, 127)
