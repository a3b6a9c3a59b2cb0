"""The few calls of the library below wgpu that its Python layer is too slow for, or doesn't have.

wgpu's own methods wrap each call in error capturing and make new C structs: 3.3 µs per dispatch on a two-core machine,
and 19 µs a timed pass. Here handles are taken once, descriptors of passes are made once, and one capture spans a
recording: 1.7 µs per dispatch and 4.1 µs a timed pass. Names of structs differ between releases; both are known.

A call on a lost device ends the process inside the library where it is a submit, so every recording is finished
first, which fails in a way that can be caught (`wgpu_executor`).
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from inferometer.engines.webgpu.run.adapters import import_wgpu

_TIMESTAMP_STRUCTS = ("WGPUPassTimestampWrites *", "WGPUComputePassTimestampWrites *")
QUERIES = 4096
"""Queries of one set: the most that WebGPU allows."""

Launch = tuple[Any, Any, int, int, int]
"""Handles of pipeline and bind group, then the grid."""


def has_tick_length() -> bool:
    """Whether this wgpu reports how long a tick of its timestamps is."""
    import_wgpu()
    from wgpu.backends.wgpu_native import lib

    return hasattr(lib, "wgpuQueueGetTimestampPeriod")


class NativeCalls:
    """Records passes of one device, and waits for it."""

    def __init__(self, device: Any) -> None:
        from wgpu.backends.wgpu_native import _api

        self._ffi, self._lib, self._errors = _api.ffi, _api.lib, _api.error_handler
        self._device = device
        self._keep: list[Any] = []
        self._plain = self._pass_descriptor(None)
        self._timed: list[Any] = []
        self.query_sets: list[Any] = []

    def tick_ns(self) -> float:
        """Nanoseconds of one tick of a timestamp."""
        return float(self._lib.wgpuQueueGetTimestampPeriod(self._device.queue._internal))

    def poll(self) -> None:
        """Wait until all that was submitted is done, in this thread; mapped buffers hear of it meanwhile."""
        self._lib.wgpuDevicePoll(self._device._internal, True, self._ffi.NULL)

    def record_single(self, encoder: Any, launches: Sequence[Launch]) -> None:
        """One pass for all."""
        ffi, lib = self._ffi, self._lib
        null = ffi.NULL
        set_pipeline, set_bind_group = lib.wgpuComputePassEncoderSetPipeline, lib.wgpuComputePassEncoderSetBindGroup
        dispatch = lib.wgpuComputePassEncoderDispatchWorkgroups
        with self._captured():
            each_pass = lib.wgpuCommandEncoderBeginComputePass(encoder._internal, self._plain)
            last = None
            for pipeline, bind_group, x, y, z in launches:
                if pipeline is not last:
                    set_pipeline(each_pass, pipeline)
                    last = pipeline
                set_bind_group(each_pass, 0, bind_group, 0, null)
                dispatch(each_pass, x, y, z)
            lib.wgpuComputePassEncoderEnd(each_pass)
            lib.wgpuComputePassEncoderRelease(each_pass)

    def record_each(self, encoder: Any, launches: Sequence[Launch], timed: bool) -> None:
        """A pass each; `timed`: number n writes its begin and end to queries 2n and 2n + 1, of `need_queries`."""
        descriptors = self._timed if timed else [self._plain] * len(launches)
        ffi, lib = self._ffi, self._lib
        null, internal = ffi.NULL, encoder._internal
        with self._captured():
            for (pipeline, bind_group, x, y, z), descriptor in zip(launches, descriptors, strict=False):
                each_pass = lib.wgpuCommandEncoderBeginComputePass(internal, descriptor)
                lib.wgpuComputePassEncoderSetPipeline(each_pass, pipeline)
                lib.wgpuComputePassEncoderSetBindGroup(each_pass, 0, bind_group, 0, null)
                lib.wgpuComputePassEncoderDispatchWorkgroups(each_pass, x, y, z)
                lib.wgpuComputePassEncoderEnd(each_pass)
                lib.wgpuComputePassEncoderRelease(each_pass)

    def need_queries(self, count: int) -> None:
        """Make `query_sets` for so many, once: every submit after uses the same."""
        while len(self.query_sets) * QUERIES < count:
            query_set = self._device.create_query_set(type="timestamp", count=QUERIES)
            self.query_sets.append(query_set)
            self._timed += [self._pass_descriptor((query_set, first)) for first in range(0, QUERIES, 2)]

    def _pass_descriptor(self, queries: tuple[Any, int] | None) -> Any:
        descriptor = self._ffi.new("WGPUComputePassDescriptor *")
        self._keep.append(descriptor)
        if queries is not None:
            query_set, first = queries
            writes = self._ffi.new(self._timestamp_struct())
            writes.querySet = query_set._internal
            writes.beginningOfPassWriteIndex = first
            writes.endOfPassWriteIndex = first + 1
            descriptor.timestampWrites = writes
            self._keep.append(writes)
        return descriptor

    def _timestamp_struct(self) -> str:
        for name in _TIMESTAMP_STRUCTS:
            try:
                self._ffi.typeof(name)
            except self._ffi.error:
                continue
            return name
        raise NotImplementedError(f"this wgpu has none of {', '.join(_TIMESTAMP_STRUCTS)}")

    @contextmanager
    def _captured(self) -> Iterator[None]:
        """What the library complains of meanwhile is raised: otherwise it would only be logged."""
        self._errors.capture("inferometer")
        found = None
        try:
            yield
        finally:
            found = self._errors.release("inferometer")
        if found is not None:
            from wgpu import GPUValidationError

            raise GPUValidationError(found[1])
