"""Least squares with coefficients of at least 0, next to SciPy's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls

from inferometer.watch.expected import _knots_of, _parts
from inferometer.watch.nonnegative import Floats, nonnegative_least_squares


def _distance(matrix: Floats, found: Floats, wanted: Floats) -> float:
    return float(np.linalg.norm(matrix @ found - wanted))


@given(st.integers(0, 10_000), st.integers(1, 12), st.integers(1, 40))
def test_it_is_as_near_as_scipys(seed: int, columns: int, rows: int) -> None:
    random = np.random.default_rng(seed)
    matrix, wanted = random.normal(0, 1, (rows, columns)), random.normal(0, 1, rows)
    found = nonnegative_least_squares(matrix, wanted)
    assert (found >= 0).all()
    assert _distance(matrix, found, wanted) == pytest.approx(nnls(matrix, wanted)[1], abs=1e-6)


@pytest.mark.parametrize("seed", range(8))
def test_the_parts_of_a_step_are_as_near_as_scipys(seed: int) -> None:
    random = np.random.default_rng(seed)
    work = np.column_stack([random.integers(0, 2048, 400), random.integers(1, 64, 400), random.integers(0, 9, 400)])
    took = 5e6 + 8e3 * work[:, 0] + 2e5 * np.ceil(work[:, 1] / 16) + random.normal(0, 2e5, 400)
    parts = _parts(work.astype(float), tuple(_knots_of(kind) for kind in work.T.astype(float))) / took[:, None]
    parts /= parts.max(axis=0)
    ones = np.ones(400)
    found, best = nonnegative_least_squares(parts, ones), nnls(parts, ones)[1]
    assert (found >= 0).all()
    assert _distance(parts, found, ones) <= best * (1 + 1e-6)


@pytest.mark.parametrize(
    ("matrix", "wanted", "found"),
    [
        (np.zeros((3, 2)), np.ones(3), [0.0, 0.0]),
        (np.ones((3, 1)), -np.ones(3), [0.0]),
        (np.eye(2), np.array([2.0, -1.0]), [2.0, 0.0]),
        (np.zeros((0, 2)), np.zeros(0), [0.0, 0.0]),
        (np.zeros((2, 0)), np.ones(2), []),
    ],
)
def test_what_is_degenerate(matrix: Floats, wanted: Floats, found: list[float]) -> None:
    assert nonnegative_least_squares(matrix, wanted).tolist() == pytest.approx(found)


def test_of_equal_columns_any_split_will_do() -> None:
    matrix = np.ones((5, 3))
    assert float(nonnegative_least_squares(matrix, np.full(5, 6.0)).sum()) == pytest.approx(6)
