"""Runs a program on a GPU of this machine, through wgpu.

A submit is one command buffer: the dispatches, resolving their timestamps, and copies of the sampled tokens to a
buffer that the host maps. Waiting is done by polling in this thread, one switch of threads less than by wgpu's own
polling thread. Ctrl-C is held back meanwhile: the callback of a mapped buffer runs in this thread too, and one that
is interrupted would never tell that it was called.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from inferometer.backends.wgsl.source import read_kernel
from inferometer.engines.memory import require_memory
from inferometer.engines.webgpu.program import Dispatch, Pass, Phase, Program
from inferometer.engines.webgpu.run.adapters import describe, find_adapter, import_wgpu, open_device
from inferometer.engines.webgpu.run.device_errors import DeviceErrors
from inferometer.engines.webgpu.run.device_timestamps import DeviceTimes, device_times
from inferometer.engines.webgpu.run.executor import Adapter, Content, LoadPhase, OnText, Submission, Timing
from inferometer.engines.webgpu.run.interrupts import interrupts_held_back
from inferometer.engines.webgpu.run.limits import Sources, check_fit
from inferometer.engines.webgpu.run.native_calls import QUERIES, Launch, NativeCalls, has_tick_length
from inferometer.engines.webgpu.run.request_words import state_words
from inferometer.engines.webgpu.run.wgpu_pipelines import DevicePipelines, Step
from inferometer.errors import InferometerError
from inferometer.units import format_bytes

_PIECE_BYTES = 4 << 20
_STAGED_BYTES = 16 << 20
"""wgpu copies what is written and keeps it until a submit; so much at most, for memory's sake."""
_TOKEN_BYTES = 4
_TICK_BYTES = 8


def open_wgpu(name: str | None = None, *, sources: Sources = read_kernel) -> "WgpuExecutor":
    """An executor on the fastest kind of adapter, or on the one with `name` in its name.

    Raises:
        Unavailable: wgpu isn't installed, there is no such adapter, or it gives no device.
    """
    found = find_adapter(name)
    return WgpuExecutor(open_device(found), describe(found, ticks=has_tick_length()), sources)


class WgpuExecutor:
    """An `Executor` on a device of wgpu."""

    def __init__(self, device: Any, adapter: Adapter, sources: Sources = read_kernel) -> None:
        self.adapter = adapter
        self._device = device
        self._sources = sources
        self._wgpu = import_wgpu()
        self._native = NativeCalls(device)
        self._tick_ns = self._native.tick_ns() if "timestamp-query" in adapter.features else None
        self._buffers: dict[str, Any] = {}
        self._pipelines: DevicePipelines | None = None
        self._steps: dict[Phase, list[Step]] = {}
        self._prepared: dict[tuple[Phase, int], tuple[list[Launch], list[tuple[int, Any, Any, Dispatch]]]] = {}
        self._staging: Any = None
        self._resolved: Any = None
        self._errors = DeviceErrors(device)

    def load(self, program: Program, contents: Mapping[str, Content], on_text: OnText) -> Sequence[LoadPhase]:
        """As `Executor.load`. Phases: `buffers`, `pipelines`, each part of the contents, `warm-up`.

        In the warm-up each pipeline runs with one workgroup, which makes the driver compile it; then all that
        has no content is cleared, so that the first timed submit doesn't touch memory for the first time either.
        """
        check_fit(program, contents, self.adapter, self._sources)
        self._drop_program()
        if self.adapter.kind == "CPU":
            wanted = sum(buffer.size_bytes for buffer in program.buffers) + _STAGED_BYTES
            require_memory(f"{program.name} on {self.adapter.name}", wanted, "cpu")
        if self._tick_ns is None:
            on_text(f"{self.adapter.name}: no timestamps to be had: dispatches are not timed")
        phases: list[LoadPhase] = []
        with self._errors.raising(f"{program.name} on {self.adapter.name}"):
            with _phase("buffers", phases):
                self._make_buffers(program)
                self._write_first()
            on_text(f"{len(program.pipelines)} pipelines for {self.adapter.name}")
            with _phase("pipelines", phases):
                if self._pipelines is None:
                    self._pipelines = DevicePipelines(self._device, self.adapter.name, self._errors, self._sources)
                self._steps = self._pipelines.make(program, self._buffers)
            for part in dict.fromkeys(content.part for content in contents.values()):
                on_text(f"load {part}")
                start_ns = time.perf_counter_ns()
                moved = self._upload({name: each for name, each in contents.items() if each.part == part})
                phases.append(LoadPhase(part, start_ns, time.perf_counter_ns() - start_ns, moved))
            with _phase("warm-up", phases):
                self._warm_up(program, contents)
        return phases

    def _make_buffers(self, program: Program) -> None:
        usage = self._wgpu.BufferUsage.STORAGE | self._wgpu.BufferUsage.COPY_DST | self._wgpu.BufferUsage.COPY_SRC
        for buffer in program.buffers:
            with self._errors.raising(f"{program.name}: buffer {buffer.name} of {format_bytes(buffer.size_bytes)}"):
                self._buffers[buffer.name] = self._device.create_buffer(size=buffer.size_bytes, usage=usage)

    def _write_first(self) -> None:
        """A device's first write and submit take tens of milliseconds: they are no part of loading weights."""
        self._device.queue.write_buffer(self._buffers["state"], 0, state_words(0, 0))
        self._flush()

    def _upload(self, contents: Mapping[str, Content]) -> int:
        """Write these and wait until the device has them. Bytes."""
        moved = staged = 0
        for name, content in contents.items():
            whole = _bytes_of(content.read())
            self._check_room(name, 0, whole.size)
            for first in range(0, whole.size, _PIECE_BYTES):
                piece = whole[first : first + _PIECE_BYTES]
                self._device.queue.write_buffer(self._buffers[name], first, piece)
                staged += piece.size
                if staged >= _STAGED_BYTES:
                    self._flush()
                    staged = 0
            moved += whole.size
        self._flush()
        return moved

    def _flush(self) -> None:
        """Submit what was written, and wait. On a lost device it is `finish` that fails: a submit would abort."""
        self._device.queue.submit([self._device.create_command_encoder().finish()])
        self._native.poll()

    def _warm_up(self, program: Program, contents: Mapping[str, Content]) -> None:
        self._device.queue.write_buffer(self._buffers["state"], 0, state_words(0, 1))
        first: dict[int, Launch] = {}
        written = {"state"}
        for phase, dispatches in program.phases.items():
            for dispatch, (pipeline, group, _) in zip(dispatches, self._steps[phase], strict=True):
                if dispatch.pipeline in first:
                    continue
                first[dispatch.pipeline] = (pipeline, group, 1, 1, 1)
                declared = self._sources(program.pipelines[dispatch.pipeline].kernel).bindings
                written |= {
                    binding.buffer
                    for binding, each in zip(dispatch.bindings, declared, strict=True)
                    if each.access == "read_write"
                }
        launches = list(first.values())
        encoder = self._device.create_command_encoder()
        self._native.record_single(encoder, launches)
        if self._tick_ns is not None:
            self._make_reading(0, 2 * len(launches))
            self._native.record_each(encoder, launches, timed=True)
            self._record_reading(encoder, self._staging, [], 0, 2 * len(launches))
        for name, buffer in self._buffers.items():
            if name in written or name not in contents:
                encoder.clear_buffer(buffer)
        self._device.queue.submit([encoder.finish()])
        self._native.poll()
        if lost := {name: content for name, content in contents.items() if name in written}:
            self._upload(lost)

    def write(self, buffer: str, data: Any, offset: int = 0) -> None:
        """As `Executor.write`; offset and length are multiples of 4."""
        content = _bytes_of(data)
        self._check_room(buffer, offset, content.size)
        with self._errors.raising(f"write {buffer}"):
            self._device.queue.write_buffer(self._buffers[buffer], offset, content)

    def _check_room(self, name: str, offset: int, size: int) -> None:
        self._check_loaded(name)
        found = self._buffers[name].size
        if offset % 4 or size % 4 or offset + size > found:
            raise InferometerError(
                f"{name}: {size} bytes at {offset}: expected multiples of 4, found {found} bytes in all"
            )

    def _check_loaded(self, name: str) -> None:
        if self._device is None:
            raise InferometerError(f"{self.adapter.name}: the executor was closed")
        if name not in self._buffers:
            raise InferometerError(f"no buffer {name}: found {', '.join(sorted(self._buffers)) or 'none loaded'}")

    def submit(self, passes: Sequence[Pass], timing: Timing) -> Submission:
        """As `Executor.submit`. Tokens are copied after the last pass: passes at one position give the same one."""
        self._check_loaded("tokens")
        passes = tuple(passes)
        timed = timing == "timestamps" and self._tick_ns is not None
        heads = [each.position + each.tokens for each in passes if "head" in each.phases]
        with self._errors.raising(f"{len(passes)} passes on {self.adapter.name}"), interrupts_held_back():
            tick_count = 2 * sum(len(self._steps[phase]) for each in passes for phase in each.phases) if timed else 0
            tick_offset, size = self._make_reading(len(heads), tick_count)
            staging, self._staging = self._staging, None  # whatever goes wrong: it isn't used again while it is mapped
            start_ns = time.perf_counter_ns()
            encoder = self._device.create_command_encoder()
            launches = self._launches(passes)
            if timing == "single_pass":
                self._native.record_single(encoder, launches)
            else:
                self._native.record_each(encoder, launches, timed)
            self._record_reading(encoder, staging, heads, tick_offset, tick_count)
            commands = encoder.finish()
            recorded_ns = time.perf_counter_ns()
            self._device.queue.submit([commands])
            submitted_ns = time.perf_counter_ns()
            read = self._map(staging, size) if size else None
            self._native.poll()
            if read is not None:
                read.sync_wait()
            self._errors.check_there()
            waited_ns = time.perf_counter_ns()
            data = _take(staging, size) if size else np.empty(0, np.uint8)
            read_ns = time.perf_counter_ns()
            self._staging = staging
        tokens = data[: _TOKEN_BYTES * len(heads)].view(np.uint32)
        begin_ns, end_ns, untimed, clock = self._times(
            data[tick_offset : tick_offset + _TICK_BYTES * tick_count].view(np.uint64),
            len(launches) if timing == "timestamps" else 0,
            (start_ns, submitted_ns, waited_ns),
        )
        return Submission(
            passes=passes,
            timing=timing,
            start_ns=start_ns,
            record_ns=recorded_ns - start_ns,
            submit_ns=submitted_ns - recorded_ns,
            wait_ns=waited_ns - submitted_ns,
            read_ns=read_ns - waited_ns,
            tokens=tuple(int(token) for token in tokens),
            begin_ns=begin_ns,
            end_ns=end_ns,
            untimed=untimed,
            clock=clock,
        )

    def _launches(self, passes: Sequence[Pass]) -> list[Launch]:
        """Handles and grids, those that depend on the number of rows only from the last pass with as many."""
        launches: list[Launch] = []
        for each in passes:
            for phase in each.phases:
                key = (phase, each.tokens)
                if key not in self._prepared:
                    self._prepared[key] = self._prepare(phase, each.tokens)
                fixed, growing = self._prepared[key]
                first = len(launches)
                launches += fixed
                for index, pipeline, group, dispatch in growing:
                    x, y, z = dispatch.grid_at(each.tokens, each.position)
                    launches[first + index] = (pipeline, group, x, y, z)
        return launches

    def _prepare(self, phase: Phase, tokens: int) -> tuple[list[Launch], list[tuple[int, Any, Any, Dispatch]]]:
        fixed: list[Launch] = []
        growing = []
        for index, (pipeline, group, dispatch) in enumerate(self._steps[phase]):
            fixed.append((pipeline, group, *dispatch.grid_at(tokens, 0)))
            if any(not isinstance(dim, int) and dim.over == "kv" for dim in dispatch.grid):
                growing.append((index, pipeline, group, dispatch))
        return fixed, growing

    def _make_reading(self, tokens: int, tick_count: int) -> tuple[int, int]:
        """Make what a submit of this size is read back by; kept for the next ones.

        In the staging buffer, tokens come first: where timestamps begin, and the size of both.
        """
        tick_offset = -(-_TOKEN_BYTES * tokens // _TICK_BYTES) * _TICK_BYTES
        size = tick_offset + _TICK_BYTES * tick_count
        usage = self._wgpu.BufferUsage
        if size and (self._staging is None or self._staging.size < size):
            self._staging = self._device.create_buffer(size=size, usage=usage.COPY_DST | usage.MAP_READ)
        if tick_count:
            self._native.need_queries(tick_count)
            wanted = len(self._native.query_sets) * QUERIES * _TICK_BYTES
            if self._resolved is None or self._resolved.size < wanted:
                self._resolved = self._device.create_buffer(size=wanted, usage=usage.QUERY_RESOLVE | usage.COPY_SRC)
        return tick_offset, size

    def _record_reading(
        self, encoder: Any, staging: Any, heads: Sequence[int], tick_offset: int, tick_count: int
    ) -> None:
        """Resolve timestamps, and copy them and the tokens at `heads` to the staging buffer."""
        for number, first in enumerate(range(0, tick_count, QUERIES)):
            count = min(QUERIES, tick_count - first)
            encoder.resolve_query_set(self._native.query_sets[number], 0, count, self._resolved, first * _TICK_BYTES)
        if tick_count:
            encoder.copy_buffer_to_buffer(self._resolved, 0, staging, tick_offset, tick_count * _TICK_BYTES)
        tokens = self._buffers["tokens"]
        for index, first, count in _runs(heads):
            encoder.copy_buffer_to_buffer(
                tokens, first * _TOKEN_BYTES, staging, index * _TOKEN_BYTES, count * _TOKEN_BYTES
            )

    def _map(self, staging: Any, size: int) -> Any:
        return staging.map_async(self._wgpu.MapMode.READ, 0, size)

    def _times(self, ticks: Any, dispatches: int, at_ns: tuple[int, int, int]) -> DeviceTimes:
        """Begins, ends, how many are without, and whose clock. `at_ns`: start, submit returned, work was done."""
        if not dispatches or not ticks.size:
            return (None,) * dispatches, (None,) * dispatches, dispatches, "none"
        start_ns, submitted_ns, waited_ns = at_ns
        assert self._tick_ns is not None
        return device_times(ticks.reshape(-1, 2), self._tick_ns, start_ns, submitted_ns, waited_ns)

    def read(self, buffer: str, offset: int = 0, size_bytes: int | None = None) -> Any:
        """As `Executor.read`: a copy."""
        self._check_loaded(buffer)
        whole = self._buffers[buffer]
        end = whole.size if size_bytes is None else offset + size_bytes
        if not 0 <= offset <= end <= whole.size:
            raise InferometerError(f"{buffer}: bytes {offset} to {end}: found {whole.size} in all")
        if offset == end:
            return np.empty(0, np.uint8)
        first, last = offset // 4 * 4, -(-end // 4) * 4
        with self._errors.raising(f"read {buffer}"):
            data = self._device.queue.read_buffer(whole, first, last - first)
        return np.frombuffer(data, np.uint8)[offset - first : end - first]

    def close(self) -> None:
        """Free the buffers and let the device go; a second time does nothing."""
        if self._device is None:
            return
        self._drop_program()
        for buffer in (self._staging, self._resolved):
            if buffer is not None:
                buffer.destroy()
        self._staging = self._resolved = None
        del self._native
        self._pipelines = None
        self._device = None
        self._errors.close()

    def _drop_program(self) -> None:
        if self._device is None:
            raise InferometerError(f"{self.adapter.name}: the executor was closed")
        for buffer in self._buffers.values():
            buffer.destroy()
        self._buffers = {}
        self._steps, self._prepared = {}, {}


@contextmanager
def _phase(name: str, phases: list[LoadPhase]) -> Iterator[None]:
    start_ns = time.perf_counter_ns()
    yield
    phases.append(LoadPhase(name, start_ns, time.perf_counter_ns() - start_ns))


def _take(staging: Any, size: int) -> Any:
    data = np.frombuffer(staging.read_mapped(0, size), np.uint8)
    staging.unmap()
    return data


def _bytes_of(data: Any) -> Any:
    """uint8, filled up with zeros to a multiple of 4."""
    flat = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
    return flat if flat.size % 4 == 0 else np.pad(flat, (0, -flat.size % 4))


def _runs(places: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Runs of consecutive places: index of the first in `places`, the place, how many."""
    first = 0
    for index in range(1, len(places) + 1):
        if index == len(places) or places[index] != places[index - 1] + 1:
            yield first, places[first], index - first
            first = index
