"""`inferometer.json_of` of a profile of our WebGPU engine: part of `webgpu_chat` with `--profile`."""

from typing import Annotated

from inferometer.reports.schemas.fields import Losses, Part, Remarks, SchemaMark, says

Phase = Annotated[str, says("`prefill`, `decode` and the like.")]
DeviceNs = Annotated[int | None, says("On the device, ns; null where nothing was timed.")]
Shape3 = Annotated[str | None, says("Sizes such as `64x1x1`; of several the smallest and the largest.")]


class KernelTimes(Part):
    """A phase and label; times are of calls that were timed, null where none was."""

    phase: Phase
    label: Annotated[str, says("The label; of `rows` without its layer.")]
    op: Annotated[str | None, says("The operator.")]
    role: Annotated[str | None, says("Its part in the model.")]
    layers: Annotated[int, says("Layers that it is in.")]
    kernel: Annotated[str | None, says("The kernels that ran it.")]
    calls: Annotated[int, says("Calls that were timed.")]
    untimed: Annotated[int, says("Calls that were not.")]
    total_ns: Annotated[int, says("Sum, ns.")]
    min_ns: Annotated[int | None, says("Shortest, ns.")]
    median_ns: Annotated[float | None, says("Median, ns.")]
    max_ns: Annotated[int | None, says("Longest, ns.")]
    share: Annotated[float | None, says("Of all kernels' time, 0 to 1.")]
    modelled_bytes: Annotated[int | None, says("Modelled: bytes that these calls move.")]
    modelled_flops: Annotated[int | None, says("Modelled: FLOPs of these calls.")]
    gb_per_s: Annotated[float | None, says("Modelled bytes over measured time, GB/s.")]
    gflop_per_s: Annotated[float | None, says("Modelled FLOPs over measured time, GFLOP/s.")]
    bound_ns: Annotated[float | None, says("Bytes over the bandwidth, ns; null where none is known.")]
    sol_fraction: Annotated[float | None, says("Bound over measured.")]
    best_fraction: Annotated[float | None, says("Its bytes per second over those of the best kernel.")]
    is_launch_bound: Annotated[bool | None, says("Whether a launch is most of it; null where that wasn't measured.")]
    grid: Shape3
    workgroup: Shape3


class HostParts(Part):
    """Wall time in parts."""

    wall_ns: Annotated[int, says("Wall time, ns.")]
    record_ns: Annotated[int, says("Recording commands, ns.")]
    submit_ns: Annotated[int, says("Handing them over, ns.")]
    wait_ns: Annotated[int, says("Waiting for the device, ns.")]
    read_ns: Annotated[int, says("Copying tokens to the host, ns.")]


class PhaseTimes(HostParts):
    """A phase: its submits together."""

    phase: Phase
    steps: Annotated[int, says("Submits.")]
    tokens: Annotated[int, says("Tokens.")]
    dispatches: Annotated[int | None, says("Dispatches.")]
    untimed: Annotated[int | None, says("Of these, dispatches that were not timed.")]
    busy_ns: DeviceNs
    summed_ns: DeviceNs
    span_ns: DeviceNs
    token_p50_ns: Annotated[float | None, says("Median of a token's wall time, ns.")]
    token_p95_ns: Annotated[float | None, says("95th percentile of it, ns.")]
    busy_share: Annotated[float | None, says("Busy time of the device of the wall time, 0 to 1.")]
    record_per_dispatch_ns: Annotated[float | None, says("Recording time of a dispatch, ns.")]


class StepTimes(HostParts):
    """One submit."""

    step: Annotated[int, says("Its number.")]
    phase: Phase
    tokens: Annotated[int, says("Tokens of the prompt that it read, and decode steps that it ran.")]
    read_tokens: Annotated[int, says("Those of the prompt.")]
    decode_tokens: Annotated[int, says("Decode steps.")]
    context: Annotated[int | None, says("Positions in the KV cache before.")]
    start_ns: Annotated[int, says("Its beginning on the host's clock, ns.")]
    busy_ns: DeviceNs
    dispatches: Annotated[int | None, says("Dispatches.")]
    summed_ns: DeviceNs
    span_ns: DeviceNs
    untimed: Annotated[int | None, says("Of these, dispatches that were not timed.")]
    token_ns: Annotated[float | None, says("Wall time over its tokens, ns.")]


class PurposeMemory(Part):
    """Buffers of one purpose."""

    purpose: Annotated[str, says("What they are for.")]
    buffers: Annotated[int, says("How many.")]
    size_bytes: Annotated[int, says("What they take.")]
    needed_bytes: Annotated[int, says("What is needed.")]
    overhead_bytes: Annotated[int, says("What rounding adds.")]


class LoadPart(Part):
    """A part of getting ready."""

    name: Annotated[str, says("Which.")]
    dur_ns: Annotated[int, says("How long, ns.")]
    bytes: Annotated[int, says("Bytes that it moves; 0: none.")]
    gb_per_s: Annotated[float | None, says("The one over the other; null where nothing moves.")]


class ProfileParts(Part):
    """The profile of one run."""

    name: Annotated[str, says("The model.")]
    adapter: Annotated[str | None, says("What ran it.")]
    backend: Annotated[str | None, says("`Vulkan`, `Metal`, `D3D12`, `NumPy` or `browser`.")]
    dispatches: Annotated[int, says("Dispatches.")]
    untimed: Annotated[int, says("Of these, dispatches that were not timed.")]
    summed_ns: Annotated[int, says("Sum of all kernels, ns.")]
    busy_ns: Annotated[int, says("Time in which the device ran one, ns.")]
    span_ns: Annotated[int, says("From the first to the last of each submit, summed, ns.")]
    wall_ns: Annotated[int, says("Wall time of the submits, ns.")]
    bandwidth_bytes_per_s: Annotated[float | None, says("Bandwidth that bounds are made with.")]
    bandwidth_source: Annotated[str | None, says("Who says so.")]
    measured_bytes_per_s: Annotated[float | None, says("Bandwidth that was measured here.")]
    measured_source: Annotated[str | None, says("How.")]
    launch_floor_ns: Annotated[float | None, says("Median of the shortest kernel, ns.")]
    empty_pass_ns: Annotated[float | None, says("A pass that does nothing, ns; null where that wasn't measured.")]
    rows: list[KernelTimes]
    layer_rows: Annotated[list[KernelTimes], says("The same for each label with its layer.")]
    phases: list[PhaseTimes]
    steps: list[StepTimes]
    memory: list[PurposeMemory]
    load: list[LoadPart]
    remarks: Remarks
    losses: Losses


class WebGpuProfile(ProfileParts):
    """The profile of one run of our WebGPU engine."""

    schema: SchemaMark


DOCUMENT = WebGpuProfile
