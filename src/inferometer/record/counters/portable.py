"""What psutil reports of a system without /proc (macOS): the same metrics, under the same names, as far as it has them.

Where /proc is, it isn't used and nothing is reported. The processors' clock isn't taken from it: on macOS it is a
constant.

| metric | unit | role |
| --- | --- | --- |
| `others_cpu_usage` | % of all cores | cause |
| `host_cpu_usage`, `process_cpu_usage` | %, % of one core | effect |
| `host_mem_usage`, `host_mem_available` | %, bytes | cause |
| `process_mem_rss` | bytes | effect |
| `disk_read`, `disk_write`, `net_rx_rate`, `net_tx_rate` | B/s | cause |
"""

import os
from importlib.util import find_spec
from typing import Any

from inferometer.errors import Unavailable
from inferometer.record.counters import host_cpu, host_disk, host_memory, host_network, process
from inferometer.record.counters.metric import CounterSource, HostProbe, Rates, Reading, SystemRoots

_TAKEN = ("others_cpu_usage", "host_cpu_usage", "process_cpu_usage", "host_mem_usage", "host_mem_available")
_NAMES = frozenset((*_TAKEN, "process_mem_rss", "disk_read", "disk_write", "net_rx_rate", "net_tx_rate"))
METRICS = tuple(
    metric
    for module in (host_cpu, host_memory, process, host_disk, host_network)
    for metric in module.METRICS
    if metric.name in _NAMES
)


class Portable:
    """Asks `library`, which is psutil."""

    def __init__(self, library: Any, root: int) -> None:
        self._library, self._rates = library, Rates()
        self._process = library.Process(root)

    def read(self, now_ns: int) -> Reading:
        """All of it; what this system lacks is left out."""
        found: dict[str, float | None] = {}
        self._cpu(found, now_ns)
        memory = self._library.virtual_memory()
        found |= {"host_mem_usage": 100 * (1 - memory.available / memory.total), "host_mem_available": memory.available}
        found["process_mem_rss"] = self._process.memory_info().rss
        disks = self._library.disk_io_counters()
        if disks is not None:
            self._rates.per_s(found, "disk_read", disks.read_bytes, now_ns)
            self._rates.per_s(found, "disk_write", disks.write_bytes, now_ns)
        cards = self._library.net_io_counters(pernic=True)
        used = [card for name, card in cards.items() if name not in ("lo", "lo0")]
        self._rates.per_s(found, "net_rx_rate", sum(card.bytes_recv for card in used), now_ns)
        self._rates.per_s(found, "net_tx_rate", sum(card.bytes_sent for card in used), now_ns)
        return found

    def _cpu(self, found: dict[str, float | None], now_ns: int) -> None:
        times = self._library.cpu_times()
        own = self._process.cpu_times()
        total = self._rates.grown("total", sum(times))
        idle = self._rates.grown("idle", times.idle + getattr(times, "iowait", 0.0))
        self._rates.per_s(found, "process_cpu_usage", own.user + own.system, now_ns, 100.0)
        mine = self._rates.grown("own", own.user + own.system)
        if total and idle is not None and mine is not None:
            usage = 100 * max(0.0, total - idle) / total
            found |= {"host_cpu_usage": usage, "others_cpu_usage": max(0.0, usage - 100 * mine / total)}


def _open(place: SystemRoots) -> list[HostProbe]:
    if os.path.exists(place.files.place("/proc/stat")):  # noqa: PTH110  as the files are kept: text
        return []
    if find_spec("psutil") is None:
        raise Unavailable("no /proc here, and psutil isn't installed: pip install 'inferometer[record]'")
    import psutil

    return [HostProbe(Portable(psutil, place.family.root).read)]


SOURCE = CounterSource("portable", METRICS, _open)
