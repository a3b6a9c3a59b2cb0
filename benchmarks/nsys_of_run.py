"""An Nsight Systems `.sqlite` export of a run that `tools/kineto_maker` plays: the same launches, calls and marks.

Only tables and columns that such a run fills. `tools/make_nsys.py` writes whole exports, of kernels in no engine's
order.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from tools.kineto_maker import Options
from tools.kineto_maker.nodes import Copy, Fill, Launch
from tools.kineto_maker.player import play
from tools.kineto_maker.runs import CallRun, StepRun, WorkRun

_PROCESS: Final = 1 << 56 | 4_000 << 24
_THREAD: Final = _PROCESS | 4_000
_RANGE: Final = 59  # the type of a range that is pushed and popped
_PLACED: Final = "start, end, deviceId, contextId, streamId, correlationId, globalPid"
_TABLES: Final = {
    "StringIds": "id, value",
    "META_DATA_EXPORT": "name, value",
    "TARGET_INFO_GPU": "id, name, totalMemory, smCount, threadsPerWarp, computeMajor, computeMinor",
    "TARGET_INFO_CUDA_DEVICE": "gpuId, cudaId, pid, uuid",
    "NVTX_EVENTS": "start, end, eventType, text, globalTid, textId, domainId",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start, end, eventClass, globalTid, correlationId, nameId, returnValue, callchainId",
    "CUPTI_ACTIVITY_KIND_KERNEL": f"{_PLACED}, demangledName, shortName, registersPerThread, gridX, gridY, gridZ, "
    "blockX, blockY, blockZ, staticSharedMemory, dynamicSharedMemory, graphNodeId",
    "CUPTI_ACTIVITY_KIND_MEMCPY": f"{_PLACED}, bytes, copyKind",
    "CUPTI_ACTIVITY_KIND_MEMSET": f"{_PLACED}, bytes, value",
}
_COPY_KINDS: Final = {"HtoD": 1, "DtoH": 2}

_Rows = dict[str, list[tuple[Any, ...]]]


class _Texts:
    """Texts by number, from 1."""

    def __init__(self) -> None:
        self.ids: dict[str, int] = {}

    def number(self, text: str) -> int:
        return self.ids.setdefault(text, len(self.ids) + 1)


def write_nsys(options: Options, path: Path) -> None:
    """Writes the export. Steps are ranges where the run has marks; frames and ops are in no such file."""
    texts = _Texts()
    rows: _Rows = {table: [] for table in _TABLES}
    for step in play(options):
        _add(step, rows, texts)
    rows["StringIds"] = [(number, text) for text, number in texts.ids.items()]
    rows["META_DATA_EXPORT"] = [("EXPORT_SCHEMA_VERSION", "3.21.4")]
    rows["TARGET_INFO_GPU"] = [(0, "NVIDIA H100 80GB HBM3", 85_018_279_936, 132, 32, 9, 0)]
    rows["TARGET_INFO_CUDA_DEVICE"] = [(0, 0, 4_000, "GPU-0")]
    database = sqlite3.connect(path)
    for table, columns in _TABLES.items():
        database.execute(f"CREATE TABLE {table} ({_typed(columns)})")
        places = ", ".join("?" * len(columns.split(", ")))
        database.executemany(f"INSERT INTO {table} VALUES ({places})", rows[table])
    database.commit()
    database.close()


def _add(step: StepRun, rows: _Rows, texts: _Texts) -> None:
    for run in step.device:
        if isinstance(run, WorkRun):
            table, row = _work(run, texts)
            rows[table].append(row)
        else:
            rows["CUPTI_ACTIVITY_KIND_RUNTIME"].append(_call(run, texts))
    if step.mark is not None:
        rows["NVTX_EVENTS"].append((step.start_ns, step.end_ns, _RANGE, step.mark, _THREAD, None, 0))


def _call(run: CallRun, texts: _Texts) -> tuple[Any, ...]:
    ends = run.start_ns + run.dur_ns
    return run.start_ns, ends, 0, _THREAD, run.correlation, texts.number(run.api), 0, None


def _work(run: WorkRun, texts: _Texts) -> tuple[str, tuple[Any, ...]]:
    placed = (run.start_ns, run.start_ns + run.dur_ns, 0, 1, run.stream, run.correlation, _PROCESS)
    node = run.node
    if isinstance(node, Launch):
        name = texts.number(node.kernel)
        graph_node = None if run.graph is None else run.graph.number
        shape = (node.registers, *node.grid, *node.block, 0, node.shared_bytes, graph_node)
        return "CUPTI_ACTIVITY_KIND_KERNEL", (*placed, name, name, *shape)
    if isinstance(node, Copy):
        return "CUPTI_ACTIVITY_KIND_MEMCPY", (*placed, node.bytes, _COPY_KINDS[node.kind])
    assert isinstance(node, Fill)
    return "CUPTI_ACTIVITY_KIND_MEMSET", (*placed, node.bytes, 0)


def _typed(columns: str) -> str:
    return ", ".join(_types(columns.split(", ")))


def _types(columns: Iterable[str]) -> Iterator[str]:
    texts = ("value", "name", "text", "uuid")
    return (f"{column} {'TEXT' if column in texts else 'INTEGER'}" for column in columns)
