"""Writes an Nsight Systems `.sqlite` export of LLM decoding that is made up, and exactly known.

    make_nsys.py --kernels 100000 --out run.sqlite                 about 12 MB
    make_nsys.py --kernels 10000000 --out big.sqlite               about 1.2 GB
    make_nsys.py --kernels 20000 --devices 2 --out two.sqlite      a process for each device, equal correlation ids
    make_nsys.py --kernels 20000 --graph --out graph.sqlite        each step replays a CUDA graph
    make_nsys.py --nvtx launches --out ranges.sqlite               a named range around every call that launches too

Tables and columns are those of a 2025 export. The same arguments give the same rows. Times are modelled, not measured.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Nvtx = Literal["none", "layers", "launches"]

_KERNELS: Final = Path(__file__).parent / "kineto_maker" / "kernels.json"
_APIS: Final = (
    "cudaLaunchKernel_v7000",
    "cuLaunchKernelEx",
    "cudaGraphLaunch_v10000",
    "cudaMemcpyAsync_v3020",
    "cudaStreamSynchronize_v3020",
)
_LAYERS: Final = 32
_PER_LAYER: Final = 12
_CALL_NS, _BETWEEN_NS, _LATENCY_NS, _GAP_NS = 4_200, 2_600, 1_700, 900
_COPIES, _SYNCS = 2_000_000_000, 2_100_000_000  # correlation ids of what ends a step; those of launches begin at 1
_LAUNCH: Final = (1, 64, 64, 1, 1, 128, 1, 1, 0, 16_384)  # type, registers, grid, block, static and dynamic memory
_ROWS: Final = 100_000
_SCHEMA: Final = {
    "StringIds": "id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL",
    "META_DATA_EXPORT": "name TEXT NOT NULL, value TEXT",
    "META_DATA_CAPTURE": "name TEXT NOT NULL, value TEXT",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs INTEGER, utcTime TEXT, localTime TEXT",
    "TARGET_INFO_SYSTEM_ENV": "globalVid INTEGER, devStateName TEXT, name TEXT, nameEnum INTEGER, value TEXT",
    "TARGET_INFO_GPU": "id INTEGER NOT NULL, name TEXT, totalMemory INTEGER, smCount INTEGER, threadsPerWarp INTEGER, "
    "computeMajor INTEGER, computeMinor INTEGER",
    "TARGET_INFO_CUDA_DEVICE": "gpuId INTEGER NOT NULL, cudaId INTEGER NOT NULL, pid INTEGER NOT NULL, uuid TEXT",
    "PROCESSES": "globalPid INTEGER, pid INTEGER, name TEXT",
    "NVTX_EVENTS": "start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, text TEXT, globalTid INTEGER, "
    "textId INTEGER, domainId INTEGER",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, "
    "globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, "
    "callchainId INTEGER",
    "CUPTI_ACTIVITY_KIND_KERNEL": "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, "
    "contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, "
    "globalPid INTEGER, demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER, "
    "launchType INTEGER, registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL, gridY INTEGER NOT NULL, "
    "gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL, "
    "staticSharedMemory INTEGER NOT NULL, dynamicSharedMemory INTEGER NOT NULL, gridId INTEGER NOT NULL, "
    "graphNodeId INTEGER",
    "CUPTI_ACTIVITY_KIND_MEMCPY": "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, "
    "contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, "
    "bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, "
    "contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, "
    "syncType INTEGER NOT NULL",
}


@dataclass(frozen=True)
class Options:
    """What to make."""

    kernels: int = 100_000
    devices: int = 1
    graph: bool = False
    nvtx: Nvtx = "layers"
    seed: int = 7


@dataclass(frozen=True)
class _Steps:
    """One device's kernels in order, with the step of each: `kind` numbers the names, times are ns. Shapes (n,)."""

    kind: Ints
    step: Ints
    called: Ints
    call_ns: Ints
    start: Ints
    dur: Ints

    def of_step(self) -> Iterator[tuple[int, slice]]:
        """Each step's number, and where its kernels are."""
        bounds = np.flatnonzero(np.diff(self.step, prepend=-1))
        for first, last in zip(bounds.tolist(), [*bounds[1:].tolist(), len(self.step)], strict=True):
            yield int(self.step[first]), slice(first, last)


def write_export(options: Options, path: Path) -> dict[str, Any]:
    """Write the export; returns the truth: rows of each table, and launches and summed ns of each kernel."""
    known = json.loads(_KERNELS.read_text("utf-8"))["kernels"].values()
    names = list(dict.fromkeys(kernel["name"] for kernel in known))  # one is there twice
    ranges = [*(f"layer_{i}" for i in range(_LAYERS)), *(f"op_{i}" for i in range(len(names)))]
    strings = [*names, *_APIS, *ranges]
    ids = {text: i + 1 for i, text in enumerate(strings)}
    database = sqlite3.connect(path)
    database.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;")
    for table, columns in _SCHEMA.items():
        database.execute(f"CREATE TABLE {table} ({columns})")
    rows = dict.fromkeys(_SCHEMA, 0)
    launches = np.zeros(len(names), np.int64)
    summed = np.zeros(len(names), np.int64)
    for device in range(options.devices):
        n = options.kernels // options.devices + (device < options.kernels % options.devices)
        steps = _steps(n, len(names), options, np.random.default_rng([options.seed, device]))
        launches += np.bincount(steps.kind, minlength=len(names))
        summed += np.bincount(steps.kind, weights=steps.dur, minlength=len(names)).astype(np.int64)
        for table, some in _tables(steps, device, options, ids, names):
            rows[table] += _insert(database, table, some)
    for table, some in _beside(options.devices, ids):
        rows[table] += _insert(database, table, some)
    database.commit()
    database.close()
    kernels = {name: [int(launches[i]), int(summed[i])] for i, name in enumerate(names) if launches[i]}
    return {"kernels": kernels, "rows": {table: n for table, n in rows.items() if n}}


def _steps(n: int, names: int, options: Options, random: np.random.Generator) -> _Steps:
    """Kernels of decoding steps, the same in each; a step begins after the one before it has ended."""
    per_step = _LAYERS * _PER_LAYER
    place = np.arange(n, dtype=np.int64) % per_step
    step = np.arange(n, dtype=np.int64) // per_step
    kind = (place % _PER_LAYER + place // _PER_LAYER) % names
    base = 1_500 + 1_900 * (kind % 7) + 700 * (kind % 3)
    dur = (base * (0.9 + 0.2 * random.random(n) ** 2 + 1.5 * (random.random(n) < 0.004))).astype(np.int64)
    call_ns = (_CALL_NS * (0.9 + 0.3 * random.random(n))).astype(np.int64)
    step_ns = per_step * (_CALL_NS + _BETWEEN_NS + 2_500)
    called = 1_000_000_000 + step * step_ns + place * (0 if options.graph else _CALL_NS + _BETWEEN_NS)
    ready = called + _LATENCY_NS
    busy = np.cumsum(dur + _GAP_NS) - dur  # the earliest starts, were the device never idle
    start = np.maximum.accumulate(ready - busy) + busy
    return _Steps(kind, step, called, call_ns, start, dur)


def _tables(
    steps: _Steps, device: int, options: Options, ids: dict[str, int], names: Sequence[str]
) -> Iterator[tuple[str, Iterator[tuple[Any, ...]]]]:
    pid = 4000 + device
    global_pid = 1 << 56 | pid << 24
    name = np.array([ids[text] for text in names], np.int64)[steps.kind]
    number = np.arange(1, len(steps.kind) + 1)
    correlation = steps.step + 1 if options.graph else number
    node = (number - 1) % (_LAYERS * _PER_LAYER) + 1 if options.graph else [None] * len(number)
    end = steps.start + steps.dur
    yield (
        "CUPTI_ACTIVITY_KIND_KERNEL",
        (
            (start, end, 0, 1, None, 7, cid, global_pid, text, text, text, *_LAUNCH, grid, at)
            for start, end, cid, text, grid, at in _zipped(steps.start, end, correlation, name, number, node)
        ),
    )
    tid = global_pid | pid
    if not options.graph:
        api = np.array([ids[_APIS[0]], ids[_APIS[1]]])[(steps.kind % 3 == 0).astype(int)]
        yield (
            "CUPTI_ACTIVITY_KIND_RUNTIME",
            (
                (start, start + dur, 0, tid, cid, call, 0, None)
                for start, dur, cid, call in _zipped(steps.called, steps.call_ns, number, api)
            ),
        )
    at_ends = list(_ends(steps, end))
    yield "CUPTI_ACTIVITY_KIND_RUNTIME", _calls_of_steps(at_ends, tid, options, ids)
    yield (
        "CUPTI_ACTIVITY_KIND_MEMCPY",
        ((done + 900, done + 2300, 0, 1, 7, _COPIES + i, global_pid, 512, 2) for i, _, _, done in at_ends),
    )
    yield (
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
        ((last + 14_000, done + 3_000, 0, 1, 7, _SYNCS + i, global_pid, 3) for i, _, last, done in at_ends),
    )
    if options.nvtx != "none":
        yield "NVTX_EVENTS", _ranges(steps, at_ends, tid, options, ids)


def _ends(steps: _Steps, end: Ints) -> Iterator[tuple[int, int, int, int]]:
    """Each step's number, its first and last call, and when its kernels are done: after the calls that follow them."""
    for i, part in steps.of_step():
        first, last = int(steps.called[part][0]), int(steps.called[part][-1])
        yield i, first, last, max(int(end[part][-1]), last + 12_000)


def _calls_of_steps(
    at_ends: list[tuple[int, int, int, int]], tid: int, options: Options, ids: dict[str, int]
) -> Iterator[tuple[Any, ...]]:
    _, _, graph, copy, sync = (ids[api] for api in _APIS)
    for i, first, last, done in at_ends:
        if options.graph:
            yield first, first + 7_000, 0, tid, i + 1, graph, 0, None
        yield last + 8_000, last + 13_000, 0, tid, _COPIES + i, copy, 0, None
        yield last + 14_000, done + 3_000, 0, tid, _SYNCS + i, sync, 0, None


def _ranges(
    steps: _Steps, at_ends: list[tuple[int, int, int, int]], tid: int, options: Options, ids: dict[str, int]
) -> Iterator[tuple[Any, ...]]:
    """A range a step with its own text, and in eager steps ranges of layers and launches with texts that repeat."""
    for i, first, _, done in at_ends:
        yield first - 1_000, done + 4_000, 59, f"execute_context_0(0)_generation_64(64) step {i}", tid, None, 0
    if options.graph:
        return
    closed = steps.called + steps.call_ns
    layer = np.flatnonzero(np.arange(len(steps.kind)) % _PER_LAYER == _PER_LAYER - 1)
    text = np.array([ids[f"layer_{i}"] for i in range(_LAYERS)])[layer // _PER_LAYER % _LAYERS]
    for begin, close, which in _zipped(steps.called[layer - _PER_LAYER + 1] - 200, closed[layer] + 200, text):
        yield begin, close, 59, None, tid, which, 0
    if options.nvtx == "launches":
        text = np.array([ids[f"op_{i}"] for i in range(int(steps.kind.max()) + 1)])[steps.kind]
        for begin, close, which in _zipped(steps.called - 100, closed + 100, text):
            yield begin, close, 59, None, tid, which, 0


def _beside(devices: int, ids: dict[str, int]) -> Iterator[tuple[str, Iterator[tuple[Any, ...]]]]:
    yield "StringIds", ((number, text) for text, number in ids.items())
    yield "META_DATA_EXPORT", iter([("EXPORT_SCHEMA_VERSION", "3.21.4")])
    yield "META_DATA_CAPTURE", iter([("PROFILER_VERSION", "2025.5.1")])
    yield "TARGET_INFO_SESSION_START_TIME", iter([(1751410836000000000, "2025-07-01 23:00:36", "2025-07-01 23:00:36")])
    yield "TARGET_INFO_SYSTEM_ENV", iter([(1 << 56, "", "Hostname", 1, "node-7")])
    yield "TARGET_INFO_GPU", ((i, "NVIDIA H100 80GB HBM3", 85018279936, 132, 32, 9, 0) for i in range(devices))
    yield "TARGET_INFO_CUDA_DEVICE", ((i, 0, 4000 + i, f"GPU-{i}") for i in range(devices))  # each sees its own as 0
    yield "PROCESSES", ((1 << 56 | (4000 + i) << 24, 4000 + i, "python3") for i in range(devices))


def _zipped(*columns: Any) -> Iterator[tuple[Any, ...]]:
    """Rows of plain Python numbers, made a piece at a time."""
    for first in range(0, len(columns[0]), _ROWS):
        pieces = (column[first : first + _ROWS] for column in columns)
        yield from zip(*(p.tolist() if isinstance(p, np.ndarray) else p for p in pieces), strict=True)


def _insert(database: sqlite3.Connection, table: str, rows: Iterator[tuple[Any, ...]]) -> int:
    n = 0
    while some := list(islice(rows, _ROWS)):
        places = ",".join("?" * len(some[0]))
        database.executemany(f"INSERT INTO {table} VALUES ({places})", some)
        n += len(some)
    return n


def main(arguments: list[str] | None = None) -> int:
    """Parses the command line, writes the export, and the truth where it was asked for. Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the export to write")
    parser.add_argument("--kernels", type=int, default=Options.kernels, metavar="N", help="in all (%(default)s)")
    parser.add_argument("--devices", type=int, default=1, metavar="N", help="each with a process (%(default)s)")
    parser.add_argument("--graph", action="store_true", help="each step replays a CUDA graph")
    parser.add_argument("--nvtx", choices=get_args(Nvtx), default=Options.nvtx, help="named ranges (%(default)s)")
    parser.add_argument("--seed", type=int, default=Options.seed, metavar="N", help="of the times (%(default)s)")
    parser.add_argument("--truth", type=Path, metavar="FILE", help="write what is in the export there, as JSON")
    parser.add_argument("--force", action="store_true", help="replace files that exist")
    given = vars(parser.parse_args(arguments))
    out, truth, force = given.pop("out"), given.pop("truth"), given.pop("force")
    options = Options(**given)
    if not 1 <= options.devices <= options.kernels:
        parser.error("want at least one device, and a kernel for each")
    for path in (out, truth):
        if path and path.exists() and not force:
            parser.error(f"{path} exists: give another name, or --force")
    out.unlink(missing_ok=True)
    said = write_export(options, out)
    if truth:
        truth.write_text(json.dumps(said), "utf-8")
    print(f"{out}: {out.stat().st_size / 1e6:,.1f} MB, {options.kernels:,} kernels", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
