"""Which rows of a table are shown, in what order, and what durations are described by."""

import polars as pl
import pytest

from inferometer.analyses.rows import compile_match, duration_statistics, matching, ordered
from inferometer.errors import InputError

FRAME = pl.DataFrame({"name": ["b", "a", None, "c"], "n": [1, 3, 2, None]})


def names(frame: pl.DataFrame) -> list[str | None]:
    return frame["name"].to_list()


def test_numbers_stand_largest_first_texts_from_a_to_z_and_nulls_last() -> None:
    assert names(ordered(FRAME, "n")) == ["a", None, "b", "c"]
    assert names(ordered(FRAME, "name")) == ["a", "b", "c", None]
    assert names(ordered(FRAME, "n", top=2)) == ["a", None]


def test_equal_rows_stand_by_the_next_column_or_as_they_stood() -> None:
    equal = FRAME.with_columns(pl.lit(0).alias("n"))
    assert names(ordered(equal, "n", "name")) == ["a", "b", "c", None]
    assert names(ordered(equal, "n")) == ["b", "a", None, "c"]


def test_a_pattern_finds_texts_and_no_pattern_finds_all() -> None:
    assert names(matching(FRAME, "name", compile_match("[ab]"))) == ["b", "a"]
    assert matching(FRAME, "name", compile_match(None)).equals(FRAME)
    assert matching(FRAME, "name", compile_match("")).equals(FRAME)


def test_what_is_no_regular_expression_is_refused() -> None:
    with pytest.raises(InputError, match="match: expected a regular expression, found '\\('"):
        compile_match("(")


def test_statistics_are_nsights() -> None:
    found = pl.DataFrame({"dur_ns": [1, 2, 6]}).select(duration_statistics()).to_dicts()
    assert found == [
        {
            "total_ns": 9,
            "count": 3,
            "mean_ns": 3.0,
            "median_ns": 2.0,
            "min_ns": 1,
            "max_ns": 6,
            "stddev_ns": pytest.approx(7**0.5),
        }
    ]
