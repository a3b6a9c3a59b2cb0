"""`roofline`: how far each op is from what the hardware allows."""

from typing import Annotated

from inferometer.reports.schemas.fields import Document, Losses, Part, Remarks, Source, TotalNs, says
from inferometer.reports.schemas.joined_counters import JoinedCounters, Stall

Hardware = Annotated[str | None, says("The device that bounds are of; null where it isn't known: no bounds.")]


class ModelledOp(Part):
    """An op and its arguments; of launches without a known op, a kernel. What is modelled is null with a `reason`."""

    number: Annotated[int | None, says("Its number, as `replay --op` takes it.")]
    op: Annotated[str | None, says("The op; null where it isn't known.")]
    family: Annotated[str | None, says("The family of ops.")]
    kernel: Annotated[str | None, says("The kernel with the most time.")]
    input_dims: Annotated[str | None, says("Shapes, as recorded.")]
    input_dtypes: Annotated[str | None, says("Types, as recorded.")]
    input_strides: Annotated[str | None, says("Strides, as recorded.")]
    scalars: Annotated[str | None, says("Other arguments, as recorded.")]
    kernel_file: Annotated[str | None, says("Of a compiled kernel: the file of its source, as recorded.")]
    calls: Annotated[int | None, says("Whole calls of it; null of those that the selection cuts.")]
    cut_calls: Annotated[int | None, says("Calls of which only some launches are selected: their own row.")]
    launches: Annotated[int, says("Launches of all these calls.")]
    inferred_launches: Annotated[int, says("Of these, launches without an op in the file that are like ones with it.")]
    total_ns: TotalNs
    dtype: Annotated[str | None, says("The type whose peak bounds it.")]
    flops: Annotated[int | None, says("Modelled, of one call: of matrix products, or else of other arithmetic.")]
    vector_flops: Annotated[int | None, says("Modelled, of one call: arithmetic of vector units.")]
    special_ops: Annotated[int | None, says("Modelled, of one call: special functions.")]
    read_bytes: Annotated[int | None, says("Modelled, of one call: bytes read.")]
    write_bytes: Annotated[int | None, says("Modelled, of one call: bytes written.")]
    link_bytes: Annotated[int | None, says("Modelled, of one call: bytes over the link.")]
    bound_ns: Annotated[float | None, says("Least possible time of all calls, ns.")]
    warm_bound_ns: Annotated[float | None, says("The same where all that moves fits into L2, ns.")]
    binding: Annotated[
        str | None, says("Which bound that is: `memory`, `matrix`, `vector`, `special`, `link`, `pcie`.")
    ]
    fraction: Annotated[float | None, says("Bound over time; above 1, cost or peaks aren't as assumed.")]
    above_ns: Annotated[float | None, says("Time less the bound, ns; 0 where the bound is greater.")]
    flops_per_s: Annotated[float | None, says("Modelled FLOPs over the measured time.")]
    bytes_per_s: Annotated[float | None, says("Modelled bytes over the measured time.")]
    just_written_bytes: Annotated[
        float | None, says("With `--execution-trace`: of what one call reads, on the mean, what was just written.")
    ]
    just_written_bound_ns: Annotated[
        float | None, says("With `--execution-trace`: the bound with these bytes from L2, all calls, ns.")
    ]
    assumes: Annotated[list[str] | None, says("What the arguments don't say. Their words may change.")]
    operator: Annotated[str | None, says("The catalogue's operator that it is.")]
    operator_args: Annotated[str | None, says("Its arguments, as JSON.")]
    counted_launches: Annotated[int | None, says("With `--counters`: launches that counters are known of.")]
    launches_by_name: Annotated[
        int | None, says("With `--counters`: of these, launches that joined by name alone; their size may differ.")
    ]
    measured_dram_bytes: Annotated[float | None, says("With `--counters`: bytes to and from memory, of one call.")]
    dram_ratio: Annotated[float | None, says("With `--counters`: these over the modelled bytes.")]
    l2_hit_rate: Annotated[float | None, says("With `--counters`: 0 to 1.")]
    measured_occupancy: Annotated[float | None, says("With `--counters`: 0 to 1.")]
    measured_clock_hz: Annotated[float | None, says("With `--counters`: clock of the multiprocessors, Hz.")]
    clock_bound_ns: Annotated[float | None, says("With `--counters`: the bound at that clock, all calls, ns.")]
    measured_fp32_flops: Annotated[float | None, says("With `--counters`: of one call.")]
    measured_fp64_flops: Annotated[float | None, says("With `--counters`: of one call.")]
    measured_tensor_flops: Annotated[float | None, says("With `--counters`: of one call.")]
    reasons: Annotated[list[Stall] | None, says("With `--counters`: what warps spent cycles on, the largest first.")]
    sampled_clock_hz: Annotated[float | None, says("Of a recording: sampled clock of the multiprocessors, Hz.")]
    sampled_memory_clock_hz: Annotated[float | None, says("Of a recording: sampled clock of the memory, Hz.")]
    sampled_clock_bound_ns: Annotated[float | None, says("Of a recording: the bound at these clocks, all calls, ns.")]
    sizes_recorded: Annotated[bool | None, says("Whether the size of any tensor is; null where the op isn't known.")]
    reason: Annotated[str | None, says("Why it isn't modelled. Its words may change.")]


class Gap(Part):
    """Sums over all ops of one family, kernel, module or step."""

    key: Annotated[str | None, says("Which one; null where it isn't known.")]
    launches: Annotated[int, says("Launches.")]
    total_ns: TotalNs
    modelled_ns: Annotated[int, says("Of that time what is modelled, ns.")]
    bound_ns: Annotated[float | None, says("Sum of the bounds, ns.")]
    above_ns: Annotated[float | None, says("Sum of the time above them, ns.")]


class Gaps(Part):
    """The sums by what the op belongs to."""

    family: list[Gap]
    kernel: list[Gap]
    module: list[Gap]
    step: list[Gap]


class CollectiveBound(Part):
    """Collectives of one kind and size."""

    collective: Annotated[str | None, says("The collective.")]
    message_bytes: Annotated[int | None, says("Bytes of one; null where it isn't recorded.")]
    group_size: Annotated[int | None, says("Ranks that take part; null where it isn't recorded.")]
    calls: Annotated[int | None, says("Collectives.")]
    launches: Annotated[int, says("Launches of all ranks.")]
    inferred_launches: Annotated[int, says("Of these, launches without an op in the file that are like ones with it.")]
    devices: Annotated[int, says("Devices that have it.")]
    total_ns: TotalNs
    compared: Annotated[int, says("Collectives of which the waits of ranks are known.")]
    wait_ns: Annotated[int | None, says("Time in which ranks waited for others, ns.")]
    transfer_ns: Annotated[int | None, says("Time that is left, ns.")]
    is_exact: Annotated[bool, says("Whether all waits are known.")]
    algorithm_bytes_per_s: Annotated[float | None, says("Bytes over that time.")]
    bus_bytes_per_s: Annotated[float | None, says("The same as each link sees it.")]
    link_bytes_per_s: Annotated[float | None, says("What the device's link allows.")]
    fraction: Annotated[float | None, says("The one over the other.")]
    not_compared: Annotated[str | None, says("Why waits aren't known. Its words may change.")]
    reason: Annotated[str | None, says("Why there is no rate. Its words may change.")]


class Roofline(Document):
    """How far each op of a trace is from its bound."""

    source: Source
    hardware: Hardware
    total_ns: TotalNs
    op_known_ns: Annotated[int, says("Time of launches whose op the file or a capture says, ns.")]
    op_modelled_ns: Annotated[int, says("Of that, time of rows that are modelled, ns.")]
    sized_ns: Annotated[int, says("Of that, time of kernels, not copies, with `sizes_recorded`, ns.")]
    sized_modelled_ns: Annotated[int, says("Of that, time of rows that are modelled, ns.")]
    cut_ns: Annotated[int, says("Time of launches of calls that the selection cuts, ns.")]
    inferred_ns: Annotated[int, says("Time of launches whose op only launches that are alike have, ns.")]
    captured_ns: Annotated[int, says("Time of launches whose op a capture says, ns.")]
    modelled_ns: Annotated[int, says("Time of rows that are modelled, ns.")]
    bound_ns: Annotated[float | None, says("Sum of the bounds, ns.")]
    shortest_kernel_ns: Annotated[int | None, says("The shortest kernel of the trace, ns.")]
    small_ns: Annotated[int, says("Time of rows that are hardly longer than that and have a lower bound, ns.")]
    rows: Annotated[list[ModelledOp], says("The most time above the bound first, then those without a bound.")]
    by: Gaps
    collectives: list[CollectiveBound]
    counters: JoinedCounters | None
    remarks: Remarks
    losses: Losses


DOCUMENT = Roofline
