"""What each fault changes: the times of calls and the counters, at three severities.

Factors multiply the time of one call; shifts change counters. What follows from them is not written here but comes
out of the simulation: the step gets longer where the slowed side (host or GPU) is the longer one, the process's own
GPU usage falls or rises with it, its own traffic falls, the host waits longer in synchronisation where the GPU is
slower, power and temperature follow load and clock.

| class | low / medium / high | what else changes |
| --- | --- | --- |
| cpu_clock | 3500 -> 2600 / 1800 / 900 MHz on all cores | 91 % of a host call's time follows the clock (measured: 3500 -> 900 MHz made calls 3.5 x); other tenants' CPU share rises by 0.11 x (ratio - 1) of itself |
| cpu_contention | other processes take 20 / 45 / 75 points of host CPU | run queue 1.6 / 4 / 12 x a call; caches and SMT 1.03 / 1.1 / 1.25 x; clocks fall by 0 / 1 / 2 % (turbo) |
| gpu_clock | SM clock locked at 1100 / 800 / 210 of 1410 MHz | compute calls by their share that follows the clock (measured at 210 MHz: GEMM 3.6 x, softmax 5 x, copies on the device 2.6 x, copies to it 1.4 x) |
| gpu_contention | another process uses 25 / 50 / 95 % of the own GPU | time slices: every kernel 1.2 / 1.6 / 2.6 x; 6 GB of memory; SM activity up |
| gpu_memory | own GPU's memory filled by another process to 88 / 94 / 99 % | allocation and synchronisation calls 1.5 / 3 / 8 x, copies (swapping) 1.2 / 1.8 / 3 x, stalls of 2 / 10 / 30 % of the step |
| nvlink_traffic | others use 20 / 45 / 80 % of 300 GB/s each way on the own GPUs | collectives 1.2 / 1.7 / 3.5 x (TP 2 only) |
| pcie_traffic | others use 20 / 50 / 85 % of 31.5 GB/s (x16, 4th generation) each way | copies between host and device 1.25 / 2 / 5 x; launches 1.01 / 1.03 / 1.08 x |
| network | others use 20 / 50 / 90 % of a 25 Gbit/s NIC each way | reads 1.5 / 3 / 8 x, waiting for requests 3 / 12 / 35 % of the step, soft interrupts 1 / 3 / 6 points of CPU |
| disk | others read and write 0.6 / 1.5 / 2.7 GB/s of 3 GB/s | reads and writes 1.3 / 2.2 / 5 x; 0.5 / 1 / 2 points of CPU; one file system fills up by what is written |
| memory_pressure | host memory in use 75 / 88 / 97 % | mapping calls 1.3 / 3 / 10 x, host calls 1.02 / 1.1 / 1.35 x (reclaim, faults), 0 / 0.2 / 2 GB of the process swapped |
| thermal | GPU at 80 / 86 / 92 degrees, throttled to 1290 / 1110 / 840 MHz | compute calls as under gpu_clock; the clock is a consequence, so `thermal` is the right name |
| slower_kernel | the activation kernel 1.3 / 1.8 / 3 x, same name | nothing else |
| replaced_kernel | the first GEMM replaced by one of another name, 0.7 / 1.4 / 2.2 x (low: faster) | nothing else |
| fused_kernel | norm and activation fused into one kernel that takes 0.8 / 1.4 / 2.2 x their sum (low: faster) | nothing else |

Severities are chosen by physics (share of a capacity, published clock steps), before any method was run on them.
"""  # noqa: E501 - a table row is one line

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Literal

BASE_CPU_MHZ = 3500.0
BASE_GPU_MHZ = 1410.0
GPU_MEMORY_BYTES = 80 * 2**30
LINK_BYTES_PER_S = 300e9
PCIE_BYTES_PER_S = 31.5e9
NIC_BYTES_PER_S = 3.125e9
_CLOCK_SHARE = 0.91
_LEVEL = {"low": 0, "medium": 1, "high": 2}


@dataclass(frozen=True)
class Shift:
    """A change of one metric: `add` to it, set it `to`, or `cap` it; of own GPUs or of the host."""

    metric: str
    how: Literal["add", "to", "cap", "scale"]
    value: float


@dataclass(frozen=True)
class Effect:
    """Factors on the time of one call by kind of function, and shifts of counters.

    `host`: the host's own path through a step; oncpu calls take `oncpu` times as long.
    `clock`: full GPU clock over the present one; `slices`: factor on every kernel.
    `stall`: waiting, as a share of the step. `own_cpu`: factor on the CPU that the process gets.
    """

    host: float = 1.0
    oncpu: float = 1.0
    runq: float = 1.0
    read: float = 1.0
    write: float = 1.0
    mapping: float = 1.0
    sync: float = 1.0
    clock: float = 1.0
    slices: float = 1.0
    comm: float = 1.0
    copies: float = 1.0
    stall: float = 0.0
    own_cpu: float = 1.0
    shifts: tuple[Shift, ...] = ()


NOTHING = Effect()
OF_GPUS = frozenset({"gpu_clock", "gpu_contention", "gpu_memory", "thermal"})  # these may hit one GPU of several

MEASURED_BY = {
    "cpu_clock": {"cpu_frequency"},
    "cpu_contention": {"host_cpu_usage", "container_cpu_usage", "cpu_frequency"},
    "gpu_clock": {"gpu_frequency", "gpu_sm_frequency", "gpu_temperature", "gpu_power"},
    "gpu_contention": {
        "gpu_usage",
        "gpu_sm_util",
        "gpu_sm_occupancy",
        "gpu_mem_used",
        "gpu_temperature",
        "gpu_power",
    },
    "gpu_memory": {"gpu_mem_used"},
    "nvlink_traffic": {"gpu_link_transmit", "gpu_link_receive"},
    "pcie_traffic": {"gpu_pcie_transmit", "gpu_pcie_receive"},
    "network": {"net_rx_rate", "net_tx_rate", "host_cpu_usage"},
    "disk": {"disk_read_rate", "disk_write_rate", "disk_usage", "disk_used", "disk_free", "host_cpu_usage"},
    "memory_pressure": {
        "host_mem_usage",
        "host_mem_available",
        "host_mem_free",
        "host_mem_cache",
        "host_mem_buffer",
        "process_mem_swap",
        "host_cpu_usage",
    },
    "thermal": {"gpu_temperature", "gpu_power", "gpu_frequency", "gpu_sm_frequency"},
}  # fmt: skip


def effect_of(fault: str, severity: str) -> Effect:
    """The effect of one fault; a software fault changes no counter and no factor, workloads.py replaces kernels."""
    maker = _MAKERS.get(fault)
    return maker(_LEVEL[severity]) if maker else NOTHING


def together(effects: Iterable[Effect]) -> Effect:
    """Several at once: factors multiply, stalls add, shifts follow each other."""
    return reduce(_both, effects, NOTHING)


def _both(one: Effect, other: Effect) -> Effect:
    sums = {"stall": one.stall + other.stall, "shifts": one.shifts + other.shifts}
    names = [name for name in Effect.__dataclass_fields__ if name not in sums]
    return Effect(**{name: getattr(one, name) * getattr(other, name) for name in names}, **sums)  # type: ignore[arg-type]


def _cpu_clock(level: int) -> Effect:
    mhz = (2600, 1800, 900)[level]
    slow = 1 + _CLOCK_SHARE * (BASE_CPU_MHZ / mhz - 1)
    others = 1 + 0.11 * (BASE_CPU_MHZ / mhz - 1)
    shifts = (Shift("cpu_frequency", "scale", mhz / BASE_CPU_MHZ), Shift("others_cpu", "scale", others))
    calls = dict.fromkeys(("host", "oncpu", "runq", "read", "write", "mapping"), slow)
    return Effect(**calls, sync=slow**0.75, shifts=shifts)


def _cpu_contention(level: int) -> Effect:
    points, runq, slow, path = ((20, 1.6, 1.03, 1.05), (45, 4, 1.1, 1.3), (75, 12, 1.25, 1.9))[level]
    shifts = (Shift("others_cpu", "add", points), Shift("cpu_frequency", "scale", 1 - 0.01 * level))
    own = (1, 0.95, 0.8)[level]
    return Effect(host=path, oncpu=slow, runq=runq, write=slow, mapping=slow, own_cpu=own, shifts=shifts)


def _gpu_clock(level: int) -> Effect:
    mhz = (1100, 800, 210)[level]
    return Effect(clock=BASE_GPU_MHZ / mhz, shifts=(Shift("gpu_frequency", "cap", mhz),))


def _gpu_contention(level: int) -> Effect:
    usage = (25, 50, 95)[level]
    shifts = (Shift("others_gpu", "add", usage), Shift("gpu_mem_used", "add", 6e9))
    return Effect(slices=(1.2, 1.6, 2.6)[level], copies=1.05, shifts=shifts)


def _gpu_memory(level: int) -> Effect:
    call = (1.5, 3, 8)[level]
    shifts = (Shift("gpu_mem_used", "to", (0.88, 0.94, 0.99)[level] * GPU_MEMORY_BYTES), Shift("others_gpu", "add", 1))
    slow = (1.02, 1.08, 1.2)[level]
    copies = (1.2, 1.8, 3)[level]
    stall = (0.02, 0.1, 0.3)[level]
    return Effect(host=slow, oncpu=slow, mapping=call, sync=call, copies=copies, stall=stall, shifts=shifts)


def _nvlink_traffic(level: int) -> Effect:
    traffic = (0.2, 0.45, 0.8)[level] * LINK_BYTES_PER_S
    return Effect(comm=(1.2, 1.7, 3.5)[level], shifts=_each(("gpu_link_transmit", "gpu_link_receive"), traffic))


def _pcie_traffic(level: int) -> Effect:
    traffic = (0.2, 0.5, 0.85)[level] * PCIE_BYTES_PER_S
    slow = (1.01, 1.03, 1.08)[level]
    shifts = _each(("gpu_pcie_transmit", "gpu_pcie_receive"), traffic)
    return Effect(host=slow, oncpu=slow, copies=(1.25, 2, 5)[level], shifts=shifts)


def _network(level: int) -> Effect:
    traffic = (0.2, 0.5, 0.9)[level] * NIC_BYTES_PER_S
    slow = (1.01, 1.02, 1.05)[level]
    shifts = (*_each(("net_rx_rate", "net_tx_rate"), traffic), Shift("others_cpu", "add", (1, 3, 6)[level]))
    return Effect(host=slow, oncpu=slow, read=(1.5, 3, 8)[level], stall=(0.03, 0.12, 0.35)[level], shifts=shifts)


def _disk(level: int) -> Effect:
    shifts = _each(("disk_read_rate", "disk_write_rate"), (0.6e9, 1.5e9, 2.7e9)[level])
    call = (1.3, 2.2, 5)[level]
    busy = Shift("others_cpu", "add", (0.5, 1, 2)[level])
    return Effect(host=(1.08, 1.3, 2.1)[level], read=call, write=call, shifts=(*shifts, busy))


def _memory_pressure(level: int) -> Effect:
    slow = (1.02, 1.1, 1.35)[level]
    used = Shift("host_mem_usage", "to", (75, 88, 97)[level])
    swapped = Shift("process_mem_swap", "add", (0, 0.2e9, 2e9)[level])
    reclaim = Shift("others_cpu", "add", (0, 1, 3)[level])
    call = (1.3, 3, 10)[level]
    return Effect(host=slow, oncpu=slow, write=slow, mapping=call, shifts=(used, swapped, reclaim))


def _thermal(level: int) -> Effect:
    mhz = (1290, 1110, 840)[level]
    shifts = (Shift("gpu_temperature", "to", (80, 86, 92)[level]), Shift("gpu_frequency", "cap", mhz))
    return Effect(clock=BASE_GPU_MHZ / mhz, shifts=shifts)


def _each(metrics: tuple[str, ...], value: float) -> tuple[Shift, ...]:
    return tuple(Shift(metric, "add", value) for metric in metrics)


_MAKERS = {
    "cpu_clock": _cpu_clock,
    "cpu_contention": _cpu_contention,
    "gpu_clock": _gpu_clock,
    "gpu_contention": _gpu_contention,
    "gpu_memory": _gpu_memory,
    "nvlink_traffic": _nvlink_traffic,
    "pcie_traffic": _pcie_traffic,
    "network": _network,
    "disk": _disk,
    "memory_pressure": _memory_pressure,
    "thermal": _thermal,
}
