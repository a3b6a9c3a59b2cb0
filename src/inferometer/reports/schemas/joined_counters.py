"""What counters of a profiler joined of a trace, in the documents that have any."""

from typing import Annotated

from inferometer.reports.schemas.fields import Kernel, Part, Source, TotalNs, says


class Stall(Part):
    """What warps spent cycles on."""

    reason: Annotated[str, says("The reason, as the profiler's metric names it; `selected` is issuing.")]
    share: Annotated[float, says("Of all cycles of warps, 0 to 1.")]


class UnjoinedLaunches(Part):
    """Launches of the trace that no counters are known of."""

    kernel: Kernel
    reason: Annotated[str, says("Why. Its words may change.")]
    launches: Annotated[int, says("How many.")]
    total_ns: TotalNs


class UnusedCounters(Part):
    """Counted launches that the trace has none of."""

    kernel: Kernel
    reason: Annotated[str, says("Why. Its words may change.")]
    launches: Annotated[int, says("How many.")]


class JoinedCounters(Part):
    """What the counters joined."""

    source: Source
    counted: Annotated[int, says("Launches in the counters' file.")]
    used: Annotated[int, says("Of these, launches that joined.")]
    launches: Annotated[int, says("Launches of the trace.")]
    joined: Annotated[int, says("Of these, launches with counters.")]
    by_name: Annotated[int, says("Of these, joined by name alone.")]
    total_ns: TotalNs
    joined_ns: Annotated[int, says("Time of those with counters, ns.")]
    unjoined: list[UnjoinedLaunches]
    unused: list[UnusedCounters]


class CountedKernel(Part):
    """One kernel of the trace; what was counted is the mean of a launch, null where it wasn't."""

    kernel: Kernel
    total_ns: TotalNs
    launches: Annotated[int, says("Launches in the trace.")]
    counted_launches: Annotated[int, says("Of these, launches that counters are known of.")]
    launches_by_name: Annotated[
        int, says("Of these, launches that joined by name alone: what was counted may be of launches of another size.")
    ]
    measured_dram_bytes: Annotated[float | None, says("Bytes to and from memory.")]
    measured_fp32_flops: Annotated[float | None, says("Of vector units.")]
    measured_fp64_flops: Annotated[float | None, says("Of vector units.")]
    measured_tensor_flops: Annotated[float | None, says("Of matrix units, where they are counted as operations.")]
    l2_hit_rate: Annotated[float | None, says("0 to 1.")]
    measured_occupancy: Annotated[float | None, says("0 to 1.")]
    measured_clock_hz: Annotated[float | None, says("Clock of the multiprocessors, Hz.")]
    reasons: Annotated[list[Stall] | None, says("What warps spent cycles on, the largest first.")]


class CountedKernels(JoinedCounters):
    """What the counters joined, and a row per kernel that has any."""

    rows: list[CountedKernel]
