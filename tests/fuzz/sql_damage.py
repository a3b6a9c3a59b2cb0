"""Damage of SQLite databases that stay databases: other types in place, tables lost, views in their stead."""

import sqlite3
from collections.abc import Callable
from random import Random
from typing import Any

from tests.fuzz import hostile
from tests.fuzz.byte_damage import Damage

Edit = Callable[[Random, sqlite3.Connection, str, list[str]], None]


def change_cells(rng: Random, database: sqlite3.Connection, table: str, columns: list[str]) -> None:
    for _ in range(rng.choice((1, 1, 4))):
        column = rng.choice(columns)
        rows = "" if rng.random() < 0.5 else f" WHERE rowid = {rng.randrange(1, 6)}"
        database.execute(f"UPDATE {_quoted(table)} SET {_quoted(column)} = {_expression(rng)}{rows}", _values(rng))


def add_rows(rng: Random, database: sqlite3.Connection, table: str, columns: list[str]) -> None:
    copied = ", ".join(_quoted(each) if rng.random() < 0.7 else _expression(rng) for each in columns)
    database.execute(f"INSERT INTO {_quoted(table)} SELECT {copied} FROM {_quoted(table)}", _values(rng))


def delete_rows(rng: Random, database: sqlite3.Connection, table: str, _: list[str]) -> None:
    database.execute(f"DELETE FROM {_quoted(table)} WHERE rowid >= {rng.randrange(3)}")


def move_row_ids(rng: Random, database: sqlite3.Connection, table: str, _: list[str]) -> None:
    to = rng.choice((2**62, -(2**62), 2**33, 0, -5))
    database.execute(f"UPDATE {_quoted(table)} SET rowid = {to} WHERE rowid = 1")


def drop_table(_: Random, database: sqlite3.Connection, table: str, _columns: list[str]) -> None:
    database.execute(f"DROP TABLE {_quoted(table)}")


def rename_table(rng: Random, database: sqlite3.Connection, table: str, _: list[str]) -> None:
    database.execute(f"ALTER TABLE {_quoted(table)} RENAME TO {_quoted(rng.choice((*_NAMES, table + '_V2')))}")


def drop_column(rng: Random, database: sqlite3.Connection, table: str, columns: list[str]) -> None:
    database.execute(f"ALTER TABLE {_quoted(table)} DROP COLUMN {_quoted(rng.choice(columns))}")


def rename_column(rng: Random, database: sqlite3.Connection, table: str, columns: list[str]) -> None:
    new = rng.choice((*columns, *_NAMES, rng.choice(columns).upper()))
    database.execute(f"ALTER TABLE {_quoted(table)} RENAME COLUMN {_quoted(rng.choice(columns))} TO {_quoted(new)}")


def add_column(rng: Random, database: sqlite3.Connection, table: str, columns: list[str]) -> None:
    made = rng.choice(("", " TEXT DEFAULT 'x'", " BLOB DEFAULT x'ff'", f" AS ({_quoted(rng.choice(columns))})"))
    database.execute(f"ALTER TABLE {_quoted(table)} ADD COLUMN {_quoted(rng.choice(_NAMES))}{made}")


def make_view(rng: Random, database: sqlite3.Connection, table: str, _: list[str]) -> None:
    database.execute(f"ALTER TABLE {_quoted(table)} RENAME TO hidden")
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS start, i AS end FROM n"
    database.execute(f"CREATE VIEW {_quoted(table)} AS {rng.choice(('SELECT * FROM hidden', endless))}")


def retype_table(rng: Random, database: sqlite3.Connection, table: str, columns: list[str]) -> None:
    """The same rows in a table of declared types, or without row ids."""
    types = ", ".join(f"{_quoted(each)} {rng.choice(_TYPES)}" for each in columns)
    end = rng.choice(("", f", PRIMARY KEY ({_quoted(columns[0])})) WITHOUT ROWID"))
    database.execute(f"ALTER TABLE {_quoted(table)} RENAME TO old")
    database.execute(f"CREATE TABLE {_quoted(table)} ({types}{end or ')'}")
    database.execute(f"INSERT OR IGNORE INTO {_quoted(table)} SELECT * FROM old")
    database.execute("DROP TABLE old")


_EDITS: tuple[Edit, ...] = (
    *(change_cells, change_cells, change_cells, change_cells, add_rows, delete_rows, move_row_ids, drop_table),
    *(rename_table, drop_column, rename_column, add_column, make_view, retype_table),
)
_TYPES = ("TEXT", "REAL", "BLOB", "INT", "NUMERIC", "DATE", "")
_EXPRESSIONS = (
    *(":text", ":text", ":number", ":number", ":blob", ":whole", "CAST(x'ff41fe' AS TEXT)", "9e999", "NULL", "''"),
)
_NAMES = ("rowid", "start", "end", "oid", "select", "a b", 'a"b', "x;DROP TABLE y", "é", "value", "START", "_rowid_")


def edit(rng: Random, data: bytes, _: bytes) -> bytes:
    """The database after a few edits; one that it refuses is left out."""
    database = sqlite3.connect(":memory:")
    try:
        database.text_factory = lambda raw: raw.decode("utf-8", "replace")  # names may be damaged, too
        database.deserialize(data)
        for _each in range(rng.choice((1, 1, 2, 5))):
            _edit_once(rng, database)
        database.commit()
        if rng.random() < 0.1:
            database.execute(f"PRAGMA page_size = {rng.choice((512, 65536))}")
            database.execute("VACUUM")
        return bytes(database.serialize())
    except (sqlite3.Error, UnicodeDecodeError):  # of a message, too, that quotes the file
        return data
    finally:
        database.close()


DAMAGES: tuple[Damage, ...] = (edit,)


def is_sqlite(data: bytes) -> bool:
    """Whether it begins as an SQLite database does."""
    return data.startswith(b"SQLite format 3\0")


def _edit_once(rng: Random, database: sqlite3.Connection) -> None:
    tables = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
    if not tables:
        return
    table = rng.choice(tables)
    columns = [row[1] for row in database.execute(f"PRAGMA table_info({_quoted(table)})")]
    if not columns:
        return
    try:
        rng.choice(_EDITS)(rng, database, table, columns)
    except (sqlite3.Error, sqlite3.Warning, OverflowError):
        database.rollback()


def _expression(rng: Random) -> str:
    """What a cell becomes: a parameter, or what only SQL can say."""
    return rng.choice(_EXPRESSIONS)


def _values(rng: Random) -> dict[str, Any]:
    whole = rng.choice((0, -1, 2**63 - 1, -(2**63), 2**32, 10**17, rng.randrange(1000)))
    text = hostile.text(rng)
    return {"text": text, "number": rng.choice((1.5, -0.0, 1e308, 1e15)), "blob": rng.randbytes(9), "whole": whole}


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
