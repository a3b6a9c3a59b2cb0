"""What a step should take is learned from steps: monotone, robust, and silent about more work than it knows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.watch.expected import BEYOND, Expected, Floats, learn_expected


def _learned(seed: int = 0, steps: int = 300, outliers: int = 0) -> tuple[Expected, Floats, Floats]:
    random = np.random.default_rng(seed)
    work = np.column_stack([random.integers(0, 2048, steps), random.integers(1, 64, steps)]).astype(float)
    truth = 5e6 + 8_000 * work[:, 0] + 2e5 * work[:, 1]
    took = truth * np.exp(random.normal(0, 0.01, steps))
    took[:outliers] *= 10
    return learn_expected(took, work), work, truth


@pytest.mark.parametrize("outliers", [0, 60])
def test_times_are_found_though_some_steps_were_ten_times_slower(outliers: int) -> None:
    expected, work, truth = _learned(outliers=outliers)
    found = np.array([expected.time_ns(each) for each in work])
    assert np.median(np.abs(found / truth - 1)) < 0.02


@given(st.lists(st.tuples(st.floats(0, 2000), st.floats(1, 63)), min_size=2, max_size=2), st.integers(0, 5))
def test_more_work_never_takes_less(pair: list[tuple[float, float]], seed: int) -> None:
    expected, _, _ = _learned(seed, steps=60)
    less = tuple(min(each) for each in zip(*pair, strict=True))
    more = tuple(max(each) for each in zip(*pair, strict=True))
    first, second = expected.time_ns(less), expected.time_ns(more)
    assert first is not None
    assert second is not None
    assert first <= second * (1 + 1e-9)


def test_much_more_work_than_any_before_is_not_judged() -> None:
    expected, work, _ = _learned()
    most = work.max(axis=0)
    assert len(np.unique(work[:, 0])) > len(work) / 2
    assert expected.time_ns((BEYOND * most[0], most[1])) is not None
    assert expected.time_ns((BEYOND * most[0] + 1, most[1])) is None


def test_a_larger_batch_than_any_before_is_not_judged() -> None:
    batch = np.tile(np.arange(57, 65), 20).astype(float)[:, None]
    expected = learn_expected(np.full(160, 10e6), batch)
    assert expected.time_ns((64,)) == pytest.approx(10e6)
    assert expected.time_ns((65,)) is None


def test_steps_of_padded_batches() -> None:
    batch = np.tile(np.arange(1, 9), 20).astype(float)[:, None]
    took = np.where(batch[:, 0] <= 4, 10e6, 20e6)
    expected = learn_expected(took, batch)
    assert [round(expected.time_ns((each,)) / 1e6) for each in range(1, 9)] == [10] * 4 + [20] * 4  # type: ignore[operator]


def test_without_work_every_step_takes_the_same() -> None:
    expected = learn_expected(np.array([9e6, 10e6, 11e6]), np.zeros((3, 0)))
    assert expected.time_ns(()) == pytest.approx(10e6)
