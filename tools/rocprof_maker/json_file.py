"""The program as rocprofv3's JSON: of ROCm 7, or of 6.3 with a key twice, no streams and no registers of its own."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final, TextIO

from .program import (
    COUNTERS,
    CPU_HANDLE,
    GPU_HANDLE,
    HOST,
    KERNELS,
    NO_SYMBOL,
    Call,
    Copy,
    Dispatch,
    Kernel,
    Options,
    Run,
)

_KINDS: Final = {
    "KERNEL_DISPATCH": ["KERNEL_DISPATCH_NONE", "KERNEL_DISPATCH_ENQUEUE", "KERNEL_DISPATCH_COMPLETE"],
    "MEMORY_COPY": [f"MEMORY_COPY_{way}" for way in ("NONE", "HOST_TO_HOST", "HOST_TO_DEVICE", "DEVICE_TO_HOST")],
    "HIP_RUNTIME_API": ["hipApiName", "hipLaunchKernel", "hipMemcpyAsync"],
    "HSA_CORE_API": ["hsa_init", "hsa_signal_store_screlease"],
    "MARKER_CORE_API": ["roctxMarkA", "roctxRangePushA"],
    "RCCL_API": ["ncclAllGather", "ncclAllReduce"],
    "SCRATCH_MEMORY": ["SCRATCH_MEMORY_NONE", "SCRATCH_MEMORY_ALLOC"],
}


def write_json(runs: Sequence[Run], options: Options, path: Path, *, release: str = "7.0") -> None:
    """Write the file. Kinds are numbered by the seed, since every release numbers them anew."""
    kinds = list(_KINDS)
    Random(options.seed).shuffle(kinds)
    with path.open("w", encoding="utf-8") as file:
        file.write('{"rocprofiler-sdk-tool": [')
        for i, run in enumerate(runs):
            file.write("," if i else "")
            _Writer(file, run, options, kinds, release).write()
        file.write("]}\n")


def agents(gpus: int) -> list[dict[str, Any]]:
    """A CPU and some GPUs."""
    cpu = {"id": {"handle": CPU_HANDLE}, "type": 1, "name": "AMD EPYC", "product_name": "AMD EPYC", "node_id": 0}
    cpu |= {"logical_node_id": 0, "logical_node_type_id": 0, "gpu_index": -1, "gfx_target_version": 0, "mem_banks": []}
    return [cpu, *map(_gpu, range(gpus))]


def _gpu(number: int) -> dict[str, Any]:
    return {
        "size": 312,
        "id": {"handle": GPU_HANDLE + number},
        "type": 2,
        "cu_count": 256,
        "wave_front_size": 64,
        "gfx_target_version": 90_500,
        "local_mem_size": 0,
        "name": "gfx950",
        "vendor_name": "AMD",
        "product_name": "AMD Instinct MI350X",
        "model_name": "ip discovery",
        "node_id": number + 1,
        "logical_node_id": number + 1,
        "logical_node_type_id": number,
        "gpu_index": number,
        "mem_banks": [{"heap_type": 1, "size_in_bytes": 309_220_868_096}],
    }


def command(token: str) -> list[str]:
    """What was run, with a secret in it."""
    return ["python3", "serve.py", f"--hf-token={token}"]


class _Writer:
    """One process."""

    def __init__(self, file: TextIO, run: Run, options: Options, kinds: list[str], release: str) -> None:
        self._file, self._run, self._options, self._kinds = file, run, options, kinds
        self._old = release.startswith("6")

    def write(self) -> None:
        run = self._run
        beside = {
            "metadata": self._metadata(),
            "agents": agents(self._options.gpus),
            "counters": [{"id": {"handle": 70 + i}, "name": name, "agent_id": {}} for i, name in enumerate(COUNTERS)],
            "strings": self._strings(),
            "code_objects": [],
            "kernel_symbols": [_symbol(kernel) for kernel in KERNELS if kernel.number != NO_SYMBOL],
            "summary": [],
        }
        self._file.write(json.dumps(beside)[:-1])
        self._file.write(', "callback_records": {"counter_collection": [')
        self._rows(self._counts())
        self._file.write(']}, "buffer_records": {')
        arrays = {
            "kernel_dispatch": map(self._dispatch, run.dispatches),
            "hip_api": (self._call(call, "HIP_RUNTIME_API") for call in run.hip),
            "hsa_api": (self._call(call, "HSA_CORE_API") for call in run.hsa),
            "marker_api": (self._call(call, "MARKER_CORE_API", "roctxRangePushA") for call in run.ranges),
            "rccl_api": (self._call(call, "RCCL_API") for call in run.rccl),
            "memory_copy": map(self._copy, run.copies),
            "scratch_memory": (self._call(call, "SCRATCH_MEMORY", "SCRATCH_MEMORY_ALLOC") for call in run.ranges[:1]),
        }
        for i, (name, rows) in enumerate(arrays.items()):
            self._file.write(f'{", " if i else ""}"{name}": [')
            self._rows(rows)
            self._file.write("]")
        self._file.write("}}")

    def _rows(self, rows: Iterable[str]) -> None:
        for i, row in enumerate(rows):
            self._file.write(row if i == 0 else "," + row)

    def _metadata(self) -> dict[str, Any]:
        return {
            "node": {"id": 0, "hostname": HOST, "system_name": "Linux"},
            "pid": self._run.pid,
            "init_time": 1,
            "fini_time": 2,
            "command": command(self._options.token),
            "config": {"output_path": "/tmp", "env": {"HF_TOKEN": self._options.token}},
        }

    def _strings(self) -> dict[str, Any]:
        return {
            "callback_records": [{"kind": "NONE", "operations": []}],
            "buffer_records": [{"kind": kind, "operations": _KINDS[kind]} for kind in self._kinds],
            "marker_api": [{"key": call.correlation, "value": call.name} for call in self._run.ranges],
            "correlation_id": {"external": []},
        }

    def _head(self, kind: str, operation: str, thread: int, correlation: int, start: int, end: int) -> str:
        number = self._kinds.index(kind)
        return (
            f'{{"size": 184, "kind": {number}, "operation": {_KINDS[kind].index(operation)}, "thread_id": {thread}, '
            f'"correlation_id": {{"internal": {correlation}, "external": 0}}, '
            f'"start_timestamp": {start}, "end_timestamp": {end}'
        )

    def _dispatch(self, row: Dispatch) -> str:
        head = self._head(
            "KERNEL_DISPATCH", "KERNEL_DISPATCH_COMPLETE", row.thread, row.correlation, row.start, row.end
        )
        stream = "" if self._old else f', "stream_id": {{"handle": {row.stream}}}'
        return f'{head}, "dispatch_info": {self._info(row)}{stream}}}'

    def _info(self, row: Dispatch) -> str:
        kernel = row.kernel
        (bx, by, bz), (gx, gy, gz) = kernel.workgroup, kernel.grid
        lds = f'"group_segment_size": {kernel.static_lds + kernel.dynamic_lds}, '
        return (
            f'{{"size": 72, "agent_id": {{"handle": {GPU_HANDLE + row.gpu}}}, "queue_id": {{"handle": {row.queue}}}, '
            f'"kernel_id": {kernel.number}, "dispatch_id": {row.dispatch}, "private_segment_size": {kernel.scratch}, '
            f"{lds}{lds if self._old else ''}"
            f'"workgroup_size": {{"x": {bx}, "y": {by}, "z": {bz}}}, "grid_size": {{"x": {gx}, "y": {gy}, "z": {gz}}}}}'
        )

    def _copy(self, row: Copy) -> str:
        head = self._head("MEMORY_COPY", f"MEMORY_COPY_{row.way}", row.thread, row.correlation, row.start, row.end)
        gpu = GPU_HANDLE + row.gpu
        source, destination = (CPU_HANDLE, gpu) if row.way == "HOST_TO_DEVICE" else (gpu, CPU_HANDLE)
        return (
            f'{head}, "dst_agent_id": {{"handle": {destination}}}, "src_agent_id": {{"handle": {source}}}, '
            f'"bytes": {row.bytes}}}'
        )

    def _call(self, call: Call, kind: str, operation: str | None = None) -> str:
        return self._head(kind, operation or call.name, call.thread, call.correlation, call.start, call.end) + "}"

    def _counts(self) -> Iterator[str]:
        for row in self._run.dispatches:
            counts = self._run.counts.get(row.dispatch, {})
            records = [
                f'{{"counter_id": {{"handle": {70 + i}}}, "value": {value}}}'
                for i, name in enumerate(COUNTERS)
                for value in counts.get(name, ())
            ]
            if records:
                yield (
                    f'{{"thread_id": {row.thread}, "dispatch_data": {{"size": 1, "correlation_id": {{"internal": '
                    f'{row.correlation}, "external": 0}}, "start_timestamp": {row.start}, "end_timestamp": {row.end}, '
                    f'"dispatch_info": {self._info(row)}}}, "records": [{", ".join(records)}]}}'
                )


def _symbol(kernel: Kernel) -> dict[str, Any]:
    return {
        "size": 88,
        "kernel_id": kernel.number,
        "code_object_id": 1,
        "kernel_name": f"{kernel.name}.kd",
        "group_segment_size": kernel.static_lds,
        "private_segment_size": kernel.scratch,
        "sgpr_count": kernel.sgpr,
        "arch_vgpr_count": kernel.vgpr,
        "accum_vgpr_count": kernel.agpr,
        "formatted_kernel_name": kernel.name,
        "demangled_kernel_name": f"{kernel.name} [clone .kd]",
        "truncated_kernel_name": kernel.name.split("(")[0],
    }
