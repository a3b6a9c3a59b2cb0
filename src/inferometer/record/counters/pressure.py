"""How much of the time some task of the machine waited for a processor, for memory or for disks.

Source: /proc/pressure/* (the kernel's documentation of pressure stall information): `some` counts the time in which at
least one task waited, `full` the time in which all did. The recorded processes' own waits are in it.

| metric | unit | role |
| --- | --- | --- |
| `cpu_pressure` | fraction of the time, `some` | context |
| `memory_pressure` | fraction, `some` | cause |
| `io_pressure` | fraction, `some` | cause |
| `memory_pressure_full`, `io_pressure_full` | fraction, `full` | cause |
"""

from inferometer.errors import Unavailable
from inferometer.record.counters.metric import CounterSource, HostProbe, Metric, Rates, Reading, SystemRoots

_KINDS = ("cpu", "memory", "io")
METRICS = (
    Metric("cpu_pressure", "fraction", "Time in which a task waited for a processor.", "context"),
    Metric("memory_pressure", "fraction", "Time in which a task waited for memory.", "cause"),
    Metric("io_pressure", "fraction", "Time in which a task waited for a disk.", "cause"),
    Metric("memory_pressure_full", "fraction", "Time in which all tasks waited for memory.", "cause"),
    Metric("io_pressure_full", "fraction", "Time in which all tasks waited for disks.", "cause"),
)


class _Pressure:
    def __init__(self, place: SystemRoots, kinds: tuple[str, ...]) -> None:
        self._files, self._kinds, self._rates = place.files, kinds, Rates()

    def read(self, now_ns: int) -> Reading:
        found: dict[str, float | None] = {}
        for kind in self._kinds:
            for line in self._files.read(f"/proc/pressure/{kind}").splitlines():
                level, _, rest = line.partition(" ")
                metric = f"{kind}_pressure" + ("" if level == "some" else f"_{level}")
                total_us = rest.rpartition("total=")[2]
                if metric != "cpu_pressure_full" and total_us:  # of the whole machine it is 0 by definition
                    self._rates.per_s(found, metric, int(total_us), now_ns, 1e-6)
        return {metric: None if share is None else min(1.0, share) for metric, share in found.items()}


def _open(place: SystemRoots) -> list[HostProbe]:
    there = []
    for kind in _KINDS:
        try:
            place.files.read(f"/proc/pressure/{kind}")
            there.append(kind)
        except OSError:  # the kernel was built or started without it
            continue
    if not there:
        raise Unavailable("no /proc/pressure: this kernel keeps no pressure stall information")
    return [HostProbe(_Pressure(place, tuple(there)).read)]


SOURCE = CounterSource("pressure", METRICS, _open, most_hz=5.0)
