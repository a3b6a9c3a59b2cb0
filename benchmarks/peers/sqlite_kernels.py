"""The kernel table of an Nsight Systems export by Python's `sqlite3`. Prints it as `inferometer kernels --json` does.

    sqlite_kernels.py FILE two          as one writes it: GROUP BY, Python aggregates for the median and the deviation
    sqlite_kernels.py FILE grouped      both in one aggregate
    sqlite_kernels.py FILE aggregate    the quickest way known through an aggregate in Python
    sqlite_kernels.py FILE text         the quickest way known of all: SQLite joins rows to text, NumPy reads it

All group by the number of the name and look the names up afterwards. `aggregate` and `text` spare SQLite the sorting
that GROUP BY costs: each row comes as one number, of duration and name, and NumPy sorts these at once.

Tried and not quicker: Welford's method, statistics.median, a list or a dict of lists for the
array, rows fetched one by one or all at once, grouping by duration too, memory-mapped reading, longer pieces of text,
two threads.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from array import array
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Row = tuple[int, dict[str, float]]

_COLUMNS = ("count", "total_ns", "mean_ns", "median_ns", "min_ns", "max_ns", "stddev_ns")
_TABLE = "CUPTI_ACTIVITY_KIND_KERNEL"
_DURATION = '"end" - start'
_PIECE_ROWS = 10_000
_NAME_BIT = 44  # durations are below: five hours


class Durations:
    """An aggregate that keeps its numbers; `step` is the array's own method, which saves a call in Python a row."""

    def __init__(self) -> None:
        self.numbers = array("q")
        self.step = self.numbers.append

    def finalize(self) -> Any:
        """All statistics of a group at once, as JSON."""
        return json.dumps(statistics(np.sort(np.frombuffer(self.numbers, np.int64))))


class Median(Durations):
    """The median of a group."""

    def finalize(self) -> Any:
        """As SQL takes it."""
        return float(np.median(np.frombuffer(self.numbers, np.int64)))


class Deviation(Durations):
    """The sample's standard deviation of a group; 0 for one launch."""

    def finalize(self) -> Any:
        """As SQL takes it."""
        numbers = np.frombuffer(self.numbers, np.int64)
        return float(numbers.std(ddof=1)) if len(numbers) > 1 else 0.0


class Packed(Durations):
    """The same over all rows, with their names."""

    def finalize(self) -> Any:
        """Leave the numbers behind, since a result in SQL can't hold them."""
        whole.append(np.frombuffer(self.numbers, np.int64))


whole: list[Ints] = []


def main(path: str, way: str) -> None:
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    names = dict(database.execute("SELECT id, value FROM StringIds"))
    radix = max(names) + 1
    if way == "two":
        found = with_two(database)
    elif way == "grouped":
        found = grouped(database)
    elif way == "aggregate":
        found = split(aggregated(database, radix), radix)
    else:
        found = split(joined(database, radix), radix)
    rows = [{"kernel": names[number]} | numbers for number, numbers in found]
    print(json.dumps({"total_ns": sum(row["total_ns"] for row in rows), "rows": rows}))


def with_two(database: sqlite3.Connection) -> Iterator[Row]:
    database.create_aggregate("median", 1, Median)
    database.create_aggregate("deviation", 1, Deviation)
    statistics = [f"{name}({_DURATION})" for name in ("count", "sum", "avg", "median", "min", "max", "deviation")]
    for number, *row in database.execute(f"SELECT demangledName, {', '.join(statistics)} FROM {_TABLE} GROUP BY 1"):
        yield number, dict(zip(_COLUMNS, row, strict=True))


def grouped(database: sqlite3.Connection) -> Iterator[Row]:
    database.create_aggregate("statistics", 1, Durations)
    for number, text in database.execute(f"SELECT demangledName, statistics({_DURATION}) FROM {_TABLE} GROUP BY 1"):
        yield number, json.loads(text)


def aggregated(database: sqlite3.Connection, radix: int) -> Ints:
    database.create_aggregate("pack", 1, Packed)
    database.execute(f"SELECT pack({packed(radix)}) FROM {_TABLE}").fetchall()
    return whole[0]


def joined(database: sqlite3.Connection, radix: int) -> Ints:
    bounds = f"SELECT (SELECT min(rowid) FROM {_TABLE}), (SELECT max(rowid) FROM {_TABLE})"
    first, last = database.execute(bounds).fetchone()
    query = f"SELECT group_concat({packed(radix)}, ' ') FROM {_TABLE} WHERE rowid BETWEEN ? AND ?"
    pieces = []
    for start in range(first, last + 1, _PIECE_ROWS):
        (text,) = database.execute(query, (start, start + _PIECE_ROWS - 1)).fetchone()
        pieces.append(np.fromstring(text, np.int64, sep=" "))
    return np.concatenate(pieces)


def packed(radix: int) -> str:
    """Duration and name as one number, as short as can be."""
    return f"({_DURATION}) * {radix} + demangledName"


def split(numbers: Ints, radix: int) -> Iterator[Row]:
    numbers = numbers % radix << _NAME_BIT | numbers // radix
    numbers.sort()
    name, duration = numbers >> _NAME_BIT, numbers & (1 << _NAME_BIT) - 1
    bounds = np.flatnonzero(np.diff(name, prepend=-1)).tolist()
    for first, last in zip(bounds, [*bounds[1:], len(name)], strict=True):
        yield int(name[first]), statistics(duration[first:last])


def statistics(durations: Ints) -> dict[str, Any]:
    """Of one kernel; they are sorted."""
    n, total = len(durations), int(durations.sum())
    return {
        "count": n,
        "total_ns": total,
        "mean_ns": total / n,
        "median_ns": int(durations[(n - 1) // 2] + durations[n // 2]) / 2,
        "min_ns": int(durations[0]),
        "max_ns": int(durations[-1]),
        "stddev_ns": float(durations.std(ddof=1)) if n > 1 else 0.0,
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
