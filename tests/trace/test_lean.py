"""Lean tables say what plain ones do, and take less."""

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.trace import lean
from inferometer.trace.lean import aggregate, collect_lean, gather, has_one, in_slices, slices_of, stacked

SCHEMA = {"name": pl.Categorical(), "rank": pl.Int64(), "process": pl.Int64(), "time": pl.Int64()}
ROWS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", None]), st.sampled_from([0, 1]), st.sampled_from([None, 2]), st.integers(0, 9)
    ),
    max_size=12,
)


def frame(rows: list[tuple[Any, ...]], same: frozenset[str] = frozenset()) -> pl.DataFrame:
    """These rows; of some columns the first value in all."""
    made = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    return made.with_columns(pl.col(sorted(same)).first()) if same and rows else made


@pytest.mark.parametrize(
    ("values", "one"),
    [([], True), ([1, 1], True), ([None, None], True), ([1, 2], False), ([1, None], False), ([1, None, None], False)],
)
@pytest.mark.parametrize("dtype", [pl.Int64(), pl.String(), pl.Categorical()])
def test_nulls_are_equal_to_each_other_and_to_nothing_else(
    values: list[int | None], one: bool, dtype: pl.DataType
) -> None:
    column = pl.Series("column", values, dtype=pl.Int64).cast(pl.String).cast(dtype)
    assert has_one(column.to_frame(), "column") is one
    assert has_one(pl.DataFrame({"column": column, "one": [0] * len(values)}), "one", "column") is one


@given(ROWS, st.frozensets(st.sampled_from(list(SCHEMA))), st.booleans())
def test_a_lean_table_has_the_same_rows(rows: list[tuple[Any, ...]], same: frozenset[str], is_filtered: bool) -> None:
    table = frame(rows, same)
    where = [pl.col("time") > 4] if is_filtered else []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lean, "LARGE", 0)
        found = collect_lean(table.lazy(), ["time", "name", "process"], *where)
    assert found.equals(table.filter(*where).select("time", "name", "process"))
    assert found.schema == table.select("time", "name", "process").schema


def test_a_column_of_one_value_takes_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lean, "LARGE", 0)
    rows = 10_000
    table = pl.DataFrame({"time": range(rows), "rank": [7] * rows, "process": [None] * rows})
    found = collect_lean(table.lazy(), table.columns)
    assert found.estimated_size() < 1.1 * table.select("time").estimated_size()
    some = gather(found, pl.Series(range(rows // 2), dtype=pl.UInt32))
    assert some.estimated_size() < 1.1 * some.select("time").estimated_size()
    assert some.equals(table.head(rows // 2))  # which makes all rows of it


@given(ROWS, st.data())
def test_rows_are_gathered_null_where_there_is_none(rows: list[tuple[Any, ...]], data: st.DataObject) -> None:
    table = frame(rows)
    at = data.draw(st.lists(st.none() | st.integers(0, len(rows) - 1), max_size=9)) if rows else []
    found = gather(table, pl.Series(at, dtype=pl.UInt32))
    plain = table.rows()
    assert found.rows() == [(None,) * len(SCHEMA) if i is None else plain[i] for i in at]
    assert gather(table.select(), pl.Series(at, dtype=pl.UInt32)).is_empty()


@given(ROWS, st.frozensets(st.sampled_from(["name", "rank", "process"])))
def test_groups_are_those_of_polars(rows: list[tuple[Any, ...]], same: frozenset[str]) -> None:
    table, by = frame(rows, same), ["process", "name", "rank"]
    values = (pl.col("time").sum().alias("sum"), pl.len(), pl.col("time").median().alias("middle"))
    found, expected = aggregate(table, by, *values), table.group_by(by).agg(values)
    assert found.schema == expected.schema
    order = pl.col(by).cast(pl.String)
    assert found.sort(order, nulls_last=True).equals(expected.sort(order, nulls_last=True))


def test_slices_are_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lean, "_AT_ONCE", 3)
    table = pl.DataFrame({"time": range(8)})
    slices = list(in_slices(table.lazy()))
    assert [part.height for part in slices] == [3, 3, 2]
    assert pl.concat(slices).equals(table)
    assert not list(in_slices(table.clear().lazy()))


@given(ROWS, st.frozensets(st.sampled_from(list(SCHEMA))))
def test_slices_one_below_the_other_are_the_frame_and_as_lean(
    rows: list[tuple[Any, ...]], same: frozenset[str]
) -> None:
    table = frame(rows, same)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lean, "_AT_ONCE", 3)
        slices = [*slices_of(table)]
    assert [part.height for part in slices[:-1]] == [3] * (len(slices) - 1)
    found = stacked(slices)
    assert not slices
    assert found.equals(table)
    assert found.schema == table.schema
    assert found.n_chunks("all") == [1] * table.width
