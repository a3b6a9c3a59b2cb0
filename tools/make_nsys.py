"""Writes an Nsight Systems `.sqlite` export of LLM decoding that is synthetic, and exactly known.

    make_nsys.py --kernels 100000 --out run.sqlite                 about 12 MB
    make_nsys.py --kernels 10000000 --out big.sqlite               about 1.2 GB
    make_nsys.py --kernels 20000 --devices 2 --out two.sqlite      a process for each device, equal correlation ids
    make_nsys.py --kernels 20000 --graph --out graph.sqlite        each step replays a CUDA graph
    make_nsys.py --graph --capture --out captured.sqlite           and its capture is there, in ranges of the modules
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
_MODULES: Final = (  # of a layer, and how many kernels each launches in a row
    ("input_layernorm", 1),
    ("self_attn.qkv_proj", 2),
    ("self_attn", 1),
    ("self_attn.rotary_emb", 1),
    ("self_attn.attn", 2),
    ("self_attn.o_proj", 1),
    ("post_attention_layernorm", 1),
    ("mlp.gate_up_proj", 1),
    ("mlp.act_fn", 1),
    ("mlp.down_proj", 1),
)
_CAPTURED_NS, _CREATED_NS, _CLONED_NS = 100_000_000, 1_500, 700  # the capture; from a call to its node; between clones
_CAPTURES: Final = 2_200_000_000  # correlation ids of what captures
_NODE, _CLONE = 1 << 32, 2 << 32  # ids of nodes are a graph's number and theirs, from 0
_NODE_CREATED: Final = 77  # the event's class
_CAPTURE_TEXTS: Final = (
    "Graph Node Creation",
    "cudaStreamBeginCapture_v10000",
    "cudaStreamEndCapture_v10000",
    "cudaGraphInstantiateWithFlags_v11040",
)
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
_CAPTURE_SCHEMA: Final = {
    "CUDA_GRAPH_NODE_EVENTS": "start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, "
    "globalTid INTEGER, nameId INTEGER NOT NULL, graphNodeId INTEGER NOT NULL, originalGraphNodeId INTEGER",
}


@dataclass(frozen=True)
class Options:
    """What to make."""

    kernels: int = 100_000
    devices: int = 1
    graph: bool = False
    capture: bool = False
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


@dataclass(frozen=True)
class _Capture:
    """The capture of a step: the module, and the call, of each node, and ranges with their texts. Times are ns."""

    modules: list[str]
    called: list[int]
    ranges: list[tuple[int, int, str]]
    end: int


def write_export(options: Options, path: Path) -> dict[str, Any]:
    """Write the export; returns the truth: rows of each table, and launches and summed ns of each kernel.

    With `capture` also `nodes`: by process and the id that kernels carry, the original's id, the ns at which that was
    created, and the innermost module then.
    """
    known = json.loads(_KERNELS.read_text("utf-8"))["kernels"].values()
    names = list(dict.fromkeys(kernel["name"] for kernel in known))  # one is there twice
    ranges = [*(f"layer_{i}" for i in range(_LAYERS)), *(f"op_{i}" for i in range(len(names)))]
    strings = [*names, *_APIS, *ranges, *(_CAPTURE_TEXTS if options.capture else ())]
    ids = {text: i + 1 for i, text in enumerate(strings)}
    database = sqlite3.connect(path)
    database.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;")
    schema = _SCHEMA | (_CAPTURE_SCHEMA if options.capture else {})
    for table, columns in schema.items():
        database.execute(f"CREATE TABLE {table} ({columns})")
    rows = dict.fromkeys(schema, 0)
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
    truth: dict[str, Any] = {"kernels": kernels, "rows": {table: n for table, n in rows.items() if n}}
    if options.capture:
        truth["nodes"] = {str(4000 + device): _nodes(_capture(device)) for device in range(options.devices)}
    return truth


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
    first = _CLONE if options.capture else 1
    node = (number - 1) % (_LAYERS * _PER_LAYER) + first if options.graph else [None] * len(number)
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
    if options.capture:
        yield from _capture_tables(_capture(device), tid, options, ids)
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
    """A range per step with its own text, and in eager steps ranges of layers and launches with texts that repeat."""
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


def _capture(device: int) -> _Capture:
    """What captures a step, long before the steps. A device holds the layers behind those of the one before it."""
    modules: list[str] = []
    called: list[int] = []
    ranges: list[tuple[int, int, str]] = []
    opened: list[tuple[str, int]] = []
    now = _CAPTURED_NS
    for module in (*_launching(device), ()):  # the last closes all
        while [name for name, _ in opened] != list(module[: len(opened)]):
            now += 900
            text = ".".join(name for name, _ in opened)
            ranges.append((opened.pop()[1], now, str({"Module": text, "Inputs": [[64, 4096]]})))
            ranges.append((now + 100, now + 300, str({"Module": text, "Outputs": [[64, 4096]]})))  # once it has run
            now += 400
        for name in module[len(opened) :]:
            opened.append((name, now))
            now += 700
        if module:
            modules.append(".".join(module))
            called.append(now)
            now += _CALL_NS + _BETWEEN_NS
    return _Capture(modules, called, ranges, now)


def _launching(device: int) -> Iterator[tuple[str, ...]]:
    """The calls of modules around each launch of a step, outermost first, by the names that their parents have."""
    for layer in range(device * _LAYERS, (device + 1) * _LAYERS):
        for module, launches in _MODULES:
            yield from [("LlamaForCausalLM", "model", f"layers.{layer}", *module.split("."))] * launches


def _capture_tables(
    capture: _Capture, tid: int, options: Options, ids: dict[str, int]
) -> Iterator[tuple[str, Iterator[tuple[Any, ...]]]]:
    """Calls, ranges, and nodes, of which each is created in its call, and cloned when the graph is instantiated."""
    created, begin, close, instantiate = (ids[text] for text in _CAPTURE_TEXTS)
    cloned = [capture.end + 9_000 + i * _CLONED_NS for i in range(len(capture.called))]
    done = cloned[-1] + 5_000
    calls = [
        (_CAPTURED_NS - 9_000, _CAPTURED_NS - 4_000, begin),
        *((called, called + _CALL_NS, ids[_APIS[0]]) for called in capture.called),
        (capture.end, capture.end + 4_000, close),
        (capture.end + 6_000, done, instantiate),
    ]
    yield (
        "CUPTI_ACTIVITY_KIND_RUNTIME",
        ((start, end, 0, tid, _CAPTURES + i, api, 0, None) for i, (start, end, api) in enumerate(calls)),
    )
    nodes: list[tuple[int, int, int | None]] = [
        (called + _CREATED_NS, _NODE + i, None) for i, called in enumerate(capture.called)
    ]
    for i, at in enumerate(cloned):
        nodes += [(at, _CLONE + i, None), (at + 200, _CLONE + i, _NODE + i)]  # its creation, then whose clone it is
    yield (
        "CUDA_GRAPH_NODE_EVENTS",
        ((at, at, _NODE_CREATED, tid, created, node, original) for at, node, original in nodes),
    )
    if options.nvtx != "none":
        around = (_CAPTURED_NS - 10_000, done + 1_000, "capture of batch size 64")
        yield "NVTX_EVENTS", ((a, b, 59, text, tid, None, 0) for a, b, text in sorted([around, *capture.ranges]))


def _nodes(capture: _Capture) -> dict[str, tuple[int, int, str]]:
    each = zip(capture.called, capture.modules, strict=True)
    return {str(_CLONE + i): (_NODE + i, called + _CREATED_NS, module) for i, (called, module) in enumerate(each)}


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
    parser.add_argument("--capture", action="store_true", help="with --graph: the capture of that graph too")
    parser.add_argument("--nvtx", choices=get_args(Nvtx), default=Options.nvtx, help="named ranges (%(default)s)")
    parser.add_argument("--seed", type=int, default=Options.seed, metavar="N", help="of the times (%(default)s)")
    parser.add_argument("--truth", type=Path, metavar="FILE", help="write what is in the export there, as JSON")
    parser.add_argument("--force", action="store_true", help="replace files that exist")
    given = vars(parser.parse_args(arguments))
    out, truth, force = given.pop("out"), given.pop("truth"), given.pop("force")
    options = Options(**given)
    if not 1 <= options.devices <= options.kernels:
        parser.error("expected at least one device, and a kernel for each")
    if options.capture and not options.graph:
        parser.error("--capture needs --graph")
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
