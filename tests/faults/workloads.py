"""Functions of a decode step, and how long they take under an effect.

Names, calls and times of `launch_bound` follow the published SGLang run (a traced step of 630 ms, of which the GPU
works 25 ms): the host is the longer side, as wherever a tracer or Python is slow. `gpu_bound` has ten times the GPU
work and less of the host; `offload` streams weights through PCIe. A step takes the longer of host and GPU, 5 % of the
shorter, and what it waits (`stall`). With two ranks both take as long as the slower one; the other rank waits inside
its collective and its time shows there (spin-wait), and which one waits differs between runs and within one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from tests.faults import noise
from tests.faults.effects import Effect
from tests.faults.noise import Floats

LAYERS = 64


@dataclass(frozen=True)
class Function:
    """One function: `calls` a step of `call_ns` each.

    `memory`: share of a kernel's time that doesn't follow the GPU clock. `slows`: the field of `Effect` for host calls.
    """

    name: str
    cls: str
    calls: int
    call_ns: float
    memory: float = 0.5
    slows: str = ""
    spread: float | None = None

    @property
    def on_gpu(self) -> bool:
        return self.cls.startswith("gpu_")


GEMM = "ampere_bf16_s16816gemm_bf16_64x64_sliced1x2_ldg8_f2f_stages_64x5_tn"
NORM = "void flashinfer::norm::FusedAddRMSNormKernel<8u, __nv_bfloat16>(__nv_bfloat16*, unsigned int, float)"
ACTIVATION = (
    "void flashinfer::activation::act_and_mul_kernel<__nv_bfloat16, &(silu(float const&))>(__nv_bfloat16*, int)"
)
NEW_GEMM = "sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x64x64_stage3_warpsize2x2x1_tensor16x8x16_kernel"
FUSED = "triton_fused_add_norm_act_and_mul_kernel"
COLLECTIVE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevComm*, unsigned long, ncclWork*)"

_COMPUTE = (
    Function(GEMM, "gpu_compute", 65, 215_000, 0.55),
    Function("ampere_bf16_s16816gemm_bf16_64x64_ldg8_f2f_stages_64x5_tn", "gpu_compute", 64, 67_000, 0.5),
    Function(
        "void flashinfer::BatchPrefillWithPagedKVCacheKernel<flashinfer::Params>(Params)",
        "gpu_compute",
        64,
        21_300,
        0.6,
    ),
    Function(NORM, "gpu_compute", 128, 7_200, 0.6),
    Function(ACTIVATION, "gpu_compute", 64, 13_600, 0.57),
    Function("void flashinfer::norm::RMSNormKernel<8u, __nv_bfloat16>(float)", "gpu_compute", 129, 5_900, 0.62),
    Function("void flashinfer::BatchQKApplyRotaryPosIdsKernel<128u>(int*)", "gpu_compute", 64, 5_300, 0.58),
    Function("void at::native::(anonymous namespace)::cunn_SoftMaxForward<8>(float*)", "gpu_compute", 1, 114_000, 0.3),
    Function("void flashinfer::sampling::TopKTopPSamplingFromProbKernel<1024u>(float*)", "gpu_compute", 1, 94_500, 0.4),
    Function("void at::native::index_elementwise_kernel<128, 4>(int)", "gpu_compute", 10, 7_200, 0.5, spread=0.8),
    Function("create_flashinfer_kv_indices_triton", "gpu_compute", 1, 8_700, 0.6),
)
_COPIES = (
    Function("Memset (Device)", "gpu_memcpy_h2d", 64, 2_450, 0.92),
    Function("Memcpy HtoD (Pinned -> Device)", "gpu_memcpy_h2d", 6, 2_300, 0.92),
    Function("Memcpy DtoH (Device -> Pinned)", "gpu_memcpy_d2h", 1, 3_400, 0.92),
    Function("Memcpy DtoD (Device -> Device)", "gpu_memcpy_d2d", 2, 5_100, 0.72),
)
_HOST = (
    Function("oncpu", "oncpu", 108_600, 9_450, slows="oncpu"),
    Function("runq", "runq", 108_600, 425, slows="runq"),
    Function("write", "disk_read_and_write", 141_000, 1_200, slows="write"),
    Function("read", "disk_read_and_write", 12, 3_300, slows="read"),
    Function("cudaStreamSynchronize", "cpu_sync", 2, 8_200, slows="sync"),
    Function("cudaMallocAsync", "cpu_sync", 8, 5_200, slows="sync"),
    Function("mmap", "cpu_os_syscall_mem", 6, 14_000, slows="mapping"),
    Function("munmap", "cpu_os_syscall_mem", 5, 11_000, slows="mapping"),
)
_COMM = (Function(COLLECTIVE, "gpu_comm", 128, 18_000, 0.85),)


@dataclass(frozen=True)
class Workload:
    """Functions of one rank's step, and the host's own path through it, in ns."""

    functions: tuple[Function, ...]
    host_ns: float

    def replaced(self, fault: str, severity: str) -> "Workload":
        """The same with the kernels of a software fault; others change nothing."""
        level = ("low", "medium", "high").index(severity)
        changed = {
            "slower_kernel": lambda: _slower(self.functions, (1.3, 1.8, 3.0)[level]),
            "replaced_kernel": lambda: _replaced(self.functions, (0.7, 1.4, 2.2)[level]),
            "fused_kernel": lambda: _fused(self.functions, (0.8, 1.4, 2.2)[level]),
        }
        return replace(self, functions=changed[fault]()) if fault in changed else self


def workload(name: str, processes: int) -> Workload:
    """`launch_bound`, `gpu_bound` or `offload`; with two processes each layer reduces twice."""
    gpu, host, host_ns = {"launch_bound": (1, 1, 600e6), "gpu_bound": (10, 4, 150e6), "offload": (4, 5, 110e6)}[name]
    functions = [
        replace(f, call_ns=f.call_ns * gpu) for f in _COMPUTE + (_COMM if processes > 1 else ()) + _COPIES[-1:]
    ]
    functions += [replace(f, calls=max(1, f.calls // host)) for f in _HOST]
    if name == "offload":
        functions.append(Function("Memcpy HtoD (Pinned -> Device)", "gpu_memcpy_h2d", 64, 1_600_000, 0.92))
    functions += [f for f in _COPIES[:-1] if f.name not in {g.name for g in functions}]
    return Workload(tuple(functions), host_ns)


def _slower(functions: Sequence[Function], factor: float) -> tuple[Function, ...]:
    return tuple(replace(f, call_ns=f.call_ns * factor) if f.name == ACTIVATION else f for f in functions)


def _replaced(functions: Sequence[Function], factor: float) -> tuple[Function, ...]:
    return tuple(replace(f, name=NEW_GEMM, call_ns=f.call_ns * factor) if f.name == GEMM else f for f in functions)


def _fused(functions: Sequence[Function], factor: float) -> tuple[Function, ...]:
    parts = {f.name: f for f in functions if f.name in {NORM, ACTIVATION}}
    total_ns = sum(f.calls * f.call_ns for f in parts.values())
    fused = replace(parts[ACTIVATION], name=FUSED, call_ns=factor * total_ns / LAYERS)
    return tuple(fused if f.name == ACTIVATION else f for f in functions if f.name != NORM)


@dataclass(frozen=True)
class Steps:
    """Whole steps of a run: per rank and function the time of all calls in each step, in ns.

    `step_ns` has shape (steps,); `time_ns[rank][function]` too. `busy` is each rank's GPU time over the step,
    `spinning` adds the waiting inside collectives.
    """

    functions: tuple[Function, ...]
    step_ns: Floats
    time_ns: tuple[tuple[Floats, ...], ...]
    busy: tuple[float, ...]
    spinning: tuple[float, ...]


def run_steps(work: Workload, effects: Sequence[Effect], steps: int, rng: np.random.Generator) -> Steps:
    """Simulate `steps` steps of as many ranks as there are effects."""
    host_drift = noise.drift(rng, noise.DRIFT_HOST)
    common = noise.step_noise(rng, steps)
    gpu_drifts = [noise.drift(rng, noise.DRIFT_GPU) for _ in work.functions]
    times: list[list[Floats]] = []
    for effect in effects:
        rank = [
            _times(function, effect, gpu_drift if function.on_gpu else host_drift, common, rng)
            for function, gpu_drift in zip(work.functions, gpu_drifts, strict=True)
        ]
        times.append(rank)
    gpu = [_summed(work.functions, rank) for rank in times]
    host = [work.host_ns * host_drift * effect.host * common + _extra_runq(work, rank, effect)
            for rank, effect in zip(times, effects, strict=True)]  # fmt: skip
    alone = [np.maximum(g, h) + 0.05 * np.minimum(g, h) for g, h in zip(gpu, host, strict=True)]
    step_ns = np.max(alone, axis=0) * (1 + max(effect.stall for effect in effects))
    waits = _waits(step_ns, gpu, rng) if len(effects) > 1 else [np.zeros(steps)]
    for rank, h, g, wait in zip(times, host, gpu, waits, strict=True):
        _wait_in(work.functions, rank, wait, np.maximum(0.0, g - h))
    busy = [float(np.mean(g / step_ns)) for g in gpu]
    spinning = [float(np.mean((g + wait) / step_ns)) for g, wait in zip(gpu, waits, strict=True)]
    return Steps(work.functions, step_ns, tuple(map(tuple, times)), tuple(busy), tuple(spinning))


def _times(f: Function, effect: Effect, drift: float, common: Floats, rng: np.random.Generator) -> Floats:
    """Time of all calls of one function in each step."""
    factors = noise.call_noise(rng, len(common), noise.SPREAD[f.cls] if f.spread is None else f.spread)
    if not f.on_gpu:
        factors = factors * (getattr(effect, f.slows) if f.slows else 1.0) * common
    else:
        factors = factors * _gpu_factor(f, effect)
    return f.calls * f.call_ns * drift * factors


def _gpu_factor(f: Function, effect: Effect) -> float:
    clocked = f.memory + (1 - f.memory) * effect.clock
    if f.cls == "gpu_comm":
        return clocked * effect.slices * effect.comm
    if f.cls == "gpu_compute":
        return clocked * effect.slices
    crosses_pcie = f.cls != "gpu_memcpy_d2d" and f.name.startswith("Memcpy")
    return clocked * effect.slices**0.5 * (effect.copies if crosses_pcie else 1.0)


def _summed(functions: Sequence[Function], rank: Sequence[Floats]) -> Floats:
    parts = [time for function, time in zip(functions, rank, strict=True) if function.on_gpu]
    return np.sum(parts, axis=0)


def _extra_runq(work: Workload, rank: Sequence[Floats], effect: Effect) -> Floats:
    """What the run queue adds to the host's path: its own growth, of which half lies on the path."""
    runq = next(time for f, time in zip(work.functions, rank, strict=True) if f.name == "runq")
    return 0.5 * runq * (1 - 1 / effect.runq)


def _waits(step_ns: Floats, gpu: Sequence[Floats], rng: np.random.Generator) -> list[Floats]:
    """Waiting inside the collective: the rank that is ahead waits for the other one.

    Where one GPU is the slower by more than 2 %, the other one waits for it; else one waits by chance for 10 to 60 %
    of the GPU's free time, and in a third of the runs they change places.
    """
    steps = len(step_ns)
    waits = [np.zeros(steps) for _ in gpu]
    busy = [float(np.mean(g)) for g in gpu]
    slowest = int(np.argmax(busy))
    for rank, g in enumerate(gpu):
        if busy[rank] < 0.98 * busy[slowest]:
            waits[rank] = waits[rank] + np.maximum(0.0, gpu[slowest] - g)
    ahead = np.full(steps, rng.integers(len(gpu)))
    if rng.random() < 1 / 3:
        ahead[int(rng.integers(steps + 1)) :] = rng.integers(len(gpu))
    share = rng.uniform(0.1, 0.6, steps)
    for rank in range(len(gpu)):
        free = np.maximum(0.0, step_ns - gpu[rank] - waits[rank])
        waits[rank] = waits[rank] + np.where(ahead == rank, share * free, 0.0)
    return waits


def _wait_in(functions: Sequence[Function], rank: list[Floats], wait: Floats, host_waits: Floats) -> None:
    """Add the waiting of a rank to its collective, and that of its host for the GPU to the synchronisation."""
    for i, f in enumerate(functions):
        if f.cls == "gpu_comm":
            rank[i] = rank[i] + wait
        elif f.name == "cudaStreamSynchronize":
            rank[i] = rank[i] + host_waits
