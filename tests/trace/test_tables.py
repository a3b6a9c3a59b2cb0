"""The declarations of tables and columns: complete, unique, and enough to make documentation of."""

from itertools import groupby

import polars as pl
import pytest

from inferometer.trace.tables import ALL_TABLES, TABLES, Column, Table

COLUMNS = [(table, column) for table in TABLES.values() for column in table.columns]


def test_table_names_are_unique_and_every_table_has_a_meaning() -> None:
    assert set(TABLES) == ALL_TABLES
    assert all(name == table.name for name, table in TABLES.items())
    assert all(table.row.endswith(".") and table.columns for table in TABLES.values())


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_name_is_declared_once_in_a_table(table: Table) -> None:
    names = [column.name for column in table.columns]
    assert len(set(names)) == len(names) == len(table.schema)


@pytest.mark.parametrize(("table", "column"), COLUMNS, ids=[f"{table.name}.{column.name}" for table, column in COLUMNS])
def test_a_column_has_a_meaning_its_unit_and_a_reason_to_be_null(table: Table, column: Column) -> None:
    assert column.meaning.endswith((".", "…"))
    assert not column.null.endswith(".")
    assert column.null == column.null.strip()
    if column.name.endswith(("_ns", "_bytes")):
        assert column.dtype in (pl.Int64, pl.Float64)
        assert any(unit in column.meaning for unit in ("ns", "bytes")) or column.name in ("queued_ns", "start_ns")


def test_a_name_has_one_type_everywhere() -> None:
    by_name = sorted((column.name, str(column.dtype)) for _, column in COLUMNS)
    assert [
        (name, sorted(set(found))) for name, found in groupby(by_name, key=lambda pair: pair[0]) if len(set(found)) > 1
    ] == []


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_an_empty_table_has_all_columns_in_order(table: Table) -> None:
    assert table.empty.collect_schema() == table.schema
    assert table.empty.collect().height == 0
    assert list(table.schema) == [column.name for column in table.columns]


@pytest.mark.parametrize("table", [table for table in TABLES.values() if table.time], ids=lambda table: table.name)
def test_the_column_of_time_is_declared_and_null_for_steps_and_allocators_only(table: Table) -> None:
    (time,) = (column for column in table.columns if column.name == table.time)
    assert time.dtype == pl.Int64
    assert (time.null == "") == (table.name not in ("steps", "memory_events"))
