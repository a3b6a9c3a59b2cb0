"""Clocks of the cores that the recorded process may use: the median, and the least.

Source: cpufreq's scaling_cur_freq (the kernel's documentation of CPU performance scaling), else "cpu MHz" of
/proc/cpuinfo. To read a core's clock may interrupt that core: at most 16 cores, five times per second. A virtual
machine often shows a constant.

| metric | unit | role |
| --- | --- | --- |
| `cpu_frequency` | MHz, median of cores | cause |
| `cpu_frequency_least` | MHz, slowest core | context |
"""

from collections.abc import Collection
from statistics import median

from inferometer.errors import Unavailable
from inferometer.processes import own_cores
from inferometer.record.counters.metric import CounterSource, HostProbe, Metric, Reading, SystemRoots

_CORES = 16
METRICS = (
    Metric("cpu_frequency", "MHz", "Median clock of the cores that may be used.", "cause"),
    Metric("cpu_frequency_least", "MHz", "Clock of the slowest of them.", "context"),
)


class _Clocks:
    def __init__(self, place: SystemRoots, cores: Collection[int]) -> None:
        self._files = place.files
        self._cores = sorted(cores)[:_CORES]
        self._paths = [f"/sys/devices/system/cpu/cpu{core}/cpufreq/scaling_cur_freq" for core in self._cores]

    def read(self, now_ns: int) -> Reading:
        clocks = self._scaled() or self._listed()
        return {"cpu_frequency": median(clocks), "cpu_frequency_least": min(clocks)} if clocks else {}

    def _scaled(self) -> list[float]:
        found, there = [], []
        for path in self._paths:
            try:
                found.append(int(self._files.read(path)) / 1e3)
            except (OSError, ValueError):  # not there, `<unknown>`, or the core was taken off
                continue
            there.append(path)
        self._paths = there
        return found

    def _listed(self) -> list[float]:
        lines = self._files.read("/proc/cpuinfo").splitlines()
        clocks = [float(line.partition(":")[2]) for line in lines if line.startswith("cpu MHz")]
        own = [clocks[core] for core in self._cores if core < len(clocks)]
        return own or clocks


def _open(place: SystemRoots) -> list[HostProbe]:
    clocks = _Clocks(place, own_cores())
    if not clocks.read(0):
        raise Unavailable("no clock of a core is reported: no cpufreq, no `cpu MHz` in /proc/cpuinfo")
    return [HostProbe(clocks.read)]


SOURCE = CounterSource("host_clock", METRICS, _open, most_hz=5.0)
