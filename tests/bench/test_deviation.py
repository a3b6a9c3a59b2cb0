"""Errors worked out by hand: of the whole, of the worst row, of the worst number."""

import math

import pytest

from inferometer.bench.deviation import Deviation, measure_deviation

torch = pytest.importorskip("torch", reason="torch isn't installed")


def deviation(found: list, wanted: list) -> Deviation:
    return measure_deviation(torch.tensor(found, dtype=torch.float32), torch.tensor(wanted, dtype=torch.float32))


def test_the_whole_is_a_ratio_of_norms_and_the_worst_row_and_number_are_named() -> None:
    found = deviation([[3.0, 4.0], [0.0, 5.0], [6.0, 8.5]], [[3.0, 4.0], [0.0, 4.0], [6.0, 8.0]])
    assert found.whole == pytest.approx(math.sqrt((1 + 0.25) / (25 + 16 + 100)))
    assert (found.row, found.row_at) == (0.25, 1)  # 1 off in a row of norm 4
    assert (found.number, found.number_at, found.number_row) == (0.25, 1, 1)  # 1 off in 4


def test_a_number_smaller_than_its_row_s_root_mean_square_is_held_to_that() -> None:
    found = deviation([[0.5, 4.0, 4.0, 4.0]], [[0.0, 4.0, 4.0, 4.0]])
    assert found.number == pytest.approx(0.5 / math.sqrt(48 / 4))
    assert (found.number_at, found.number_row) == (0, 0)


def test_a_row_counts_as_at_least_a_tenth_of_the_usual_one() -> None:
    """Rows of norm 10 and nothing: the usual one is the root of the mean square, 10 / sqrt(2)."""
    found = deviation([[10.0], [0.1]], [[10.0], [0.0]])
    assert found.row == found.number == pytest.approx(0.1 / (0.1 * 10 / math.sqrt(2)))
    assert (found.row_at, found.number_row) == (1, 1)


def test_of_one_dimension_each_number_is_a_row() -> None:
    found = deviation([1.0, 2.5, 4.0], [1.0, 2.0, 4.0])
    assert (found.row, found.row_at) == (0.25, 1)
    assert (found.number, found.number_at, found.number_row) == (0.25, 0, 1)


def test_more_dimensions_are_rows_one_after_the_other() -> None:
    wanted = torch.ones(2, 3, 4)
    found = wanted.clone()
    found[1, 2, 3] = 2.0
    off = measure_deviation(found, wanted)
    assert (off.row_at, off.number_row, off.number_at, off.row, off.number) == (5, 5, 3, 0.5, 1.0)


def test_errors_below_and_above_are_alike() -> None:
    assert deviation([[2.0, 1.0]], [[2.0, 2.0]]).number == deviation([[2.0, 3.0]], [[2.0, 2.0]]).number


def test_where_the_answer_is_nothing_the_error_counts_itself() -> None:
    assert deviation([[0.0, 0.0], [3.0, 4.0]], [[0.0, 0.0], [0.0, 0.0]]) == Deviation(5.0, 5.0, 1)
    assert deviation([[0.0]], [[0.0]]) == Deviation()


def test_no_numbers_have_no_error() -> None:
    assert measure_deviation(torch.empty(0, 4), torch.empty(0, 4)) == Deviation(0.0, 0.0, 0, 0.0, 0, 0)


def test_infinities_and_nan_count_as_nothing() -> None:
    odd = [float("inf"), -float("inf"), float("nan"), 2.0]
    assert deviation([[*odd[:3], 3.0]], [odd]) == Deviation(whole=0.5, row=0.5, number=0.5, number_at=3)


def test_numbers_are_compared_in_64_bits() -> None:
    """The square of 1e30 is beyond fp32."""
    assert deviation([[2e30]], [[1e30]]) == Deviation(1.0, 1.0, 0, 1.0)


def test_long_answers_are_compared_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = torch.arange(1.0, 41.0).reshape(10, 4)
    found = wanted.clone()
    found[7, 2] += 31.0  # of 31
    found[9, 1] += 38.0 / 2
    whole = measure_deviation(found, wanted)
    for piece in (1, 4, 12, 39):
        monkeypatch.setattr("inferometer.bench.deviation._PIECE", piece)
        assert measure_deviation(found, wanted) == whole
    assert (whole.number, whole.number_row, whole.number_at) == (1.0, 7, 2)


def test_an_exact_answer_is_off_nowhere() -> None:
    assert deviation([[1.0, -2.0], [0.0, 3.0]], [[1.0, -2.0], [0.0, 3.0]]) == Deviation()
