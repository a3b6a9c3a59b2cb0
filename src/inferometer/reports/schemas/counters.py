"""`counters`: what a profiler counted of each launch."""

from typing import Annotated

from inferometer.reports.schemas.fields import (
    DeviceName,
    Document,
    Kernel,
    Losses,
    Match,
    Part,
    Rank,
    Remarks,
    Source,
    says,
)
from inferometer.reports.schemas.joined_counters import Stall

Size = Annotated[list[int] | None, says("Along x, y, z.")]
Portion = Annotated[float, says("0 to 1.")]


class Pipe(Part):
    """How busy a pipe was while multiprocessors were active."""

    pipe: Annotated[str, says("The pipe, as the profiler's metric names it.")]
    share: Portion


class CountedLaunch(Part):
    """One launch that ran alone; null is what wasn't counted."""

    rank: Rank
    launch: Annotated[int, says("Its position in the file, from 0.")]
    kernel: Kernel
    short: Annotated[str | None, says("The short name.")]
    device: DeviceName
    process: Annotated[int | None, says("Process that queued it.")]
    stream: Annotated[int | None, says("The stream.")]
    grid: Size
    block: Size
    alone_ns: Annotated[float | None, says("How long it took by itself, ns; never compare it with a run's times.")]
    compute_share: Annotated[float | None, says("Of the most that multiprocessors can sustain, 0 to 1.")]
    memory_share: Annotated[float | None, says("Of the most that memory, caches and links can sustain, 0 to 1.")]
    dram_share: Annotated[float | None, says("Of the most that DRAM can sustain, 0 to 1.")]
    dram_bytes: Annotated[float | None, says("Read and written.")]
    fp32_flops: Annotated[float | None, says("Of vector units.")]
    fp64_flops: Annotated[float | None, says("Of vector units.")]
    tensor_flops: Annotated[float | None, says("Of matrix units, where they are counted as operations.")]
    l1_hit_rate: Annotated[float | None, says("0 to 1.")]
    l2_hit_rate: Annotated[float | None, says("0 to 1.")]
    occupancy: Annotated[float | None, says("Achieved, 0 to 1.")]
    clock_hz: Annotated[float | None, says("Clock of the multiprocessors, Hz.")]
    theoretical_occupancy: Annotated[float | None, says("What registers, shared memory and block size allow, 0 to 1.")]
    registers: Annotated[int | None, says("Registers of a thread.")]
    shared_bytes: Annotated[int | None, says("Static and dynamic shared memory of a block.")]
    pipes: Annotated[list[Pipe] | None, says("The busiest first; idle ones aren't there.")]
    reasons: Annotated[list[Stall] | None, says("The largest first; all of them make 1.")]


class KernelMetric(Part):
    """A metric of a kernel's launches, of a file whose metrics have no field of their own in the rows."""

    kernel: Kernel
    metric: Annotated[str, says("As the profiler names it (`SQ_WAVES`).")]
    launches: Annotated[int, says("Launches that it was counted of.")]
    total: Annotated[float, says("Over these.")]
    mean: Annotated[float, says("Of a launch.")]
    least: Annotated[float, says("Of a launch.")]
    most: Annotated[float, says("Of a launch.")]
    unit: Annotated[str | None, says("Null for a count.")]


class Counters(Document):
    """What was counted, in the order of the file."""

    source: Source
    launches: Annotated[int, says("Launches in the file, before `--top` and `--match`.")]
    match: Match
    rows: list[CountedLaunch]
    metrics: Annotated[list[KernelMetric], says("Empty where rows have fields for what was counted.")]
    remarks: Remarks
    losses: Losses


DOCUMENT = Counters
