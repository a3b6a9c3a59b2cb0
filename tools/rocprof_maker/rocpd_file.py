"""The program as a rocpd database (SQLite): a set of tables with a suffix for each process, as in merged files.

Schema 3.0.0, or 4.1 as far as it is known: agent, queue, stream and thread behind a track, categories in a table of
their own. Every third dispatch has no thread, the kernel without a symbol no name, and the environment holds a token.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from .json_file import agents, command
from .program import COUNTERS, HOST, KERNELS, NO_SYMBOL, Call, Options, Run

_CATEGORIES: Final = (
    "KERNEL_DISPATCH",
    "MEMORY_COPY",
    "HIP_RUNTIME_API_EXT",
    "HSA_CORE_API",
    "MARKER_CORE_RANGE_API",
    "RCCL_API",
)
Row = dict[str, Any]


def write_rocpd(
    runs: Sequence[Run], options: Options, path: Path, *, schema: str = "3.0.0", page_bytes: int = 1024
) -> None:
    """Write the database; with large pages, names of tables are not among its first bytes."""
    database = sqlite3.connect(path)
    database.executescript(f"PRAGMA page_size={page_bytes}; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;")
    for i, run in enumerate(runs):
        guid = str(UUID(int=(options.seed << 64) + i))
        suffix = guid.replace("-", "_")
        tables = {f"{table}_{suffix}": rows for table, rows in _Tables(run, options, guid, schema).rows().items()}
        for table, rows in tables.items():
            _create(database, table, rows)
        for table, rows in tables.items():
            _insert(database, table, rows)
    for table in ("rocpd_kernel_dispatch", "rocpd_region", "rocpd_metadata"):
        names = [
            f'"{name}"'
            for (name,) in database.execute("SELECT name FROM sqlite_master WHERE name GLOB ?", (f"{table}_*",))
        ]
        database.execute(f"CREATE VIEW {table} AS {' UNION ALL '.join(f'SELECT * FROM {name}' for name in names)}")
    database.commit()
    database.close()


def _create(database: sqlite3.Connection, table: str, rows: list[Row]) -> None:
    columns = ", ".join(f'"{name}"' + (" INTEGER PRIMARY KEY" if name == "id" else "") for name in _columns(rows))
    database.execute(f'CREATE TABLE "{table}" ({columns or "id"})')


def _insert(database: sqlite3.Connection, table: str, rows: list[Row]) -> None:
    names = _columns(rows)
    if names:
        values = [[row.get(name) for name in names] for row in rows]
        database.executemany(f'INSERT INTO "{table}" VALUES ({", ".join("?" * len(names))})', values)


def _columns(rows: list[Row]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


class _Tables:
    """The rows of one process."""

    def __init__(self, run: Run, options: Options, guid: str, schema: str) -> None:
        self._run, self._options, self._guid, self._schema = run, options, guid, schema
        self._strings: dict[str, int] = {}
        self._events: list[Row] = []
        self._tracks: dict[tuple[Any, ...], int] = {}

    def rows(self) -> Mapping[str, list[Row]]:
        run = self._run
        data = {
            "rocpd_kernel_dispatch": self._dispatches(),
            "rocpd_memory_copy": self._copies(),
            "rocpd_region": [
                *(self._region(call, "HIP_RUNTIME_API_EXT") for call in run.hip),
                *(self._region(call, "HSA_CORE_API") for call in run.hsa),
                *(self._region(call, "MARKER_CORE_RANGE_API") for call in run.ranges),
                *(self._region(call, "RCCL_API") for call in run.rccl),
            ],
        }
        counts = self._counts(data["rocpd_kernel_dispatch"])
        tables = {**self._beside(), **data, "rocpd_pmc_event": counts, "rocpd_event": self._events}
        tables["rocpd_string"] = [{"id": n, "guid": self._guid, "string": text} for text, n in self._strings.items()]
        if self._schema.startswith("4"):
            names = ("nid", "pid", "tid", "agent_id", "queue_id", "stream_id")
            tables["rocpd_track"] = [
                {"id": n, "guid": self._guid, **dict(zip(names, key, strict=True))} for key, n in self._tracks.items()
            ]
            tables["rocpd_info_category"] = [{"id": i + 1, "name": name} for i, name in enumerate(_CATEGORIES)]
        return tables

    def _beside(self) -> dict[str, list[Row]]:
        run, guid = self._run, self._guid
        environment = {"PATH": "/usr/bin", "HOME": "/root", "HOSTNAME": HOST, "HF_TOKEN": self._options.token}
        process = {
            "id": 5,
            "guid": guid,
            "nid": 1,
            "ppid": 1,
            "pid": run.pid,
            "command": " ".join(command(self._options.token)),
        }
        return {
            "rocpd_metadata": [
                {"id": 1, "tag": "schema_version", "value": self._schema},
                {"id": 2, "tag": "guid", "value": guid},
            ],
            "rocpd_info_node": [{"id": 1, "guid": guid, "hostname": HOST}],
            "rocpd_info_process": [process | {"environment": json.dumps(environment)}],
            "rocpd_info_thread": [{"id": 6, "guid": guid, "nid": 1, "pid": 5, "tid": run.pid + 1}],
            "rocpd_info_agent": [self._agent(agent) for agent in agents(self._options.gpus)],
            "rocpd_info_kernel_symbol": [
                {
                    "id": kernel.number,
                    "guid": guid,
                    "kernel_name": f"{kernel.name}.kd",
                    "display_name": kernel.name,
                    "arch_vgpr_count": kernel.vgpr,
                    "accum_vgpr_count": kernel.agpr,
                    "sgpr_count": kernel.sgpr,
                }
                for kernel in KERNELS
                if kernel.number != NO_SYMBOL
            ],
            "rocpd_info_pmc": [
                {"id": i + 1, "guid": guid, "name": name, "symbol": name} for i, name in enumerate(COUNTERS)
            ],
        }

    def _agent(self, agent: Row) -> Row:
        index = agent["logical_node_type_id"]
        about = {"id": agent["node_id"] + 1, "guid": self._guid, "type": "GPU" if agent["type"] == 2 else "CPU"}
        return {
            **about,
            "type_index": index,
            "logical_index": agent["logical_node_id"],
            "absolute_index": agent["node_id"],
            "name": agent["name"],
            "product_name": agent["product_name"],
            "extdata": json.dumps(agent),
        }

    def _string(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings) + 1)

    def _event(self, category: str, correlation: int) -> int:
        new = self._schema.startswith("4")
        number = _CATEGORIES.index(category) + 1 if new else self._string(category)
        row = {"id": len(self._events) + 1, "guid": self._guid, "category_id": number, "stack_id": correlation}
        self._events.append(row | {"correlation_id": 0, "extdata": "{}"})
        return len(self._events)

    def _place(
        self, tid: int | None, agent: int | None = None, queue: int | None = None, stream: int | None = None
    ) -> Row:
        if self._schema.startswith("4"):
            key = (1, 5, tid, agent, queue, stream)
            return {"track_id": self._tracks.setdefault(key, len(self._tracks) + 1)}
        place = {"nid": 1, "pid": 5, "tid": tid}
        return place if agent is None else {**place, "agent_id": agent, "queue_id": queue, "stream_id": stream}

    def _dispatches(self) -> list[Row]:
        rows = []
        for i, row in enumerate(self._run.dispatches):
            sizes = {
                f"{name}_size_{axis}": size
                for name, each in (("workgroup", row.kernel.workgroup), ("grid", row.kernel.grid))
                for axis, size in zip("xyz", each, strict=True)
            }
            rows.append(
                {
                    "id": i + 1,
                    "guid": self._guid,
                    **self._place(None if i % 3 == 2 else 6, row.gpu + 2, row.queue, row.stream),
                    "kernel_id": row.kernel.number,
                    "dispatch_id": row.dispatch,
                    "start": row.start,
                    "end": row.end,
                    "private_segment_size": row.kernel.scratch,
                    "group_segment_size": row.kernel.static_lds + row.kernel.dynamic_lds,
                    **sizes,
                    "event_id": self._event("KERNEL_DISPATCH", row.correlation),
                }
            )
        return rows

    def _copies(self) -> list[Row]:
        rows = []
        for i, row in enumerate(self._run.copies):
            source, destination = (1, row.gpu + 2) if row.way == "HOST_TO_DEVICE" else (row.gpu + 2, 1)
            place = self._place(6) if self._schema.startswith("4") else self._place(6) | {"stream_id": row.stream}
            event = self._event("MEMORY_COPY", row.correlation)
            times = {"start": row.start, "end": row.end, "name_id": self._string(f"MEMORY_COPY_{row.way}")}
            ends = {"src_agent_id": source, "dst_agent_id": destination, "size": row.bytes, "event_id": event}
            rows.append({"id": i + 1, "guid": self._guid, **place, **times, **ends})
        return rows

    def _region(self, call: Call, category: str) -> Row:
        event = self._event(category, call.correlation)
        times = {"start": call.start, "end": call.end, "name_id": self._string(call.name), "event_id": event}
        return {"guid": self._guid, **self._place(6), **times}

    def _counts(self, dispatches: list[Row]) -> list[Row]:
        return [
            {"guid": self._guid, "event_id": row["event_id"], "pmc_id": i + 1, "value": value}
            for row in dispatches
            for i, name in enumerate(COUNTERS)
            for value in self._run.counts.get(row["dispatch_id"], {}).get(name, ())
        ]
