"""Counters of one run: what a host with eight GPUs shows about once a second.

A `Machine` holds for both runs of a pair (who sits on which GPU, how much memory is taken); what differs between runs
by nature is drawn for each run. Values are in natural units: MHz, %, B/s, bytes, KiB for `host_mem_*` but the usage.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tests.faults import noise
from tests.faults.case import Case
from tests.faults.effects import BASE_CPU_MHZ, BASE_GPU_MHZ, GPU_MEMORY_BYTES, Effect
from tests.faults.noise import Floats, autocorrelated
from tests.faults.workloads import Steps

Ticks = np.ndarray[Any, np.dtype[np.int64]]

GPUS = 8
CORES = 64
SAMPLED_CORES = 48  # published recordings hold 37 to 68 samples of the cores at one time
HOST_KIB = 1_056_000_000.0
IDLE_CLOCK, LOW_CLOCK, MEMORY_CLOCK = 210.0, 1155.0, 1593.0
EXTENDED = {"gpu_temperature", "gpu_power", "gpu_pcie_receive", "disk_read_rate", "disk_write_rate"}


@dataclass(frozen=True)
class Machine:
    """What both runs of a pair share."""

    own: tuple[int, ...]
    busy: tuple[bool, ...]  # of each GPU, whether another tenant works on it
    loads: tuple[float, ...]
    memory: tuple[float, ...]
    others_cpu: float
    host_mem: float
    disk_used: tuple[float, ...]
    room_temperature: float


def machine_of(case: Case, rng: np.random.Generator) -> Machine:
    """The machine of a pair: own GPUs are the last ones but for a chance."""
    first = int(rng.integers(0, GPUS - case.processes + 1))
    own = tuple(range(first, first + case.processes))
    busy = tuple(bool(rng.random() < 0.4) and gpu not in own for gpu in range(GPUS))
    memory = [rng.uniform(0.25, 0.9) if b else 0.0107 for b in busy]
    for gpu in own:
        memory[gpu] = rng.uniform(0.55, 0.75)
    return Machine(
        own,
        busy,
        tuple(rng.uniform(15, 100, GPUS)),
        tuple(memory),
        float(rng.uniform(3, 9)),
        float(rng.uniform(5, 8)),
        tuple(rng.uniform(0.45, 0.85, 5)),
        float(rng.uniform(24, 32)),
    )


@dataclass(frozen=True)
class Samples:
    """Counters of a run: at each of `time_ns` one row of `values` (ticks, samples), 1 to many samples at one time.

    `devices` names the device of each sample where that is known to the recorder.
    """

    metric: str
    unit: str
    time_ns: Ticks
    values: Floats
    rank: int | None = None
    devices: tuple[str, ...] = ()


@dataclass
class _Run:
    """One run while it is drawn."""

    case: Case
    machine: Machine
    effects: Sequence[Effect]
    steps: Steps
    rng: np.random.Generator
    time_ns: Ticks
    out: list[Samples] = field(default_factory=list)

    @property
    def ticks(self) -> int:
        return len(self.time_ns)

    def changed(self, metric: str, values: Floats, effect: Effect) -> Floats:
        """`values` after the shifts of that metric."""
        for shift in effect.shifts:
            if shift.metric == metric:
                values = _SHIFTED[shift.how](values, shift.value, self.rng)
        return values

    def lognormal(self, middle: float, sd: float) -> Floats:
        """Values around `middle` as traffic has them: never negative, with a long tail."""
        return middle * np.exp(np.clip(self.rng.normal(0, sd, self.ticks), -3 * sd, 3 * sd))

    def put(self, metric: str, unit: str, values: Floats, rank: int | None = None) -> None:
        """One sample a tick."""
        self.out.append(Samples(metric, unit, self.time_ns, values.reshape(self.ticks, 1), rank))


def _wobbly(value: float, rng: np.random.Generator, n: int) -> Floats:
    return value * np.exp(np.clip(rng.normal(0, 0.06, n), -0.2, 0.2))


_SHIFTED = {
    "add": lambda values, value, rng: values + _wobbly(value, rng, len(values)),
    "to": lambda values, value, rng: value + (values - np.mean(values)),
    "cap": lambda values, value, rng: np.minimum(values, value),
    "scale": lambda values, value, rng: values * value,
}


def tick_times(ticks: int, start_ns: int, rng: np.random.Generator) -> Ticks:
    """When the recorder sampled: about once a second, first within 0.6 s, in whole µs."""
    gaps_us = np.round(1e6 + rng.normal(0, 4e4, ticks)).astype(np.int64)
    return start_ns + 1000 * (int(rng.uniform(0, 6e5)) + np.cumsum(gaps_us) - gaps_us[0])


def run_counters(
    case: Case, machine: Machine, effects: Sequence[Effect], steps: Steps, time_ns: Ticks, rng: np.random.Generator
) -> list[Samples]:
    """All counters of one run at `time_ns`; `effects` are those of each rank."""
    run = _Run(case, machine, effects, steps, rng, time_ns)
    _host_cpu(run)
    _host_memory(run)
    _network_and_disks(run)
    _gpus(run)
    _processes(run)
    return [samples for samples in run.out if case.extended or samples.metric not in EXTENDED]


def _whole_host(run: _Run) -> Effect:
    """Host faults are the same for all ranks."""
    return run.effects[0]


def _host_cpu(run: _Run) -> None:
    rng, effect = run.rng, _whole_host(run)
    cores = BASE_CPU_MHZ + np.clip(rng.laplace(0, 2.1, (run.ticks, SAMPLED_CORES)), -60, 11)
    for tick in np.flatnonzero(rng.random(run.ticks) < 0.1):
        low = rng.random(SAMPLED_CORES) < 0.05
        cores[tick, low] -= rng.uniform(0, 800, int(low.sum()))
    cores = np.round(run.changed("cpu_frequency", cores, effect), 3)
    run.out.append(Samples("cpu_frequency", "MHz", run.time_ns, cores))
    spread = 1.5 if run.case.tenants else 0.5
    others = run.machine.others_cpu + np.clip(rng.normal(0, spread), -3, 4)
    loads = np.maximum(0.5, others + autocorrelated(rng, run.ticks, 0.7, 0.3))
    others_cpu = run.changed("others_cpu", loads, effect)
    own = [_own_cpu(run, effect) for _ in run.effects]
    total = np.minimum(100.0, others_cpu + np.sum(own, axis=0) / CORES)
    run.put("host_cpu_usage", "%", np.round(total, 3))
    for rank, values in enumerate(own):
        run.put("process_cpu_usage", "% of one core", np.round(values, 3), rank)
    some = run.time_ns[::2]
    container = np.round((1.4 * np.sum(own, axis=0) + autocorrelated(rng, run.ticks, 1.0, 0.5))[::2], 3)
    run.out.append(Samples("container_cpu_usage", "% of one core", some, container.reshape(-1, 1)))


def _own_cpu(run: _Run, effect: Effect) -> Floats:
    """Percent of one core: one busy thread and a little, with a trend within the run."""
    level = 105.0 * noise.drift(run.rng, 0.03) * effect.own_cpu
    return level + autocorrelated(run.rng, run.ticks, 1.0, 0.9)


def _host_memory(run: _Run) -> None:
    rng, effect, spread = run.rng, _whole_host(run), 0.6 if run.case.tenants else 0.1
    level = run.machine.host_mem + np.clip(rng.normal(0, spread), -1.5, 1.5)
    usage = run.changed("host_mem_usage", level + autocorrelated(rng, run.ticks, 0.02, 0.6), effect)
    available = HOST_KIB * (1 - usage / 100)
    free = np.minimum(0.3 * available, rng.uniform(6e6, 3.5e7) + np.cumsum(rng.normal(0, 1.5e5, run.ticks)))
    cache = np.maximum(0.0, available - free - 5e6 + rng.normal(0, 2e4, run.ticks))
    run.put("host_mem_usage", "%", np.round(usage, 3))
    for metric, values in (("available", available), ("free", np.maximum(1e6, free)), ("cache", cache)):
        run.put(f"host_mem_{metric}", "KiB", np.round(values))
    run.put("host_mem_buffer", "KiB", np.round(5.2e6 + np.cumsum(np.abs(rng.normal(0, 8, run.ticks)))))


def _network_and_disks(run: _Run) -> None:
    rng, effect = run.rng, _whole_host(run)
    spread = 1.0 if run.case.tenants else 0.6
    for metric, middle in (("net_rx_rate", 2500.0), ("net_tx_rate", 4000.0)):
        card = run.changed(metric, run.lognormal(middle * noise.drift(rng, spread), 1.0), effect)
        both: Floats = np.stack([card, run.lognormal(300.0, 1.2)], axis=1)
        run.out.append(Samples(metric, "B/s", run.time_ns, np.round(both)))
    for metric, middle in (("disk_read_rate", 4e5), ("disk_write_rate", 2.5e6)):
        rate = run.lognormal(middle * noise.drift(rng, spread), 0.8)
        run.put(metric, "B/s", np.round(run.changed(metric, rate, effect)))
    sizes = np.array([4.8e11, 1e12, 2e12, 1e12, 7.2e11])
    written = sum(shift.value for shift in effect.shifts if shift.metric == "disk_write_rate")
    used = np.tile(np.array(run.machine.disk_used) * sizes, (run.ticks, 1))
    used[:, 1] += np.cumsum(np.full(run.ticks, written)) + rng.normal(0, 2e9)
    used = np.minimum(np.round(used / 4096) * 4096, sizes)
    run.out.append(Samples("disk_used", "bytes", run.time_ns, used))
    run.out.append(Samples("disk_free", "bytes", run.time_ns, sizes - used))
    run.out.append(Samples("disk_usage", "%", run.time_ns, np.round(100 * used / sizes, 3)))


def _gpus(run: _Run) -> None:
    """Eight GPUs, pooled: at each tick the samples come in another order, so position says nothing."""
    columns: dict[str, list[Floats]] = {}
    for gpu in range(GPUS):
        own = gpu in run.machine.own
        values = _own_gpu(run, run.machine.own.index(gpu)) if own else _other_gpu(run, gpu)
        for metric, series in values.items():
            columns.setdefault(metric, []).append(series)
    devices = tuple(f"gpu:{gpu}" for gpu in range(GPUS))
    for metric, of_gpus in columns.items():
        run.out.append(Samples(metric, _GPU_UNITS[metric], run.time_ns, np.stack(of_gpus, axis=1), None, devices))


_GPU_UNITS = {
    "gpu_frequency": "MHz",
    "gpu_sm_frequency": "MHz",
    "gpu_mem_frequency": "MHz",
    "gpu_usage": "%",
    "gpu_mem_used": "bytes",
    "gpu_pcie_transmit": "B/s",
    "gpu_pcie_receive": "B/s",
    "gpu_link_transmit": "B/s",
    "gpu_link_receive": "B/s",
    "gpu_sm_util": "fraction",
    "gpu_sm_occupancy": "fraction",
    "gpu_temperature": "°C",
    "gpu_power": "W",
}


def _own_gpu(run: _Run, rank: int) -> Mapping[str, Floats]:
    rng, effect = run.rng, run.effects[rank]
    others = run.changed("others_gpu", np.zeros(run.ticks), effect)
    own = _own_usage(run, rank, others)
    usage = np.minimum(100.0, own + others)
    throttles = any(s.metric == "gpu_temperature" for s in effect.shifts)
    clock = run.changed("gpu_frequency", _clock(run, usage), effect)
    clock = clock - 15 * rng.integers(0, 3, run.ticks) if throttles else clock
    held = run.machine.memory[run.machine.own[rank]] * GPU_MEMORY_BYTES
    memory = run.changed("gpu_mem_used", np.full(run.ticks, held), effect)
    step_s = float(np.mean(run.steps.step_ns)) / 1e9
    has_peer = len(run.effects) > 1
    link_bytes = 128 * 0.5e6 if has_peer else 0.0
    return _one_gpu(
        run,
        effect,
        usage=usage,
        clock=clock,
        memory=np.minimum(memory, 0.998 * GPU_MEMORY_BYTES),
        pcie=run.lognormal(2e6 + 1.5e6 / step_s, 0.7),
        received=run.lognormal(1e6 + _host_to_device_bytes(run) / step_s, 0.1 if _is_offload(run) else 0.7),
        link=run.lognormal(link_bytes / step_s, 0.1),
    )


def _own_usage(run: _Run, rank: int, others: Floats) -> Floats:
    """The process's own GPU usage, percent.

    Drivers count any kernel in a sampling period, so it is above busy time. What others use beyond 100 % together is
    taken from both in proportion.
    """
    usage = min(99.0, 100 * max(1.5 * run.steps.busy[rank], run.steps.spinning[rank]))
    own = np.clip(usage + run.rng.normal(0, 0.8, run.ticks), 1, 100)
    return own * np.minimum(1.0, 100 / (own + others))


def _is_offload(run: _Run) -> bool:
    return run.case.workload == "offload"


def _host_to_device_bytes(run: _Run) -> float:
    return 64 * 4e7 if _is_offload(run) else 0.2e6


def _clock(run: _Run, usage: Floats) -> Floats:
    """Full clock under load; under a small load the lower step in some ticks."""
    low = run.rng.random(run.ticks) < run.rng.uniform(0.3, 0.7)
    return np.where((usage < 30) & low, LOW_CLOCK, BASE_GPU_MHZ)


def _other_gpu(run: _Run, gpu: int) -> Mapping[str, Floats]:
    """Another tenant's GPU: the same in both runs, or coming and going."""
    machine, rng = run.machine, run.rng
    busy = np.full(run.ticks, machine.busy[gpu])
    load, held = machine.loads[gpu], machine.memory[gpu]
    if run.case.tenants and rng.random() < 0.5:
        busy = np.full(run.ticks, bool(rng.random() < 0.5))
        load, held = rng.uniform(15, 100), rng.uniform(0.25, 0.9) if busy[0] else 0.0107
        if rng.random() < 0.4:
            busy[int(rng.integers(run.ticks)) :] ^= True
    usage = np.where(busy, np.clip(load + autocorrelated(rng, run.ticks, 6, 0.5), 1, 100), 0.0)
    return _one_gpu(
        run,
        Effect(),
        usage=usage,
        clock=np.where(busy, _clock(run, usage), IDLE_CLOCK),
        memory=np.full(run.ticks, held * GPU_MEMORY_BYTES),
        pcie=run.lognormal(1.3e6, 0.2) + np.where(busy, run.lognormal(5e6, 0.7), 0),
        received=run.lognormal(1e6, 0.2) + np.where(busy, run.lognormal(5e6, 0.7), 0),
        link=np.zeros(run.ticks),
    )


def _one_gpu(
    run: _Run,
    effect: Effect,
    *,
    usage: Floats,
    clock: Floats,
    memory: Floats,
    pcie: Floats,
    received: Floats,
    link: Floats,
) -> dict[str, Floats]:
    """All metrics of one GPU from its state; power and temperature follow load and clock."""
    rng = run.rng
    power = (60 + 3.0 * usage * (clock / BASE_GPU_MHZ) ** 1.5) * np.exp(rng.normal(0, 0.04, run.ticks))
    warmth = run.machine.room_temperature + noise_of_room(rng) + 0.09 * power + rng.normal(0, 0.7, run.ticks)
    active = usage / 100 * np.clip(rng.normal(0.75, 0.08, run.ticks), 0.3, 1)
    links = {
        f"gpu_link_{way}": np.round(run.changed(f"gpu_link_{way}", link, effect)) for way in ("transmit", "receive")
    }
    return {
        "gpu_frequency": clock,
        "gpu_sm_frequency": clock,
        "gpu_mem_frequency": np.full(run.ticks, MEMORY_CLOCK),
        "gpu_usage": np.round(usage),
        "gpu_mem_used": np.round(memory / 65536) * 65536,
        "gpu_pcie_transmit": np.round(run.changed("gpu_pcie_transmit", pcie, effect)),
        "gpu_pcie_receive": np.round(run.changed("gpu_pcie_receive", received, effect)),
        **links,
        "gpu_sm_util": np.round(active, 3),
        "gpu_sm_occupancy": np.round(0.35 * active, 3),
        "gpu_temperature": np.round(run.changed("gpu_temperature", warmth, effect)),
        "gpu_power": np.round(power, 1),
    }


def noise_of_room(rng: np.random.Generator) -> float:
    """Degrees by which a GPU is warmer or colder in this run."""
    return float(np.clip(rng.normal(0, 1.5), -4, 4))


def _processes(run: _Run) -> None:
    rng, effect = run.rng, _whole_host(run)
    for rank in range(len(run.effects)):
        others = run.changed("others_gpu", np.zeros(run.ticks), run.effects[rank])
        usage = np.round(_own_usage(run, rank, others))
        held = run.machine.memory[run.machine.own[rank]] * GPU_MEMORY_BYTES
        resident = 2.4e9 + np.cumsum(rng.normal(0, 4e6, run.ticks))
        swap = run.changed("process_mem_swap", np.zeros(run.ticks), effect)
        run.put("process_gpu_usage", "%", usage, rank)
        run.put("process_gpu_mem_usage", "bytes", np.full(run.ticks, np.round(held / 65536) * 65536), rank)
        run.put("process_mem_rss", "bytes", np.round((resident - 0.5 * swap) / 4096) * 4096, rank)
        run.put("process_mem_usage", "%", np.round(100 * resident / 1024 / HOST_KIB, 3), rank)
        run.put("process_mem_swap", "bytes", np.round(swap / 4096) * 4096, rank)
