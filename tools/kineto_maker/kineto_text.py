"""Timed steps as text in the layout of Kineto's own writer: two-space indentation, a fixed order of fields.

Kineto writes all ops, then all Python frames, then device work with the calls behind it and a flow event after
each, then metadata. Source: `output_json.cpp` of pytorch/kineto, and raw files that it wrote. Not written:
memory events, `cuda_sync`, counters. Times are microseconds with three decimals.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Final

from .hip import call_args, kernel_args
from .kernels import geometry
from .nodes import Launch, Mark, Op, Work
from .op_text import op_args
from .options import Options
from .runs import CallRun, DeviceMark, FrameRun, OpRun, StepRun, WorkRun

BASE_TIME_NS: Final = 1_767_225_600_000_000_000
SPAN_SLACK_NS: Final = 60_500  # the profiler records a little before the first frame and after the last
_FIRST_PID: Final = 25_286
_SIDE_TID: Final = 391  # added for the second thread
_GPU_SORT_INDEX: Final = 5_000_000
_SPANS_SORT_INDEX: Final = 536_870_912

_CBIDS: Final = {
    "cudaDeviceSynchronize": 165,
    "cudaEventRecord": 135,
    "cudaEventSynchronize": 137,
    "cudaFuncSetAttribute": 273,
    "cudaGraphLaunch": 311,
    "cudaLaunchKernel": 211,
    "cudaLaunchKernelExC": 430,
    "cudaMemcpyAsync": 41,
    "cudaMemsetAsync": 51,
    "cudaStreamIsCapturing": 317,
    "cudaStreamSynchronize": 131,
    "cudaStreamWaitEvent": 147,
    "cuLaunchKernel": 307,
    "cuLaunchKernelEx": 652,
}


class KinetoText:
    """Text of a trace's parts. Every event begins with a line break and has no comma at its end."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._pid = _FIRST_PID + options.rank
        self._device = options.rank
        self._hip = options.mode == "capture"
        self._static: dict[Op | Work, str] = {}

    def header(self) -> str:
        """Everything before the first event."""
        options = self._options
        devices = ",".join(_device(number) for number in range(options.world))
        group = {"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl", "pg_size": options.world}
        distributed = {
            "backend": "nccl",
            "rank": options.rank,
            "world_size": options.world,
            "pg_count": 1,
            "pg_config": [{**group, "ranks": list(range(options.world))}],
            "nccl_version": "2.27.3",
        }
        api, tracer = ("hip", '"roctracer_version": 4.1') if self._hip else ("cuda", '"cupti_version": 24')
        return (
            f'\n{{\n  "schemaVersion": 1,\n  "deviceProperties": [{devices}\n  ],\n  {tracer},\n'
            f'  "{api}_runtime_version": 12080,\n  "with_flops": 0,\n'
            f'  "distributedInfo": {json.dumps(distributed)},\n  "record_shapes": {int(options.shapes)},\n'
            f'  "{api}_driver_version": 12080,\n  "profile_memory": 0,\n  "with_stack": {int(options.stack)},\n'
            f'  "trace_id": "4B1D0E7A5C3F4C8E9A60{options.seed % 16**8:08X}{options.rank:04X}",\n'
            f'  "displayTimeUnit": "ms",\n  "baseTimeNanoseconds": {BASE_TIME_NS},\n  "traceEvents": ['
        )

    def footer(self) -> str:
        """Everything after the last event."""
        return f'\n  ],\n  "traceName": "{self._pid}.pt.trace.json"\n}}\n'

    def ops(self, step: StepRun) -> Iterator[str]:
        """The step's mark and ops."""
        return map(self._op, step.ops)

    def frames(self, runs: Iterable[FrameRun], op_count: int) -> Iterator[str]:
        """Python frames; their `Ev Idx` goes on after that of the trace's ops."""
        return (self._frame(run, op_count) for run in runs)

    def device(self, step: StepRun) -> Iterator[str]:
        """Calls and device work, each with its flow, and the step's mark as each stream saw it."""
        for run in step.device:
            yield self._call(run) if isinstance(run, CallRun) else self._work(run)
        for mark in step.device_marks():
            yield self._device_mark(mark)

    def metadata(self, streams: list[int], ns: int) -> list[str]:
        """Names and places of processes, streams and threads."""
        pid = self._pid
        events = self._process(pid, "CPU", pid, ns)
        for device in range(self._options.world):
            events += self._process(device, f"GPU {device}", _GPU_SORT_INDEX + device, ns)
        for stream in streams:
            events += self._thread(self._device, stream, f"stream {stream} ", ns)
        for thread in range(self._options.threads):
            tid = self._tid(thread)
            events += self._thread(pid, tid, f"thread {tid} (python3)", ns)
        return events

    def window(self, start_ns: int, end_ns: int) -> list[str]:
        """The profiler's own span, its place, and the two instants that bound the recording."""
        ts = _us(start_ns)
        return [
            (
                f'\n  {{\n    "ph": "X", "cat": "Trace", "ts": {ts}, "dur": {_us(end_ns - start_ns)},\n'
                f'    "pid": "Spans", "tid": "PyTorch Profiler",\n    "name": "PyTorch Profiler (0)",\n'
                f'    "args": {{\n      "Op count": 0\n    }}\n  }}'
            ),
            (
                f'\n  {{\n    "name": "process_sort_index", "ph": "M", "ts": {ts},\n    "pid": "Spans", "tid": 0,\n'
                f'    "args": {{\n      "sort_index": {_SPANS_SORT_INDEX}\n    }}\n  }}'
            ),
            (
                f'\n  {{\n    "name": "Iteration Start: PyTorch Profiler", "ph": "i", "s": "g",\n'
                f'    "pid": "Traces", "tid": "Trace PyTorch Profiler", "ts": {ts}\n  }}'
            ),
            (
                f'\n  {{\n    "name": "Record Window End", "ph": "i", "s": "g",\n'
                f'    "pid": "", "tid": "", "ts": {_us(end_ns)}\n  }}'
            ),
        ]

    def _tid(self, thread: int) -> int:
        return self._pid + _SIDE_TID * thread

    def _x(self, category: str, name: str, pid: int, tid: int, start_ns: int, dur_ns: int, args: str) -> str:
        return (
            f'\n  {{\n    "ph": "X", "cat": "{category}", "name": "{name}", "pid": {pid}, "tid": {tid},\n'
            f'    "ts": {_us(start_ns)}, "dur": {_us(dur_ns)},\n    "args": {{\n      {args}\n    }}\n  }}'
        )

    def _op(self, run: OpRun) -> str:
        node = run.node
        if isinstance(node, Mark):
            category, static = "user_annotation", '"Record function id": 0, '
        else:
            category, static = "cpu_op", self._static.get(node) or self._op_args(node)
        args = f'"External id": {run.external_id},{static}"Ev Idx": {run.number}'
        return self._x(category, node.name, self._pid, self._tid(run.thread), run.start_ns, run.dur_ns, args)

    def _op_args(self, op: Op) -> str:
        text = op_args(op, shapes=self._options.shapes)
        self._static[op] = text
        return text

    def _frame(self, run: FrameRun, op_count: int) -> str:
        parent = "null" if run.parent_id is None else run.parent_id
        args = f'"Python parent id": {parent}, "Python id": {run.python_id}, '
        if run.name.startswith("nn.Module: "):
            args += f'"Python module id": {run.name.rpartition("_")[2]}, '
        args += f'"Ev Idx": {op_count + run.python_id - 1}'
        tid = self._tid(run.thread)
        return self._x("python_function", run.name, self._pid, tid, run.start_ns, run.dur_ns, args)

    def _call(self, run: CallRun) -> str:
        external = "" if run.external_id is None else f'"External id": {run.external_id},'
        if self._hip:
            args = f"{external}      {call_args(run)}"
        else:
            args = f'{external}      "cbid": {_CBIDS[run.api]}, "correlation": {run.correlation}'
        tid = self._tid(run.thread)
        call = self._x(run.category, run.api, self._pid, tid, run.start_ns, run.dur_ns, args)
        return f"{call},{self._flow('s' if run.flows_out else 'f', self._pid, tid, run)}"

    def _work(self, run: WorkRun) -> str:
        node = run.node
        external = "" if run.external_id is None else f'"External id": {run.external_id},'
        place = f'"device": {self._device}, "context": 1,      "stream": {run.stream}, "correlation": {run.correlation}'
        if isinstance(node, Launch) and self._hip:
            args = f"{external}      {kernel_args(run, node, self._device)}"
        elif isinstance(node, Launch):
            args = f'{external}      "queued": 0, {place},      {self._static.get(node) or self._kernel_args(node)}'
            if run.graph is not None and self._options.graph_node_ids:
                args += f',      "graph id": {run.graph.graph_id}, "graph node id": {run.graph.number}'
        else:
            rate = node.bytes / run.dur_ns
            args = f'{external}      {place},      "bytes": {node.bytes}, "memory bandwidth (GB/s)": {rate}'
        work = self._x(run.category, run.name, self._device, run.stream, run.start_ns, run.dur_ns, args)
        return f"{work},{self._flow('f', self._device, run.stream, run)}"

    def _kernel_args(self, launch: Launch) -> str:
        averages = geometry(launch)
        text = (
            f'"registers per thread": {launch.registers},      "shared memory": {launch.shared_bytes},      '
            f'"blocks per SM": {averages.blocks_per_sm:.6f},      "warps per SM": {averages.warps_per_sm:.6f},      '
            f'"grid": {list(launch.grid)},      "block": {list(launch.block)},      '
            f'"est. achieved occupancy %": {averages.occupancy_percent}'
        )
        self._static[launch] = text
        return text

    def _flow(self, phase: str, pid: int, tid: int, run: CallRun | WorkRun) -> str:
        binding = ', "bp": "e"' if phase == "f" else ""
        return (
            f'\n  {{\n    "ph": "{phase}", "id": {run.correlation}, "pid": {pid}, "tid": {tid}, '
            f'"ts": {_us(run.start_ns)},\n    "cat": "ac2g", "name": "ac2g"{binding}\n  }}'
        )

    def _device_mark(self, mark: DeviceMark) -> str:
        args = f'"External id": {mark.external_id}'
        dur_ns = mark.end_ns - mark.start_ns
        return self._x("gpu_user_annotation", mark.name, self._device, mark.stream, mark.start_ns, dur_ns, args)

    def _process(self, pid: int, label: str, sort_index: int, ns: int) -> list[str]:
        return [
            _meta("process_name", ns, pid, 0, '"name": "python3"'),
            _meta("process_labels", ns, pid, 0, f'"labels": "{label}"'),
            _meta("process_sort_index", ns, pid, 0, f'"sort_index": {sort_index}'),
        ]

    def _thread(self, pid: int, tid: int, name: str, ns: int) -> list[str]:
        return [
            _meta("thread_name", ns, pid, tid, f'"name": "{name}"'),
            _meta("thread_sort_index", ns, pid, tid, f'"sort_index": {tid}'),
        ]


def _us(ns: int) -> str:
    """Exact below 2**51 ns: the division's error stays under half of the last decimal."""
    return f"{ns / 1000:.3f}"


def _meta(name: str, ns: int, pid: int, tid: int, args: str) -> str:
    return (
        f'\n  {{\n    "name": "{name}", "ph": "M", "ts": {_us(ns)}, "pid": {pid}, "tid": {tid},\n'
        f'    "args": {{\n      {args}\n    }}\n  }}'
    )


def _device(number: int) -> str:
    """An entry of `deviceProperties`; the line that starts with a comma is Kineto's."""
    return (
        f'\n    {{\n      "id": {number}, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85018279936,\n'
        '      "computeMajor": 9, "computeMinor": 0,\n'
        '      "maxThreadsPerBlock": 1024, "maxThreadsPerMultiprocessor": 2048,\n'
        '      "regsPerBlock": 65536, "warpSize": 32,\n'
        '      "sharedMemPerBlock": 49152, "numSms": 132\n'
        '    , "regsPerMultiprocessor": 65536, "sharedMemPerBlockOptin": 232448, "sharedMemPerMultiprocessor": 233472\n'
        "    }"
    )
