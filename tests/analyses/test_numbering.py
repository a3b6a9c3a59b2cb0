"""Rows numbered by their values, and put in order, against sorting them as they are."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.analyses.numbering import (
    find_rows,
    is_among,
    number_by_first,
    number_keys,
    number_rows,
    order_by,
    order_in_time,
    sum_by,
)

ROW = st.tuples(st.integers(0, 3) | st.none(), st.sampled_from(["x", "b", "a", None]))

pytestmark = pytest.mark.usefixtures("both_sizes")


def test_numbers_of_values_are_in_order_with_nulls_last() -> None:
    frame = pl.DataFrame({"a": [2, None, 1, 2], "b": ["x", "x", None, "a"]})
    code, keys = number_rows(frame)
    assert keys == [(1, None), (2, "a"), (2, "x"), (None, "x")]
    assert code.tolist() == [2, 3, 0, 1]


@given(st.lists(ROW, max_size=20), st.sampled_from([pl.String(), pl.Categorical()]))
def test_any_values_are_numbered_as_sorting_says(rows: list[tuple[int | None, str | None]], text: pl.DataType) -> None:
    frame = pl.DataFrame(rows, schema={"a": pl.Int64, "b": text}, orient="row")
    code, keys = number_rows(frame.with_columns(nothing=pl.lit(None, dtype=pl.Int64)))
    whole = [(*row, None) for row in rows]
    assert keys == sorted(set(whole), key=lambda row: (row[0] is None, row[0] or 0, row[1] is None, row[1] or ""))
    assert [keys[number] for number in code] == whole


@given(st.lists(ROW, max_size=20), st.sampled_from([pl.String(), pl.Categorical()]))
def test_rows_are_numbered_as_they_come(rows: list[tuple[int | None, str | None]], text: pl.DataType) -> None:
    number, first = number_by_first(pl.DataFrame(rows, schema={"a": pl.Int64, "b": text}, orient="row"))
    different = list(dict.fromkeys(rows))
    assert [different[each] for each in number] == rows
    assert first.tolist() == [rows.index(row) for row in different]


@given(st.lists(st.integers(0, 9) | st.integers(0, 2**40), max_size=20))
def test_keys_are_numbered_in_their_order_be_they_small_or_large(keys: list[int]) -> None:
    first, number = number_keys(np.array(keys, dtype=np.int64))
    different = sorted(set(keys))
    assert [different[each] for each in number] == keys
    assert first.tolist() == [keys.index(key) for key in different]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-5, 5)), max_size=20))
def test_order_is_by_number_and_time_and_equal_rows_stay(rows: list[tuple[int, int]]) -> None:
    number, time_ns = np.array(rows, dtype=np.int64).reshape(-1, 2).T
    order = order_in_time(number, time_ns)
    asked = sorted(range(len(rows)), key=lambda i: rows[i])
    assert (asked if order is None else order.tolist()) == asked
    assert (order is None) == (asked == list(range(len(rows))))


@given(st.lists(st.integers(0, 9), max_size=12))
def test_order_of_equal_numbers_is_that_of_time(times: list[int]) -> None:
    order = order_in_time(None, np.array(times, dtype=np.int64))
    found = list(range(len(times))) if order is None else order.tolist()
    assert found == sorted(range(len(times)), key=lambda row: times[row])
    assert (order is None) == (times == sorted(times))


@given(st.lists(st.integers(-5, 5), max_size=12), st.lists(st.integers(-5, 5), max_size=6))
def test_values_among_others_are_told(values: list[int], known: list[int]) -> None:
    columns = (np.array(column, dtype=np.int64) for column in (values, sorted(known)))
    assert is_among(*columns).tolist() == [value in known for value in values]


def test_numbers_beyond_16_bits_are_put_in_order_too() -> None:
    order = order_in_time(np.array([2**16, 3, 2**16]), np.array([5, 7, 4]))
    assert order is not None
    assert order.tolist() == [1, 2, 0]


@given(st.lists(st.integers(-3, 3) | st.integers(2**16 - 2, 2**16 + 2), max_size=20))
def test_any_numbers_are_put_in_order_and_equal_ones_stay(number: list[int]) -> None:
    assert order_by(np.array(number, dtype=np.int64)).tolist() == sorted(range(len(number)), key=lambda i: number[i])


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2**58)), max_size=20))
def test_sums_are_exact_beyond_what_floating_point_holds(rows: list[tuple[int, int]]) -> None:
    number, values = np.array(rows, dtype=np.int64).reshape(-1, 2).T
    assert sum_by(number, values, 5).tolist() == [sum(ns for of, ns in rows if of == each) for each in range(5)]


KEYS = st.tuples(st.sampled_from(["x", "b", None]), st.sampled_from(["a", "b"]), st.sampled_from([None, -1, 2**50]))


@given(st.lists(KEYS, max_size=12), st.sampled_from([pl.String(), pl.Categorical()]))
def test_rows_are_found_in_a_table_of_the_different_ones(
    rows: list[tuple[str | None, str, int | None]], text: pl.DataType
) -> None:
    frame = pl.DataFrame(rows, schema={"a": text, "b": text, "n": pl.Int64}, orient="row")
    table = frame.select("n", "b", "a").unique()
    found = find_rows(table, frame)
    assert table[found].select("a", "b", "n").rows() == rows
    assert found.dtype == pl.UInt32


def test_a_table_of_categories_takes_no_memory_for_others() -> None:
    late = pl.Series([f"name {n}" for n in range(100_000)], dtype=pl.Categorical).tail(2)
    frame = pl.DataFrame({"a": late, "b": late.reverse(), "c": late})  # numbers of 100,000 each, if taken as they are
    assert find_rows(frame, frame[[1, 0, 0]]).to_list() == [1, 0, 0]
