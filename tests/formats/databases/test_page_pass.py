"""Rows read from pages are those that SQLite gives, whatever a table holds; what is unusual, SQLite reads itself."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.formats.native.library_at_hand import needs_library

from inferometer.errors import FormatError
from inferometer.formats.databases import page_pass
from inferometer.formats.databases.native import table as native
from inferometer.formats.databases.sqlite import SqliteExport
from inferometer.formats.native.library import VARIABLE
from inferometer.trace.losses import Losses

COLUMNS = ("id", "a", "b", "c")


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(native, "BLOCK_BYTES", 1024)


@pytest.fixture
def from_pages(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows came from pages, pass by pass."""
    counted: list[int] = []
    run = page_pass.PagePass.run

    def counting(self: page_pass.PagePass) -> Iterator[native.Rows]:
        counted.append(0)
        for rows in run(self):
            counted[-1] += rows.columns.height
            yield rows

    monkeypatch.setattr(page_pass.PagePass, "run", counting)
    return counted


def make(path: Path, *statements: str, rows: int = 200, table: str = "t (id INTEGER PRIMARY KEY, a, b, c)") -> Path:
    """A database of small pages with a table of four columns, and what the statements make of it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as made:
        made.execute("PRAGMA page_size = 512")
        made.execute(f"CREATE TABLE {table}")
        made.execute("BEGIN")
        for i in range(1, rows + 1):
            made.execute("INSERT INTO t VALUES (?, ?, ?, ?)", (i, i * 1_000_003, None if i % 7 == 0 else -i, i % 2))
        made.execute("COMMIT")
        for statement in statements:
            made.execute(statement)
    return path


def read(path: Path, *columns: str) -> tuple[pl.DataFrame, dict[str, int]]:
    """The table, and what was counted."""
    losses = Losses()
    batches = SqliteExport(path, path.name, losses).batches("t", columns or COLUMNS)
    frame = pl.concat([pl.DataFrame(schema=dict.fromkeys(columns or COLUMNS, pl.Int64)), *batches])
    return frame, {loss.name: loss.count for loss in losses}


def by_sqlite(path: Path, *columns: str) -> list[tuple[object, ...]]:
    """Whole numbers and nulls of the table by SQLite's own word."""
    asked = ", ".join(f"CASE typeof({name}) WHEN 'integer' THEN {name} END" for name in columns or COLUMNS)
    with closing(sqlite3.connect(path)) as made:
        return made.execute(f"SELECT {asked} FROM t NOT INDEXED").fetchall()


@needs_library
def test_a_plain_table_comes_from_its_pages(tmp_path: Path, from_pages: list[int]) -> None:
    path = make(tmp_path / "t.sqlite")
    frame, counted = read(path)
    assert (frame.rows(), counted, from_pages) == (by_sqlite(path), {}, [200])


@needs_library
@given(
    numbers=st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)), max_size=60),
    others=st.lists(
        st.one_of(st.none(), st.integers(), st.floats(allow_nan=False), st.text(), st.binary()), max_size=9
    ),
)
def test_any_numbers_are_those_of_sqlite(
    numbers: list[int | None], others: list[object], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = make(tmp_path_factory.mktemp("any") / "t.sqlite", rows=0)
    held = [each if not isinstance(each, int) or -(2**63) <= each < 2**63 else str(each) for each in others]
    with closing(sqlite3.connect(path)) as made, made:
        made.executemany("INSERT INTO t (a, b, c) VALUES (?, ?, 3)", [(n, n and -(n // 3)) for n in numbers])
        made.executemany("INSERT INTO t (a, b) VALUES (1, ?)", [(each,) for each in held])
        made.executemany("INSERT INTO t (a) VALUES (?)", [(n,) for n in numbers])
    frame, counted = read(path)
    assert frame.rows() == by_sqlite(path)
    assert counted.get("wrong_type", 0) == sum(not isinstance(each, int | None) for each in held)


@needs_library
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE t SET b = 1.5 WHERE id = 100",
        "UPDATE t SET b = 'x' WHERE id = 100",
        "UPDATE t SET c = x'00ff' WHERE id = 100",
        "UPDATE t SET b = zeroblob(90000) WHERE id = 100",
    ],
)
def test_from_an_odd_value_on_sqlite_reads(statement: str, tmp_path: Path, from_pages: list[int]) -> None:
    path = make(tmp_path / "t.sqlite", statement)
    frame, counted = read(path)
    assert (frame.rows(), counted) == (by_sqlite(path), {"wrong_type": 1})
    assert 0 < from_pages[0] < 100


@needs_library
def test_values_that_are_not_asked_for_may_be_anything(tmp_path: Path, from_pages: list[int]) -> None:
    path = make(tmp_path / "t.sqlite", "UPDATE t SET c = zeroblob(id * 50)", "UPDATE t SET b = 'x' WHERE id = 3")
    frame, counted = read(path, "id", "a")
    assert (frame.rows(), counted, from_pages) == (by_sqlite(path, "id", "a"), {}, [200])


@needs_library
@pytest.mark.parametrize(
    ("table", "statements"),
    [
        ("t (id INTEGER PRIMARY KEY, a, b, c)", ["ALTER TABLE t ADD COLUMN d DEFAULT 5"]),
        ("t (id INTEGER PRIMARY KEY, a REAL, b, c)", []),
        ("t (id INTEGER PRIMARY KEY, a, b, c, d AS (a + 1))", ["DELETE FROM t WHERE id = 5"]),
        ("t (id INTEGER PRIMARY KEY DESC, a, b, c)", []),
        ("t (id INTEGER PRIMARY KEY, a, b, c) WITHOUT ROWID", []),
        ("t (id INT PRIMARY KEY, a, b, c)", []),
        ("t (id INTEGER, a, b, c, PRIMARY KEY (id, a))", []),
        ("t (id INTEGER PRIMARY KEY, a, b, c)", ["PRAGMA journal_mode = wal", "INSERT INTO t (a) VALUES (1)"]),
        ("t (id INTEGER PRIMARY KEY, a, b, c)", ["DELETE FROM t WHERE id % 3 = 0", "VACUUM"]),
        ("t (id INTEGER PRIMARY KEY, a, b, c)", ["DELETE FROM t"]),
    ],
)
def test_any_kind_of_table_is_read_as_sqlite_reads_it(table: str, statements: list[str], tmp_path: Path) -> None:
    path = make(tmp_path / "t.sqlite", *statements, table=table)
    columns = (*COLUMNS, "d") if any("ADD" in each for each in statements) else COLUMNS
    assert read(path, *columns)[0].rows() == by_sqlite(path, *columns)


@needs_library
def test_no_program_that_keeps_to_locks_writes_meanwhile(tmp_path: Path) -> None:
    path = make(tmp_path / "t.sqlite")
    batches = SqliteExport(path, "t", Losses()).batches("t", COLUMNS)
    first = next(iter(batches))
    with closing(sqlite3.connect(path, timeout=0)) as other, pytest.raises(sqlite3.OperationalError, match="locked"):
        other.execute("INSERT INTO t VALUES (1000, 1, 2, 3)").connection.commit()
    assert first.height + sum(batch.height for batch in batches) == 200
    with closing(sqlite3.connect(path, timeout=0)) as other:
        other.execute("INSERT INTO t VALUES (1000, 1, 2, 3)").connection.commit()


@needs_library
@pytest.mark.parametrize("seed", range(40))
def test_damage_is_an_error_or_what_sqlite_makes_of_it(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never another answer than without the library: a page that leads elsewhere or twice to one is SQLite's matter."""
    path = make(tmp_path / "t.sqlite", rows=800)
    data = bytearray(path.read_bytes())
    page = 512 * (2 + seed % 4)
    data[page + (seed * 37) % 512] ^= 1 << seed % 8
    path.write_bytes(data)

    def outcome() -> object:
        try:
            return read(path)
        except FormatError:
            return "refused"

    found = outcome()
    monkeypatch.setenv(VARIABLE, "0")
    assert str(found) in (str(outcome()), "refused")
