"""Runs a program in NumPy, kernel by kernel: the reference that other executors are compared with, and needs no device.

Every kernel has a counterpart (`backends/wgsl/numpy_kernels`), which sees the same bindings. Its adapter claims every
feature, so that any kernel path can be checked with it. Times are those of NumPy on the host: they show how long the
reference takes, nothing about a device.
"""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from inferometer.backends.wgsl.numpy_kernels import NumpyKernel, find_reference
from inferometer.backends.wgsl.source import KernelBinding, read_kernel
from inferometer.engines.memory import require_memory
from inferometer.engines.webgpu.program import Dispatch, Pass, Program
from inferometer.engines.webgpu.run.executor import Adapter, Content, LoadPhase, OnText, Submission, Timing
from inferometer.engines.webgpu.run.limits import Sources, check_fit
from inferometer.errors import InferometerError

_DTYPES = {"f32": np.float32, "u32": np.uint32, "i32": np.int32, "f16": np.float16}
_SCALAR = re.compile(r"\b(f32|u32|i32|f16)\b")
_NO_LIMIT = 2**62

_Step = tuple[NumpyKernel, Mapping[str, Any], Mapping[str, float], Dispatch]


class NumpyExecutor:
    """An `Executor` in this process.

    Args:
        sources: Kernels by name.
        references: Their counterparts by the name in `reference` of the kernel's file.
    """

    def __init__(
        self, sources: Sources = read_kernel, references: Callable[[str], NumpyKernel] = find_reference
    ) -> None:
        self.adapter = Adapter(
            name=f"NumPy {np.__version__}",
            backend="NumPy",
            kind="CPU",
            features=frozenset({"shader-f16", "subgroups", "timestamp-query"}),
            most_binding_bytes=_NO_LIMIT,
            most_buffer_bytes=_NO_LIMIT,
            most_storage_buffers=_NO_LIMIT,
            most_workgroup_threads=_NO_LIMIT,
        )
        self._sources = sources
        self._references = references
        self._buffers: dict[str, Any] = {}
        self._phases: dict[str, list[_Step]] = {}

    def load(self, program: Program, contents: Mapping[str, Content], on_text: OnText) -> Sequence[LoadPhase]:
        """As `Executor.load`. A buffer that a program no longer needs is dropped."""
        check_fit(program, contents, self.adapter, self._sources)
        self.close()
        require_memory(program.name, sum(buffer.size_bytes for buffer in program.buffers), "cpu")
        self._buffers = {buffer.name: np.zeros(buffer.size_bytes, np.uint8) for buffer in program.buffers}
        phases = [self._read_part(part, contents) for part in dict.fromkeys(each.part for each in contents.values())]
        start_ns = time.perf_counter_ns()
        self._phases = {
            name: [self._prepare(program, dispatch) for dispatch in dispatches]
            for name, dispatches in program.phases.items()
        }
        return [*phases, LoadPhase("pipelines", start_ns, time.perf_counter_ns() - start_ns)]

    def _read_part(self, part: str, contents: Mapping[str, Content]) -> LoadPhase:
        start_ns = time.perf_counter_ns()
        moved = 0
        for name, content in contents.items():
            if content.part == part:
                moved += self._put(name, content.read(), 0)
        return LoadPhase(part, start_ns, time.perf_counter_ns() - start_ns, moved)

    def _prepare(self, program: Program, dispatch: Dispatch) -> _Step:
        pipeline = program.pipelines[dispatch.pipeline]
        source = self._sources(pipeline.kernel)
        arrays = {}
        for declared, binding in zip(source.bindings, dispatch.bindings, strict=True):
            part = self._buffers[binding.buffer][binding.offset : binding.offset + binding.size_bytes]
            arrays[declared.name] = part.view(_dtype(pipeline.kernel, declared))
            arrays[declared.name].flags.writeable = declared.access == "read_write"
        return self._references(source.reference), arrays, {**source.defaults, **pipeline.constants}, dispatch

    def write(self, buffer: str, data: Any, offset: int = 0) -> None:
        """As `Executor.write`."""
        self._put(buffer, data, offset)

    def _put(self, name: str, data: Any, offset: int) -> int:
        content = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
        place = self._buffer(name)[offset : offset + content.size]
        if place.size != content.size:
            raise InferometerError(f"{name}: {content.size} bytes at {offset}, found {self._buffer(name).size} in all")
        place[:] = content
        return int(content.size)

    def _buffer(self, name: str) -> Any:
        if name not in self._buffers:
            raise InferometerError(f"no buffer {name}: found {', '.join(sorted(self._buffers)) or 'none loaded'}")
        return self._buffers[name]

    def submit(self, passes: Sequence[Pass], timing: Timing) -> Submission:
        """As `Executor.submit`. With `timestamps`, begin and end are the host's, around each counterpart.

        `record_ns` is for working out what to run, `wait_ns` for running it; nothing is handed over.
        """
        start_ns = time.perf_counter_ns()
        steps = [
            (run, arrays, constants, dispatch.grid_at(each.tokens, each.position))
            for each in passes
            for phase in each.phases
            for run, arrays, constants, dispatch in self._phases[phase]
        ]
        recorded_ns = time.perf_counter_ns()
        begin_ns, end_ns = [], []
        for run, arrays, constants, grid in steps:
            begin_ns.append(time.perf_counter_ns())
            if all(grid):
                run(arrays, constants, grid)
            end_ns.append(time.perf_counter_ns())
        done_ns = time.perf_counter_ns()
        tokens = self._buffer("tokens").view(np.uint32)
        sampled = tuple(int(tokens[each.position + each.tokens]) for each in passes if "head" in each.phases)
        timed = timing == "timestamps"
        return Submission(
            passes=tuple(passes),
            timing=timing,
            start_ns=start_ns,
            record_ns=recorded_ns - start_ns,
            submit_ns=0,
            wait_ns=done_ns - recorded_ns,
            read_ns=time.perf_counter_ns() - done_ns,
            tokens=sampled,
            begin_ns=tuple(begin_ns) if timed else (),
            end_ns=tuple(end_ns) if timed else (),
            clock="shared" if timed else "none",
        )

    def read(self, buffer: str, offset: int = 0, size_bytes: int | None = None) -> Any:
        """As `Executor.read`: a copy."""
        whole = self._buffer(buffer)
        return whole[offset : whole.size if size_bytes is None else offset + size_bytes].copy()

    def close(self) -> None:
        """Forget the program and its buffers."""
        self._buffers = {}
        self._phases = {}


def _dtype(kernel: str, binding: KernelBinding) -> Any:
    found = _SCALAR.findall(binding.type)
    if len(found) != 1:
        raise InferometerError(
            f"{kernel}: {binding.name}: expected an array of numbers or vectors, found {binding.type}"
        )
    return _DTYPES[found[0]]
