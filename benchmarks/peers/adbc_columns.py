"""The least that SQLite's driver takes for an export: two columns of its kernels by ADBC, two ranges at a time."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import polars as pl
from adbc_driver_sqlite import dbapi

_TABLE = "CUPTI_ACTIVITY_KIND_KERNEL"
_ROWS = 1 << 18
_AT_ONCE = 2


def main(path: str) -> None:
    uri = f"file:{quote(str(Path(path).absolute()))}?mode=ro"

    def read(first: int) -> pl.DataFrame:
        columns = '"end" - "start" AS ns, "demangledName" AS name'
        where = f"rowid BETWEEN {first} AND {first + _ROWS - 1}"
        with dbapi.connect(uri) as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT {columns} FROM {_TABLE} WHERE {where}")
            found: pl.DataFrame = cursor.fetch_polars()
            return found

    with dbapi.connect(uri) as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT min(rowid) AS first, max(rowid) AS last FROM {_TABLE}")
        first, last = cursor.fetch_polars().row(0)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        parts = [*pool.map(read, range(first, last + 1, _ROWS))]
    by_name = pl.concat(parts).group_by("name").agg(pl.col("ns").sum())
    print(json.dumps({"kernel_ns": int(by_name["ns"].sum())}))


if __name__ == "__main__":
    main(sys.argv[1])
