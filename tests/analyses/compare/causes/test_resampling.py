"""Bootstrap intervals of a ratio of medians."""

import numpy as np
import pytest

from inferometer.analyses.compare.causes.resampling import median_ratio_interval


def test_constant_runs_leave_no_doubt() -> None:
    assert median_ratio_interval(np.full(8, 3500.0), np.full(6, 900.0)) == pytest.approx((900 / 3500, 900 / 3500))


@pytest.mark.parametrize("n", [20, 1_999, 2_001, 50_000])
def test_the_interval_holds_the_ratio_and_narrows_with_the_root_of_the_number(n: int) -> None:
    rng = np.random.default_rng(n)
    found = median_ratio_interval(rng.normal(100, 5, n), rng.normal(130, 5, n))
    assert found is not None
    assert found[0] < 1.3 < found[1]
    spread = 2 * 1.96 * 1.2533 * 0.05 * 1.3 * np.sqrt((1 + 1 / 1.3**2) / n)  # of medians of normal values
    assert found[1] - found[0] == pytest.approx(spread, rel=0.4)


@pytest.mark.parametrize(("base", "candidate"), [([], [1.0]), ([1.0], [1.0, 2.0]), ([0.0, 0.0], [1.0, 2.0])])
def test_too_little_gives_none(base: list[float], candidate: list[float]) -> None:
    assert median_ratio_interval(np.array(base), np.array(candidate)) is None


def test_the_same_input_gives_the_same_answer() -> None:
    values = np.random.default_rng(1).normal(10, 1, 30)
    assert median_ratio_interval(values, values[::-1]) == median_ratio_interval(values, values[::-1])
