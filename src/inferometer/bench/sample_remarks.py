"""Samples of a machine, and what they say against the times that were taken meanwhile."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from inferometer.hardware.measure.nvml import POWER_CAP
from inferometer.units import format_share

_STEADY = 0.02  # of the clock: locked clocks stay within it
_WARMED_C = 3.0  # sensors count in whole degrees, so less may be their rounding
_OTHERS = 0.05  # of all cores
_SAMPLING = 0.01  # of a core
_OURS = 2  # processes on the GPU: the candidate's and the parent, which computes the answers
_SHORT_NS = 1_000_000_000  # the first sample and the last take more of what is shorter
_MINUTE_NS = 60e9


@dataclass(frozen=True)
class Sample:
    """One look at the machine, between two times in ns: metrics by name with their units, and reasons of throttling."""

    began_ns: int
    ended_ns: int
    metrics: dict[str, float]
    reasons: frozenset[str]
    is_idle: bool = False
    processes: frozenset[int] = frozenset()


def find_remarks(
    samples: Sequence[Sample], own: Collection[int], *, watches_gpu: bool, cpu_share: float
) -> tuple[str, ...]:
    """Of clocks, power, heat and others, each at most once; none of what is as it should be."""
    if not samples:
        return ()
    found = list(_gpu(samples, own)) if watches_gpu else []
    found += _host(samples, watches_gpu=watches_gpu)
    if cpu_share > _SAMPLING and samples[-1].ended_ns - samples[0].began_ns > _SHORT_NS:
        found.append(f"Watching the machine itself took {format_share(cpu_share)} of a core.")
    return tuple(found)


def _gpu(samples: Sequence[Sample], own: Collection[int]) -> Iterator[str]:
    metrics = {name for sample in samples for name in sample.metrics}
    if not metrics & {"sm_clock_hz", "temperature_c", "power_w"}:
        yield (
            "Clocks, power and throttling of the GPU are unknown: NVML doesn't answer (nvidia-ml-py isn't installed, "
            "or the GPU is AMD's or a MIG part)."
        )
        return
    _, clocks = _series(samples, "sm_clock_hz")
    if len(clocks):
        low, high = np.percentile(clocks, [5, 95])
        if high - low > _STEADY * high:
            yield (
                f"The SM clock varied by {format_share((high - low) / high)} while the GPU was busy "
                f"({low / 1e6:.0f} to {high / 1e6:.0f} MHz): clocks aren't locked."
            )
    capped = sum(POWER_CAP in sample.reasons for sample in samples) / len(samples)
    if capped:
        yield f"The power cap lowered the clocks in {format_share(capped)} of the samples."
    yield from _heat(samples)
    yield from _others(frozenset().union(*(sample.processes for sample in samples)), own)


def _heat(samples: Sequence[Sample]) -> Iterator[str]:
    """The slope of a line through all samples."""
    times, degrees = _series(samples, "temperature_c")
    if len(times) < 3 or times[-1] == times[0]:
        return
    slope = float(np.polyfit(times - times[0], degrees, 1)[0])
    if abs(slope * (times[-1] - times[0])) >= _WARMED_C:
        yield (
            f"The GPU's temperature went from {degrees[0]:.0f} to {degrees[-1]:.0f} °C, {slope * _MINUTE_NS:+.1f} °C a "
            "minute: warm it up longer."
        )


def _others(seen: Collection[int], own: Collection[int]) -> Iterator[str]:
    """In a container the driver's process ids aren't ours: then only their number has a meaning."""
    others = sorted(set(seen) - set(own))
    if len(others) < len(set(seen)):
        if others:
            yield f"Other processes had the GPU too: {', '.join(map(str, others))}. Repeat it alone."
    elif len(others) > _OURS:
        yield (
            f"{len(others)} processes had the GPU, none under an id of ours (in a container they differ): "
            f"at least {len(others) - _OURS} of them are others'. Repeat it alone."
        )


def _host(samples: Sequence[Sample], *, watches_gpu: bool) -> Iterator[str]:
    _, shares = _series(samples, "others_share")
    if len(shares) and float(np.median(shares)) > _OTHERS:
        yield (f"Other processes took {format_share(float(np.median(shares)))} of all cores (median). Repeat it alone.")
    metrics = {name for sample in samples for name in sample.metrics}
    if not watches_gpu and "core_clock_hz" not in metrics:
        yield "Clocks of the cores are unknown: the machine doesn't tell them."


def _series(samples: Sequence[Sample], metric: str) -> tuple[np.ndarray, np.ndarray]:
    """Times in ns and values, where there is one."""
    known = [(sample.began_ns, sample.metrics[metric]) for sample in samples if metric in sample.metrics]
    times, values = zip(*known, strict=True) if known else ((), ())
    return np.array(times, dtype=np.float64), np.array(values, dtype=np.float64)
