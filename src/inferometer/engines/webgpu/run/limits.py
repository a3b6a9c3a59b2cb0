"""Whether a program fits an adapter and its kernels, asked before any memory is taken: every executor asks the same."""

from collections.abc import Callable, Mapping

from inferometer.backends.wgsl.source import KernelSource
from inferometer.engines.webgpu.program import Buffer, Dispatch, Program
from inferometer.engines.webgpu.run.executor import Adapter, Content
from inferometer.errors import InferometerError, Unavailable
from inferometer.units import format_bytes

Sources = Callable[[str], KernelSource]
"""The source of a kernel by its name: `read_kernel`, or a test's own."""

OFFSET_ALIGNMENT = 256
MOST_WORKGROUPS = 65_535
"""Along one axis of a grid: WebGPU's default for `maxComputeWorkgroupsPerDimension`, which all known adapters have."""


def check_fit(program: Program, contents: Mapping[str, Content], adapter: Adapter, sources: Sources) -> None:
    """Nothing where the program can be loaded.

    Raises:
        Unavailable: The adapter lacks a feature, or a limit of it is too low.
        InferometerError: The program contradicts itself or its kernels: a mistake of the planner.
    """
    needed = set(program.requires).union(*(sources(each.kernel).requires for each in program.pipelines))
    if missing := needed - adapter.features:
        raise Unavailable(
            f"{program.name} on {adapter.name}: expected {', '.join(sorted(missing))}, found "
            f"{', '.join(sorted(adapter.features)) or 'no features'}",
            hint="Take the portable kernel path, or another adapter.",
        )
    buffers = {buffer.name: buffer for buffer in program.buffers}
    for buffer in program.buffers:
        _check_buffer(program, buffer, adapter)
    if unknown := set(contents) - set(buffers):
        raise InferometerError(f"{program.name}: contents for {sorted(unknown)}, which are no buffers")
    for pipeline in program.pipelines:
        source = sources(pipeline.kernel)
        given = set(pipeline.constants)
        if given - set(source.constants) or set(source.required) - given:
            raise InferometerError(
                f"{pipeline.kernel}: constants: expected {sorted(source.required)} of {sorted(source.constants)}, "
                f"found {sorted(given)}"
            )
        if len(source.bindings) > adapter.most_storage_buffers:
            raise Unavailable(
                f"{pipeline.kernel} on {adapter.name}: expected {len(source.bindings)} storage buffers, found "
                f"{adapter.most_storage_buffers}"
            )
        threads = pipeline.constants.get("THREADS", source.defaults.get("THREADS", 1))
        if threads > adapter.most_workgroup_threads:
            raise Unavailable(
                f"{pipeline.kernel} on {adapter.name}: expected workgroups of {threads:.0f} threads, found "
                f"{adapter.most_workgroup_threads} at most"
            )
    for dispatches in program.phases.values():
        for dispatch in dispatches:
            _check_dispatch(program, dispatch, buffers, adapter, sources)


def _check_buffer(program: Program, buffer: Buffer, adapter: Adapter) -> None:
    if buffer.size_bytes <= 0 or buffer.size_bytes % 4:
        raise InferometerError(f"{buffer.name}: expected a size that is a multiple of 4, found {buffer.size_bytes}")
    if buffer.size_bytes > adapter.most_buffer_bytes:
        raise Unavailable(
            f"{program.name} on {adapter.name}: expected a buffer {buffer.name} of {format_bytes(buffer.size_bytes)}, "
            f"found {format_bytes(adapter.most_buffer_bytes)} at most",
            hint="Take a smaller model, or less context.",
        )


def _check_dispatch(
    program: Program, dispatch: Dispatch, buffers: Mapping[str, Buffer], adapter: Adapter, sources: Sources
) -> None:
    kernel = program.pipelines[dispatch.pipeline].kernel
    wanted = len(sources(kernel).bindings)
    if len(dispatch.bindings) != wanted:
        raise InferometerError(
            f"{dispatch.label}: {kernel}: expected {wanted} bindings, found {len(dispatch.bindings)}"
        )
    for binding in dispatch.bindings:
        buffer = buffers.get(binding.buffer)
        if buffer is None:
            raise InferometerError(f"{dispatch.label}: {kernel}: no buffer {binding.buffer}")
        end = binding.offset + binding.size_bytes
        aligned = binding.offset % OFFSET_ALIGNMENT == 0 and binding.size_bytes % 4 == 0
        if not aligned or binding.size_bytes <= 0 or end > buffer.size_bytes:
            raise InferometerError(
                f"{dispatch.label}: {kernel}: bytes {binding.offset} to {end} of {binding.buffer}, which has "
                f"{buffer.size_bytes}: expected an offset in steps of {OFFSET_ALIGNMENT}, a size in steps of 4"
            )
        if binding.size_bytes > adapter.most_binding_bytes:
            raise Unavailable(
                f"{dispatch.label} on {adapter.name}: expected {format_bytes(binding.size_bytes)} of {binding.buffer} "
                f"in one binding, found {format_bytes(adapter.most_binding_bytes)} at most"
            )
    if any(isinstance(dim, int) and dim > MOST_WORKGROUPS for dim in dispatch.grid):
        raise InferometerError(f"{dispatch.label}: {kernel}: grid {dispatch.grid}: expected {MOST_WORKGROUPS} at most")
