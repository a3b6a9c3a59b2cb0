"""Memory of the host: in use, available, swapped.

Source: /proc/meminfo, /proc/vmstat (proc(5)). `in use` is what isn't available: caches that can be dropped don't count.

| metric | unit | role |
| --- | --- | --- |
| `host_mem_usage` | % | cause |
| `host_mem_available` | bytes | cause |
| `swap_in`, `swap_out` | B/s | cause, but of severity 0 in compare: it knows no capacity |
| `host_major_faults` | 1/s | context |
"""

import os

from inferometer.errors import Unavailable
from inferometer.record.counters.metric import CounterSource, HostProbe, Metric, Rates, Reading, SystemRoots

METRICS = (
    Metric("host_mem_usage", "%", "Memory that isn't available.", "cause"),
    Metric("host_mem_available", "bytes", "What could be had without swapping.", "cause"),
    Metric("swap_in", "B/s", "Read back from swap.", "cause"),
    Metric("swap_out", "B/s", "Written to swap.", "cause"),
    Metric("host_major_faults", "1/s", "Page faults that needed a disk.", "context"),
)
_COUNTERS = {"pswpin": "swap_in", "pswpout": "swap_out", "pgmajfault": "host_major_faults"}


class _Memory:
    def __init__(self, place: SystemRoots) -> None:
        self._files = place.files

    def read(self, now_ns: int) -> Reading:
        sizes: dict[str, int] = {}
        for line in self._files.read("/proc/meminfo").splitlines():
            name, _, value = line.partition(":")
            if name in ("MemTotal", "MemAvailable"):
                sizes[name] = int(value.split()[0]) * 1024
                if len(sizes) == 2:
                    break
        total, available = sizes.get("MemTotal"), sizes.get("MemAvailable")
        if not total or available is None:
            return {}
        return {"host_mem_available": available, "host_mem_usage": 100 * (1 - available / total)}


class _Paging:
    def __init__(self, place: SystemRoots) -> None:
        self._files, self._rates = place.files, Rates()
        self._page = os.sysconf("SC_PAGE_SIZE")

    def read(self, now_ns: int) -> Reading:
        found: dict[str, float | None] = {}
        text = self._files.read("/proc/vmstat")
        for name, metric in _COUNTERS.items():
            at = text.find(f"\n{name} ")  # of some 180 lines
            if at >= 0:
                count = int(text[at + len(name) + 2 :].partition("\n")[0])
                self._rates.per_s(found, metric, count, now_ns, self._page if metric.startswith("swap") else 1)
        return found


def _open(place: SystemRoots) -> list[HostProbe]:
    probes = []
    if _Memory(place).read(0):
        probes.append(HostProbe(_Memory(place).read))
    else:
        place.lack("host_memory: no MemAvailable in /proc/meminfo")
    try:
        place.files.read("/proc/vmstat")
        probes.append(HostProbe(_Paging(place).read))
    except OSError as error:
        place.lack(f"host_memory: /proc/vmstat: {error.strerror}")
    if not probes:
        raise Unavailable("neither /proc/meminfo nor /proc/vmstat")
    return probes


SOURCE = CounterSource("host_memory", METRICS, _open, most_hz=2.0)
