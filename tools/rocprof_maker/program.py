"""The program: kernels, copies, calls, ranges and counters of some processes, with times that are exactly known.

Nothing of it is measured. Grids don't always divide by their workgroup, several streams share a queue, one kernel has
no symbol, LDS has a dynamic part, and a counter has several instances.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Final

Triple = tuple[int, int, int]
COUNTERS: Final = ("SQ_WAVES", "GRBM_GUI_ACTIVE")
INSTANCES: Final = 4
NO_SYMBOL: Final = 99  # the id of a kernel whose symbol the file lacks
BASE_NS: Final = 63_870_000_000_000  # since the machine's boot
CPU_HANDLE, GPU_HANDLE = 37_944, 37_946
HOST: Final = "mi350-made"


@dataclass(frozen=True)
class Kernel:
    """A kernel: its name, code and sizes; `grid` counts work-items."""

    number: int
    name: str
    workgroup: Triple
    grid: Triple
    vgpr: int = 32
    agpr: int = 0
    sgpr: int = 48
    static_lds: int = 0
    dynamic_lds: int = 0
    scratch: int = 0

    @property
    def blocks(self) -> Triple:
        """Blocks along each axis."""
        x, y, z = (-(-work // size) for work, size in zip(self.grid, self.workgroup, strict=True))
        return x, y, z


KERNELS: Final = (
    Kernel(8, "__amd_rocclr_fillBufferAligned", (256, 1, 1), (1024, 1, 1), vgpr=8),
    Kernel(
        11,
        "Cijk_Ailk_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT64x32x256_MI16x16x1_SN_LDSB1_ISA950_WG16_16_1",
        (256, 1, 1),
        (26_624, 1, 1),
        vgpr=128,
        agpr=64,
        static_lds=20_480,
        dynamic_lds=17_184,
    ),
    Kernel(
        12,
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul> >"
        "(int, at::native::FillFunctor<float>, std::array<char*, 1ul>)",
        (512, 1, 1),
        (1_000, 3, 2),
        scratch=16,
    ),
    Kernel(
        13, "ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)", (512, 1, 1), (7_168, 1, 1), static_lds=37_664
    ),
    Kernel(14, "paged_attention_ll4mi_QKV_mfma16_kernel", (16, 16, 1), (100, 33, 1), vgpr=96, agpr=32),
    Kernel(NO_SYMBOL, f"[kernel {NO_SYMBOL}]", (64, 1, 1), (65, 1, 1)),
)


@dataclass(frozen=True)
class Dispatch:
    """One execution of a kernel."""

    kernel: Kernel
    gpu: int
    queue: int
    stream: int
    thread: int
    correlation: int
    dispatch: int
    start: int
    end: int


@dataclass(frozen=True)
class Copy:
    """A copy: `way` is `HOST_TO_DEVICE` or `DEVICE_TO_HOST`."""

    way: str
    gpu: int
    bytes: int
    stream: int
    thread: int
    correlation: int
    start: int
    end: int


@dataclass(frozen=True)
class Call:
    """A call of a library, or a ROCTx range with its text in `name`."""

    name: str
    thread: int
    correlation: int
    start: int
    end: int


@dataclass
class Run:
    """What one process did."""

    pid: int
    dispatches: list[Dispatch] = field(default_factory=list)
    copies: list[Copy] = field(default_factory=list)
    hip: list[Call] = field(default_factory=list)
    hsa: list[Call] = field(default_factory=list)
    ranges: list[Call] = field(default_factory=list)
    rccl: list[Call] = field(default_factory=list)
    counts: dict[int, dict[str, tuple[float, ...]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Options:
    """What to make. `token` stands in the command and the environment, which a reader must not keep."""

    dispatches: int = 60
    processes: int = 2
    gpus: int = 2
    counters: bool = True
    seed: int = 7
    token: str = "hf_" + "Qd7" * 11 + "x"


def run_program(options: Options) -> list[Run]:
    """The processes, one for each rank of the program; all use the same correlation ids."""
    return [_run(options, rank) for rank in range(options.processes)]


def _run(options: Options, rank: int) -> Run:
    random = Random(f"{options.seed} {rank}")
    run, now, correlation = Run(900 + rank), BASE_NS + 1_000 * rank, 1
    thread, gpu = run.pid + 1, rank % options.gpus
    share = options.dispatches // options.processes + (rank < options.dispatches % options.processes)
    device_free = now
    for i in range(share):
        if i % 12 == 0:
            start = now
            way = ("HOST_TO_DEVICE", "DEVICE_TO_HOST")[i // 12 % 2]
            run.copies.append(Copy(way, gpu, 4096 * (i + 1), 0, thread, correlation, now, now + 900))
            run.hip.append(Call("hipMemcpyAsync", thread, correlation, now - 700, now - 100))
            run.ranges.append(Call(f"step {i // 12}", thread, correlation + 1, start - 800, now + 40_000))
            correlation += 2
            now += 1_000
        kernel = KERNELS[random.randrange(len(KERNELS))]
        begin, duration = max(device_free, now + 1_500), random.randrange(800, 30_000)
        run.hip.append(Call("hipLaunchKernel", thread, correlation, now, now + random.randrange(400, 2_000)))
        run.hsa.append(Call("hsa_signal_store_screlease", thread, correlation + 2, now + 100, now + 200))
        if "nccl" in kernel.name:
            run.rccl.append(Call("ncclAllReduce", thread, correlation + 1, now - 50, now + 2_500))
        stream = 1 + random.randrange(3)
        run.dispatches.append(
            Dispatch(kernel, gpu, 16 + stream % 2, stream, thread, correlation, i + 1, begin, begin + duration)
        )
        if options.counters:
            run.counts[i + 1] = {
                name: tuple(float(random.randrange(1000)) for _ in range(INSTANCES)) for name in COUNTERS
            }
        device_free, now, correlation = begin + duration, now + random.randrange(2_000, 9_000), correlation + 3
    return run


def truth_of(runs: list[Run]) -> dict[str, object]:
    """Launches and summed ns by kernel and copy, sums of counters by kernel, and the number of calls and ranges."""
    work: dict[str, list[int]] = {}
    counters: Counter[tuple[str, str]] = Counter()
    for name, duration in _work(runs):
        times = work.setdefault(name, [0, 0])
        times[0] += 1
        times[1] += duration
    for run in runs:
        for each in run.dispatches:
            for metric, counts in run.counts.get(each.dispatch, {}).items():
                counters[each.kernel.name, metric] += int(sum(counts))
    return {
        "work": work,
        "counters": {f"{kernel}\n{metric}": n for (kernel, metric), n in counters.items()},
        "calls": sum(len(run.hip) + len(run.hsa) for run in runs),
        "spans": sum(len(run.ranges) + len(run.rccl) for run in runs),
    }


def _work(runs: list[Run]) -> Iterator[tuple[str, int]]:
    names = {"HOST_TO_DEVICE": "CopyHostToDevice", "DEVICE_TO_HOST": "CopyDeviceToHost"}
    for run in runs:
        yield from ((each.kernel.name, each.end - each.start) for each in run.dispatches)
        yield from ((names[each.way], each.end - each.start) for each in run.copies)
