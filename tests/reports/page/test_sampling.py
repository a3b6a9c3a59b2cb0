"""Down-sampling keeps what a reader looks for: extremes, totals and quantiles."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples

from inferometer.reports.page.sampling import (
    bucket_means,
    buckets,
    distribution,
    keep_extremes,
    log_counts,
    rounded,
)

NUMBERS = st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=400)
POSITIVE = st.lists(st.floats(1e-3, 1e12), min_size=1, max_size=400)


def test_numbers_are_short_and_null_stays_null() -> None:
    assert rounded([1234567.0, 0.000123456, 3.0, None, float("nan"), float("inf")]) == [
        1235000,
        0.0001235,
        3,
        *[None] * 3,
    ]


@given(NUMBERS, st.integers(4, 50))
@examples(100)
def test_a_series_keeps_its_ends_and_extremes(values: list[float], most: int) -> None:
    kept = keep_extremes(values, most)
    assert len(kept) <= max(most, 4)
    assert {0, len(values) - 1} <= set(kept.tolist())
    assert {min(values), max(values)} <= {values[i] for i in kept}
    assert (np.diff(kept) > 0).all()


def test_a_lone_spike_is_kept_and_gaps_of_nan_are_passed_over() -> None:
    values = np.full(10_000, 1.0)
    values[4_711] = 9.0
    values[5_000:7_000] = np.nan
    kept = keep_extremes(values, 40)
    assert 4_711 in kept
    assert len(kept) <= 40


@given(NUMBERS, st.integers(1, 50))
@examples(100)
def test_buckets_keep_the_sum(values: list[float], most: int) -> None:
    edges = buckets(len(values), most)
    assert len(edges) - 1 == min(most, len(values))
    assert np.diff(edges).max() - np.diff(edges).min() <= 1
    sums = bucket_means(values, edges) * np.diff(edges)
    assert sums.sum() == pytest.approx(sum(values), rel=1e-9, abs=1e-2)


@given(NUMBERS, st.integers(2, 50))
@examples(100)
def test_a_distribution_holds_smallest_and_largest_and_ends_at_one(values: list[float], most: int) -> None:
    kept, shares = distribution(values, most)
    assert (kept[0], kept[-1], shares[-1]) == (min(values), max(values), 1.0)
    for value, share in zip(kept, shares, strict=True):
        assert (
            sum(each < value for each in values) / len(values) < share <= sum(v <= value for v in values) / len(values)
        )


@given(POSITIVE, st.integers(1, 40))
@examples(100)
def test_every_value_is_in_one_bin_of_a_histogram(values: list[float], most: int) -> None:
    edges, counts = log_counts(values, most)
    assert counts.sum() == len(values)
    assert len(edges) == len(counts) + 1
    assert (np.diff(edges) > 0).all()
    assert edges[0] <= min(values)
    assert max(values) <= edges[-1]
