"""What plain SQL and whole numbers say of a Kineto trace, printed as JSON with the fields of `Truth`.

    python -m benchmarks.kineto_truth FILE kernels calls spans devices replays      the last five choose the tables

The file is read by `json.load` and put into tables with the names that `sql_truth` asks. Nothing of inferometer is
used. Made for files of `tools/make_kineto.py`: one process, one device, ranges that nest, times in whole nanoseconds.
`replays` has for each API that launches graphs the kernels that run by it: their number and time.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.sql_truth import tell

_TABLES: Final = """
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, "end", globalPid, correlationId, demangledName);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start, "end", globalPid, correlationId);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, "end", globalTid, correlationId, nameId);
CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start);
CREATE TABLE NVTX_EVENTS (start, "end", globalTid, text, textId);
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
"""
_PLACES: Final = {
    "kernel": ("CUPTI_ACTIVITY_KIND_KERNEL", 5),
    "gpu_memcpy": ("CUPTI_ACTIVITY_KIND_MEMCPY", 4),
    "gpu_memset": ("CUPTI_ACTIVITY_KIND_MEMCPY", 4),
    "cuda_runtime": ("CUPTI_ACTIVITY_KIND_RUNTIME", 5),
    "cuda_driver": ("CUPTI_ACTIVITY_KIND_RUNTIME", 5),
    "user_annotation": ("NVTX_EVENTS", 5),
    "Trace": ("NVTX_EVENTS", 5),
}
_REPLAYS: Final = "replays"
_REPLAYED: Final = """
SELECT s.value, count(*), sum(k."end" - k.start)
FROM CUPTI_ACTIVITY_KIND_RUNTIME c
JOIN StringIds s ON s.id = c.nameId AND s.value LIKE '%GraphLaunch%'
JOIN CUPTI_ACTIVITY_KIND_KERNEL k ON k.correlationId = c.correlationId
GROUP BY 1
"""
Row = tuple[Any, ...]


def main(path: str, *tables: str) -> None:
    with Path(path).open(encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    database = _load(events)
    said = tell(database, [table for table in tables if table != _REPLAYS])
    if _REPLAYS in tables:
        rows = database.execute(_REPLAYED)
        said["tables"][_REPLAYS] = {api: {"launches": number, "summed_ns": ns} for api, number, ns in rows}
    print(json.dumps(said))


def _load(events: Sequence[Mapping[str, Any]]) -> sqlite3.Connection:
    database = sqlite3.connect(":memory:")
    database.executescript(_TABLES)
    names, threads = _Numbers(), _Numbers()
    for category, (table, width) in _PLACES.items():
        make = _MAKERS[table]
        rows = (make(event, names, threads) for event in events if event.get("cat") == category)
        database.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * width)})", rows)
    database.executemany("INSERT INTO StringIds VALUES (?, ?)", names.items())
    return database


class _Numbers:
    """Numbers things in the order in which they are asked for."""

    def __init__(self) -> None:
        self._known: dict[object, int] = {}

    def __getitem__(self, thing: object) -> int:
        return self._known.setdefault(thing, len(self._known))

    def items(self) -> Iterator[tuple[int, object]]:
        """Number and thing."""
        return ((number, thing) for thing, number in self._known.items())


def _kernel(event: Mapping[str, Any], names: _Numbers, threads: _Numbers) -> Row:
    return (*_copy(event, names, threads), names[event["name"]])


def _copy(event: Mapping[str, Any], names: _Numbers, threads: _Numbers) -> Row:
    return (*_interval(event), 0, event["args"]["correlation"])


def _call(event: Mapping[str, Any], names: _Numbers, threads: _Numbers) -> Row:
    return (*_interval(event), _thread(event, threads), event["args"].get("correlation"), names[event["name"]])


def _range(event: Mapping[str, Any], names: _Numbers, threads: _Numbers) -> Row:
    return (*_interval(event), _thread(event, threads), event["name"], None)


_MAKERS: Final[Mapping[str, Callable[[Mapping[str, Any], _Numbers, _Numbers], Row]]] = {
    "CUPTI_ACTIVITY_KIND_KERNEL": _kernel,
    "CUPTI_ACTIVITY_KIND_MEMCPY": _copy,
    "CUPTI_ACTIVITY_KIND_RUNTIME": _call,
    "NVTX_EVENTS": _range,
}


def _interval(event: Mapping[str, Any]) -> tuple[int, int]:
    """In ns. A double holds these microseconds to a quarter of a nanosecond, so rounding is right."""
    start_ns = round(event["ts"] * 1000)
    return start_ns, start_ns + round(event["dur"] * 1000)


def _thread(event: Mapping[str, Any], threads: _Numbers) -> int:
    return threads[event["pid"], event["tid"]]


if __name__ == "__main__":
    main(*sys.argv[1:])
