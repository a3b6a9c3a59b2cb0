"""What plain SQL and whole numbers say of an Nsight Systems export, printed as JSON with the fields of `Truth`.

    sql_truth.py FILE kernels calls spans devices      the last four choose the tables

Nothing of inferometer is used, and nothing of the peers. Statistics come from how often each duration occurs, exact but
for one square root. Made for files of `tools/make_nsys.py`: one device, no graphs, ranges that nest.
"""

from __future__ import annotations

import json
import math
import re
import sqlite3
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Final

_ROWS: Final = {
    "launches": ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY"),
    "calls": ("CUPTI_ACTIVITY_KIND_RUNTIME",),
    "spans": ("NVTX_EVENTS", "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"),
}
_DURATIONS: Final = 'SELECT {name}, "end" - start, count(*) FROM {table} GROUP BY 1, 2 ORDER BY 1, 2'
_WORK: Final = """
SELECT start, "end", globalPid, correlationId FROM CUPTI_ACTIVITY_KIND_KERNEL
UNION ALL SELECT start, "end", globalPid, correlationId FROM CUPTI_ACTIVITY_KIND_MEMCPY
"""
_PREPARE: Final = f"""
CREATE TEMP TABLE work AS {_WORK};
CREATE INDEX temp.work_of ON work (correlationId);
CREATE TEMP TABLE called AS
    SELECT w.rowid AS launch, c.globalTid AS thread, c.start AS called, w."end" - w.start AS dur
    FROM CUPTI_ACTIVITY_KIND_RUNTIME c
    JOIN work w ON w.correlationId = c.correlationId AND w.globalPid >> 24 = c.globalTid >> 24;
CREATE INDEX temp.called_at ON called (thread, called);
CREATE TEMP TABLE ranges AS
    SELECT coalesce(n.text, s.value) AS name, n.globalTid AS thread, n.start AS start, n."end" AS "end"
    FROM NVTX_EVENTS n LEFT JOIN StringIds s ON s.id = n.textId;
CREATE TEMP TABLE pairs AS
    SELECT r.name AS name, r.start AS start, c.launch AS launch, c.dur AS dur
    FROM ranges r CROSS JOIN called c ON c.thread = r.thread AND c.called >= r.start AND c.called < r."end";
"""
_SPANS: Final = {
    ("instances", "host_total_ns"): 'SELECT name, count(*), sum("end" - start) FROM ranges GROUP BY name',
    ("launches", "summed_ns"): "SELECT name, count(*), sum(dur) FROM pairs GROUP BY name",
    ("own_launches", "own_summed_ns"): """
        SELECT name, count(*), sum(dur) FROM (SELECT name, dur, max(start) FROM pairs GROUP BY launch) GROUP BY name""",
}
_BUSY: Final = f"""
SELECT sum(max("end" - max(start, coalesce(before, start)), 0)) AS busy_ns, sum("end" - start) AS summed_ns,
       count(*) AS launches, max("end") - min(start) AS window_ns
FROM (SELECT start, "end",
             max("end") OVER (ORDER BY start ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before FROM ({_WORK}))
"""


def main(path: str, *tables: str) -> None:
    print(json.dumps(tell(sqlite3.connect(f"file:{path}?mode=ro", uri=True), tables)))


def tell(database: sqlite3.Connection, tables: Sequence[str]) -> dict[str, Any]:
    """The fields of `Truth`, with these tables."""
    rows = {table: sum(_count(database, each) for each in theirs) for table, theirs in _ROWS.items()}
    kernels = _statistics(database, "CUPTI_ACTIVITY_KIND_KERNEL", "demangledName")
    known: dict[str, Callable[[], dict[str, Any]]] = {
        "kernels": lambda: kernels,
        "calls": lambda: _calls(database),
        "spans": lambda: _spans(database),
        "devices": lambda: {"gpu:0": _one_row(database.execute(_BUSY))},
    }
    return {
        "launches": sum(kernel["count"] for kernel in kernels.values()),
        "kernel_ns": sum(kernel["total_ns"] for kernel in kernels.values()),
        "events": sum(rows.values()),
        "rows": rows,
        "tables": {table: known[table]() for table in tables},
    }


def _count(database: sqlite3.Connection, table: str) -> int:
    return int(database.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def _calls(database: sqlite3.Connection) -> dict[str, Any]:
    """By API, without the versions that end its name."""
    found = _statistics(database, "CUPTI_ACTIVITY_KIND_RUNTIME", "nameId")
    return {re.sub(r"_v\d+$", "", api): numbers for api, numbers in found.items()}


def _spans(database: sqlite3.Connection) -> dict[str, Any]:
    database.executescript(_PREPARE)
    spans: dict[str, dict[str, int]] = defaultdict(lambda: {column: 0 for columns in _SPANS for column in columns})
    for columns, query in _SPANS.items():
        for name, *numbers in database.execute(query):
            spans[name].update(zip(columns, numbers, strict=True))
    return spans


def _one_row(cursor: sqlite3.Cursor) -> dict[str, int]:
    (row,) = cursor
    return dict(zip((column[0] for column in cursor.description), row, strict=True))


def _statistics(database: sqlite3.Connection, table: str, name_id: str) -> dict[str, dict[str, Any]]:
    """By name, from how often each duration occurs."""
    names = dict(database.execute("SELECT id, value FROM StringIds"))
    durations: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for number, duration, count in database.execute(_DURATIONS.format(table=table, name=name_id)):
        durations[names[number]].append((duration, count))
    return {name: _of_one(some) for name, some in durations.items()}


def _of_one(durations: list[tuple[int, int]]) -> dict[str, Any]:
    n = sum(count for _, count in durations)
    total = sum(duration * count for duration, count in durations)
    squares = sum(duration * duration * count for duration, count in durations)
    return {
        "count": n,
        "total_ns": total,
        "mean_ns": total / n,
        "median_ns": (_at(durations, (n - 1) // 2) + _at(durations, n // 2)) / 2,
        "min_ns": durations[0][0],
        "max_ns": durations[-1][0],
        "stddev_ns": math.sqrt((n * squares - total * total) / (n * (n - 1))) if n > 1 else 0.0,
    }


def _at(durations: list[tuple[int, int]], place: int) -> int:
    """The duration at that place, were each repeated as often as it occurs."""
    for duration, count in durations:
        place -= count
        if place < 0:
            return duration
    raise AssertionError("the place is beyond the last")


if __name__ == "__main__":
    main(*sys.argv[1:])
