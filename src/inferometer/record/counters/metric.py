"""What a source of counters is: the metrics that it declares, and the probes that read them.

A module of this folder declares `SOURCE`. What it can't give here it says once, with `place.lack`, or by raising
`Unavailable` or `OSError` where it can give nothing; it goes on with the rest. A value is a number, or None where a
counter went backwards. A metric that can't be known yet (the first reading of a counter) is left out.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from inferometer.analyses.compare.causes.metric_roles import Kind
from inferometer.hardware.measure.nvml import Nvml, list_gpus
from inferometer.record.counters.family import Family
from inferometer.record.counters.files import Files
from inferometer.trace.facts import Device

Reading = Mapping[str, float | None]


@dataclass(frozen=True)
class Metric:
    """One series a device.

    `role`: what it is to a slower run, as `analyses/compare/causes/metric_roles.py` takes the name today. `own`: of the
    recorded processes, under the id of the first.
    """

    name: str
    unit: str
    meaning: str
    role: Kind
    own: bool = False


class Probe(Protocol):
    """Reads all metrics of one device, or of the host, at once."""

    @property
    def device(self) -> str | None:
        """`gpu:0`; None for the host."""

    def read(self, now_ns: int) -> Reading:
        """Values by metric. `now_ns` is the time, on any clock that never jumps: rates are differences over it."""


@dataclass(frozen=True)
class HostProbe:
    """What reads metrics of the host."""

    read: Callable[[int], Reading]
    device: str | None = None


@dataclass(frozen=True)
class SystemRoots:
    """Where sources look, so that tests can pretend another machine.

    Attributes:
        files: /proc and /sys.
        family: The processes that are recorded.
        lack: Says once what a source can't give here.
        gpus: All GPUs that NVML knows, in its order. Raises `Unavailable` with the reason where there are none.
        environ: Environment variables.
        know: Adds a device to what the recording says of itself.
    """

    files: Files
    family: Family
    lack: Callable[[str], None]
    gpus: Callable[[], Sequence[Nvml]] = list_gpus
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    know: Callable[[Device], None] = lambda device: None


@dataclass(frozen=True)
class CounterSource:
    """`open` looks what is there. `most_hz`: not read more often. `is_slow`: a reading may take many milliseconds."""

    name: str
    metrics: tuple[Metric, ...]
    open: Callable[[SystemRoots], Sequence[Probe]]
    most_hz: float = 10.0
    is_slow: bool = False


class Rates:
    """Differences of counters that only grow, over the real time between readings."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[float, int]] = {}

    def per_s(self, found: dict[str, float | None], metric: str, count: float, now_ns: int, scale: float = 1.0) -> None:
        """Put the growth a second times `scale` into `found`: nothing at first, None where the counter went back."""
        before = self._last.get(metric)
        self._last[metric] = count, now_ns
        if before is None or now_ns <= before[1]:
            return
        grown = count - before[0]
        found[metric] = None if grown < 0 else scale * grown * 1e9 / (now_ns - before[1])

    def grown(self, name: str, count: float) -> float | None:
        """By how much it grew since the last time; None at first, and where it went backwards."""
        before = self._last.get(name)
        self._last[name] = count, 0
        return None if before is None or count < before[0] else count - before[0]
