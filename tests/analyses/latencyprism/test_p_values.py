"""The two tests over many rows at once give scipy's numbers for each of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from tests.effort import examples

from inferometer.analyses.latencyprism.p_values import mann_whitney_p, welch_p

SAMPLE = st.lists(st.one_of(st.integers(0, 4), st.floats(-5, 5).map(lambda x: round(x, 3))), min_size=1, max_size=14)
Pair = tuple[list[float], list[float]]


def all_at_once(pairs: list[Pair]) -> list[float]:
    values = [value for pair in pairs for sample in pair for value in sample]
    rows = [row for row, pair in enumerate(pairs) for sample in pair for _ in sample]
    second = [side == 1 for pair in pairs for side, sample in enumerate(pair) for _ in sample]
    order = np.random.default_rng(1).permutation(len(values))
    return mann_whitney_p(
        np.array(values, float)[order], np.array(rows, np.int64)[order], np.array(second, bool)[order], len(pairs)
    ).tolist()


def one_by_one(pairs: list[Pair]) -> list[float]:
    with np.errstate(all="ignore"):
        return [float(stats.mannwhitneyu(one, two, alternative="two-sided").pvalue) for one, two in pairs]


@given(st.lists(st.tuples(SAMPLE, SAMPLE), min_size=1, max_size=6))
@examples(150)
def test_mann_whitney_is_scipys_whatever_the_sizes_and_ties(pairs: list[Pair]) -> None:
    assert all_at_once(pairs) == pytest.approx(one_by_one(pairs), rel=1e-9)


def test_the_exact_distribution_is_taken_up_to_eight_values_without_ties() -> None:
    few, many = [0.5 + i for i in range(8)], [float(i) for i in range(300)]
    pairs: list[Pair] = [(few, many), (many, few), (many[:9], [each + 0.5 for each in many[:9]]), ([1.0, 1.0], few)]
    assert all_at_once(pairs) == pytest.approx(one_by_one(pairs), rel=1e-9)


def test_a_row_with_an_empty_sample_shows_nothing() -> None:
    assert all_at_once([([], [1.0, 2.0]), ([1.0], [])]) == [1.0, 1.0]


@given(
    st.lists(st.tuples(st.lists(st.integers(0, 9), min_size=2), st.lists(st.integers(0, 9), min_size=2)), min_size=1)
)
@examples(100)
def test_welch_is_scipys(pairs: list[tuple[list[int], list[int]]]) -> None:
    sides = [
        [np.array([f(pair[i]) for pair in pairs]) for f in (np.mean, lambda x: np.std(x, ddof=1), len)] for i in (0, 1)
    ]
    with np.errstate(all="ignore"):
        wanted = stats.ttest_ind_from_stats(*sides[0], *sides[1], equal_var=False).pvalue
    assert welch_p(*sides[0], *sides[1]) == pytest.approx(wanted, rel=1e-9, nan_ok=True)
