"""Traffic of the network: bytes of all interfaces but the loopback.

Source: /proc/net/dev (proc(5)), of this network namespace. Where some interfaces are hardware
(/sys/class/net/*/device), only these count: bridges and their ends carry the same bytes again. Whose traffic it is
isn't known. RDMA passes by it.

| metric | unit | role |
| --- | --- | --- |
| `net_rx_rate`, `net_tx_rate` | B/s | cause |
"""

import os

from inferometer.errors import Unavailable
from inferometer.record.counters.metric import CounterSource, HostProbe, Metric, Rates, Reading, SystemRoots

METRICS = (
    Metric("net_rx_rate", "B/s", "Received.", "cause"),
    Metric("net_tx_rate", "B/s", "Sent.", "cause"),
)


class _Network:
    def __init__(self, place: SystemRoots) -> None:
        self._files, self._rates = place.files, Rates()
        self._is_hardware: dict[str, bool] = {}

    def read(self, now_ns: int) -> Reading:
        counts = self._counts()
        hardware = [name for name in counts if self._has_device(name)]
        used = hardware or list(counts)
        found: dict[str, float | None] = {}
        for i, metric in enumerate(("net_rx_rate", "net_tx_rate")):
            if used:
                self._rates.per_s(found, metric, sum(counts[name][i] for name in used), now_ns)
        return found

    def _counts(self) -> dict[str, tuple[int, int]]:
        found = {}
        for line in self._files.read("/proc/net/dev").splitlines()[2:]:
            name, _, numbers = line.partition(":")
            fields = numbers.split()
            if name.strip() != "lo" and len(fields) > 8:
                found[name.strip()] = int(fields[0]), int(fields[8])
        return found

    def _has_device(self, name: str) -> bool:
        if name not in self._is_hardware:
            self._is_hardware[name] = os.path.exists(self._files.place(f"/sys/class/net/{name}/device"))  # noqa: PTH110
        return self._is_hardware[name]


def _open(place: SystemRoots) -> list[HostProbe]:
    network = _Network(place)
    network.read(0)
    if not network._counts():
        raise Unavailable("no interface but the loopback in /proc/net/dev")
    return [HostProbe(_Network(place).read)]


SOURCE = CounterSource("host_network", METRICS, _open, most_hz=5.0)
