"""The machine's conditions while a candidate is timed: clocks, temperature, power, throttling, load by others.

A thread of the parent's process samples them 20 times per second; the candidate's own process is left alone. Times are
those of `time.perf_counter_ns`, on Linux one clock of all processes (CLOCK_MONOTONIC), so a sample and a timed call
can be compared. Nothing is set, only read. What wasn't sampled in between, such as a slowdown of 10 ms, isn't seen.
"""

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from types import TracebackType
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from inferometer.bench.outside import descendants
from inferometer.bench.results import Conditions
from inferometer.bench.sample_remarks import Sample, find_remarks
from inferometer.hardware.measure.load import HostLoad
from inferometer.hardware.measure.nvml import POWER_CAP, GpuState, Nvml, open_nvml

HZ = 20
_PROCESSES_NS = 1_000_000_000  # who has the GPU is asked so often, since the answer takes long

Span = tuple[int, int]


class Gpu(Protocol):
    """What is asked of a GPU: `Nvml` has it."""

    def state(self) -> GpuState:
        """Now."""

    def processes(self) -> frozenset[int] | None:
        """Ids of those that compute on it."""


class Host(Protocol):
    """What is asked of the processor: `HostLoad` has it."""

    def state(self) -> dict[str, float]:
        """Now, by metric."""


class Watch:
    """Samples from `with` to its end; a first and a last sample are taken there, however short that is.

    Args:
        device: `cpu`, or `cuda:0`.
        own: Ids of the processes whose load isn't that of others; the parent is one of them anyway.
        gpu: In the place of NVML. None: as `device` says.
        host: In the place of /proc.
        clock: In the place of `time.perf_counter_ns`.
        cpu_clock: Processor time of the sampling thread, ns.
    """

    def __init__(
        self,
        device: str,
        own: Collection[int] = (),
        *,
        gpu: Gpu | None = None,
        host: Host | None = None,
        clock: Callable[[], int] = time.perf_counter_ns,
        cpu_clock: Callable[[], int] = time.thread_time_ns,
    ) -> None:
        self._device = device
        self._own = {*own, os.getpid()}
        self._gpu = gpu if gpu is not None or device == "cpu" else open_gpu(device)
        self._host = host if host is not None else HostLoad(self._own)
        self._clock, self._cpu_clock = clock, cpu_clock
        self._asked_ns: int | None = None
        self._cpu_ns = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="inferometer-watch", daemon=True)
        self.samples: list[Sample] = []

    def __enter__(self) -> "Watch":
        self.take()
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join()
        self.take()

    def add_own(self, process: int) -> None:
        """A process that began since: its load isn't that of others either."""
        self._own.add(process)

    def take(self) -> None:
        """One more sample, now. For tests; the thread does it by itself."""
        began_ns, began_cpu_ns = self._clock(), self._cpu_clock()
        metrics, reasons, is_idle = dict(self._host.state()), frozenset[str](), False
        state = None if self._gpu is None else self._gpu.state()
        if state is not None:
            metrics |= _gpu_metrics(state)
            reasons, is_idle = state.reasons or reasons, bool(state.is_idle)
        processes = self._processes(began_ns)
        self._cpu_ns += self._cpu_clock() - began_cpu_ns
        self.samples.append(Sample(began_ns, self._clock(), metrics, reasons, is_idle, processes))

    @property
    def cpu_share(self) -> float:
        """What sampling took, as a share of one core."""
        return self._cpu_ns / max(1, self.samples[-1].ended_ns - self.samples[0].began_ns) if self.samples else 0.0

    def conditions(self) -> Conditions:
        """Conditions by all samples so far."""
        samples = tuple(self.samples)
        counted = Counter(reason for sample in samples for reason in sample.reasons)
        return Conditions(
            metrics={name: _spread(values) for name, values in _by_metric(samples).items()},
            throttled={reason: count / len(samples) for reason, count in sorted(counted.items())},
            remarks=find_remarks(
                samples, frozenset(self._own), watches_gpu=self._device != "cpu", cpu_share=self.cpu_share
            ),
        )

    def throttled_spans(self) -> list[Span]:
        """When the device was slowed down for another reason than its power cap, which belongs to how a GPU runs.

        From the sample before the first that says so to the sample after the last, since nothing is known in between.
        Times of `time.perf_counter_ns`, in order, none touching another.
        """
        slowed = [bool(sample.reasons - {POWER_CAP}) for sample in self.samples]
        last = len(slowed) - 1
        around = [
            (self.samples[max(0, i - 1)].began_ns, self.samples[min(last, i + 1)].ended_ns)
            for i, is_slow in enumerate(slowed)
            if is_slow
        ]
        return _merged(around)

    def _run(self) -> None:
        while not self._stop.wait(1 / HZ):
            self.take()

    def _processes(self, now_ns: int) -> frozenset[int]:
        if self._gpu is None or (self._asked_ns is not None and now_ns - self._asked_ns < _PROCESSES_NS):
            return frozenset()
        self._asked_ns = now_ns
        ours = set(descendants(os.getpid()))  # before and after: candidates come and go, also while they are checked
        running = self._gpu.processes() or frozenset()
        self._own |= running & {*ours, *descendants(os.getpid())}
        return running


def drop_throttled(starts_ns: ArrayLike, ends_ns: ArrayLike, spans: Sequence[Span]) -> NDArray[np.bool_]:
    """Which of the calls overlap one of the spans, so are to be left out. Shape (n,), as both times."""
    starts, ends = np.asarray(starts_ns, dtype=np.int64), np.asarray(ends_ns, dtype=np.int64)
    if not spans:
        return np.zeros(len(starts), dtype=np.bool_)
    begins, stops = np.array(_merged(spans), dtype=np.int64).T
    at = np.searchsorted(begins, ends, side="left") - 1  # the last span that begins before the call ends
    overlaps: NDArray[np.bool_] = (at >= 0) & (stops[np.maximum(at, 0)] > starts)
    return overlaps


def open_gpu(device: str) -> Nvml | None:
    """The GPU that torch calls so, as NVML knows it; None where it doesn't: of AMD, a MIG part, no library."""
    import torch

    if not torch.cuda.is_available() or torch.version.hip:
        return None
    uuid = getattr(torch.cuda.get_device_properties(torch.device(device)), "uuid", None)
    return open_nvml(None if uuid is None else str(uuid))


def _gpu_metrics(state: GpuState) -> dict[str, float]:
    """An idle GPU's clock says nothing of the one that calls ran with."""
    found = {
        "sm_clock_hz": None if state.is_idle else state.sm_clock_hz,
        "memory_clock_hz": None if state.is_idle else state.memory_clock_hz,
        "temperature_c": state.temperature_c,
        "power_w": state.power_w,
        "energy_j": state.energy_j,
    }
    return {name: value for name, value in found.items() if value is not None}


def _by_metric(samples: Sequence[Sample]) -> dict[str, list[float]]:
    """Energy counts from the first sample on: its greatest value is what was used meanwhile."""
    found: dict[str, list[float]] = {}
    for sample in samples:
        for name, value in sample.metrics.items():
            found.setdefault(name, []).append(value)
    if "energy_j" in found:
        found["energy_j"] = [value - found["energy_j"][0] for value in found["energy_j"]]
    return found


def _spread(values: Sequence[float]) -> tuple[float, float, float]:
    return (min(values), float(np.median(values)), max(values))


def _merged(spans: Sequence[Span]) -> list[Span]:
    merged: list[Span] = []
    for begin, end in sorted(spans):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged
