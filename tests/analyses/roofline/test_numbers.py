"""Numbers of ops with their arguments."""

import re
from typing import Any

import polars as pl
import pytest

from inferometer.analyses.roofline.calls import SIGNATURE
from inferometer.analyses.roofline.numbers import find_matching, find_numbered, with_numbers
from inferometer.errors import InputError

ROWS = [("aten::mm", "[[1]]", 5), ("aten::add", "[[2]]", 7), (None, None, 90), ("aten::mm", "[[1]]", 4)]


def rows_of(rows: list[tuple[str | None, str | None, int]]) -> pl.DataFrame:
    schema: dict[str, Any] = dict.fromkeys(SIGNATURE, pl.String) | {"total_ns": pl.Int64}
    return pl.DataFrame([{"op": op, "input_dims": dims, "total_ns": ns} for op, dims, ns in rows], schema=schema)


def test_the_longest_is_1_and_equal_arguments_have_one_number() -> None:
    assert with_numbers(rows_of(ROWS))["number"].to_list() == [1, 2, None, 1]


def test_the_order_of_the_rows_changes_no_number() -> None:
    turned = with_numbers(rows_of(ROWS[::-1]))
    assert turned.reverse().equals(with_numbers(rows_of(ROWS)))


def test_ops_of_equal_time_are_in_the_order_of_their_names() -> None:
    assert with_numbers(rows_of([("b", "[]", 3), ("a", "[]", 3)]))["number"].to_list() == [2, 1]


def test_of_rows_with_one_number_the_longest_is_found() -> None:
    assert find_numbered(with_numbers(rows_of(ROWS)), 1)["total_ns"] == 5


def test_a_number_that_is_not_there_says_which_are() -> None:
    with pytest.raises(InputError, match="no op with the number 3") as raised:
        find_numbered(with_numbers(rows_of(ROWS)), 3)
    assert raised.value.hint == "It has 1-2; `inferometer roofline` shows them."


def test_names_are_searched_and_rows_without_an_op_never_match() -> None:
    rows = with_numbers(rows_of(ROWS))
    assert find_matching(rows, re.compile("a")) == [1, 2]
    assert find_matching(rows, re.compile("add")) == [2]
    with pytest.raises(InputError, match='no op matches "None"'):
        find_matching(rows, re.compile("None"))
