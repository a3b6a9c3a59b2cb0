"""Nsight Systems exports made by hand, as `.sqlite` or as a parquetdir, and what plain SQL says of them."""

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median, stdev
from typing import Any

import polars as pl

Rows = Sequence[Mapping[str, Any]]

PID, TID = 4000, 4001
GLOBAL_PID = 1 << 56 | PID << 24
GLOBAL_TID = GLOBAL_PID | TID
STRINGS = (
    *("gemm", "void attn<128>(float*)", "cudaLaunchKernel_v7000", "step", "python", "main", "forward", "lib.so"),
    "Graph Node Creation",
)


def string(text: str) -> int:
    """The id of one of `STRINGS`."""
    return STRINGS.index(text) + 1


def kernel(start: int, dur: int, name: str = "gemm", **fields: Any) -> dict[str, Any]:
    """A row of the table of kernels."""
    return {
        "start": start,
        "end": start + dur,
        "deviceId": 0,
        "contextId": 1,
        "streamId": 7,
        "correlationId": 1,
        "globalPid": GLOBAL_PID,
        "demangledName": string(name),
        "shortName": string(name),
        "registersPerThread": 64,
        **{f"{size}{axis}": n for size, n in (("grid", 2), ("block", 32)) for axis in "XYZ"},
        "staticSharedMemory": 16,
        "dynamicSharedMemory": 1024,
        **fields,
    }


def call(start: int, dur: int, **fields: Any) -> dict[str, Any]:
    """A row of the table of calls."""
    name = string("cudaLaunchKernel_v7000")
    base = {"start": start, "end": start + dur, "globalTid": GLOBAL_TID, "correlationId": 1, "nameId": name}
    return {**base, "returnValue": 0, **fields}


def node(start: int, number: int | None, original: int | None = None, **fields: Any) -> dict[str, Any]:
    """A row of the table of nodes of graphs."""
    base = {"start": start, "end": start, "eventClass": 77, "globalTid": GLOBAL_TID}
    ids = {"nameId": string("Graph Node Creation"), "graphNodeId": number, "originalGraphNodeId": original}
    return {**base, **ids, **fields}


def export(**tables: Rows) -> dict[str, Rows]:
    """Tables of an export; `KERNEL`, `RUNTIME`, … stand for the long names, and the strings are there."""
    long = {
        name: f"CUPTI_ACTIVITY_KIND_{name}"
        for name in ("KERNEL", "RUNTIME", "MEMCPY", "MEMSET", "SYNCHRONIZATION", "GRAPH_TRACE")
    }
    strings = [{"id": i + 1, "value": text} for i, text in enumerate(STRINGS)]
    return {"StringIds": strings, **{long.get(name, name): rows for name, rows in tables.items()}}


def write_sqlite(path: Path, tables: Mapping[str, Rows]) -> Path:
    """The tables as an `.sqlite` export; columns are those of a table's first row, without types."""
    path.unlink(missing_ok=True)
    with sqlite3.connect(path) as database:
        for table, rows in tables.items():
            columns = list(rows[0]) if rows else ["start", "end"]
            names = ", ".join(f'"{column}"' for column in columns)
            database.execute(f'CREATE TABLE "{table}" ({names})')
            places = ",".join("?" * len(columns))
            database.executemany(f'INSERT INTO "{table}" VALUES ({places})', [tuple(row.values()) for row in rows])
    database.close()
    return path


def write_parquetdir(path: Path, tables: Mapping[str, Rows]) -> Path:
    """The tables as a parquetdir export."""
    path.mkdir()
    for table, rows in tables.items():
        frame = pl.DataFrame(rows) if rows else pl.DataFrame(schema={"start": pl.Int64, "end": pl.Int64})
        frame.write_parquet(path / f"{table}.parquet")
    return path


def kernels_by_sql(path: Path) -> dict[str, tuple[int, int, float, float, int, int, float]]:
    """Count, sum, mean, median, minimum, maximum and sample deviation of each kernel, by name, from plain SQL."""
    with sqlite3.connect(path) as database:
        rows = database.execute(
            "SELECT s.value, k.end - k.start"
            " FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.demangledName"
        ).fetchall()
    database.close()
    durations: dict[str, list[int]] = {}
    for name, duration in rows:
        durations.setdefault(name, []).append(duration)
    return {
        name: (len(d), sum(d), sum(d) / len(d), median(d), min(d), max(d), stdev(d) if len(d) > 1 else 0.0)
        for name, d in durations.items()
    }
