"""What NVML takes long to tell of a GPU: PCIe traffic, and which processes have how much of it.

Source: NVML API reference. The driver measures PCIe for 20 ms at each of two calls, so all this is read once a second,
by a thread of its own. A process is recognised by its id on the machine: in a container with ids of its own, none of
them is ours, and the `process_` metrics are left out.

| metric | unit | role |
| --- | --- | --- |
| `gpu_pcie_transmit`, `gpu_pcie_receive` | B/s, of 20 ms per second | cause |
| `process_gpu_usage` | % of the time | effect; compare takes it off `gpu_usage` |
| `process_gpu_mem_usage` | bytes | effect |
| `others_gpu_processes` | processes | context |
"""

from collections.abc import Sequence
from dataclasses import dataclass

from inferometer.errors import Unavailable
from inferometer.record.counters.gpus import NumberedGpu
from inferometer.record.counters.metric import CounterSource, Metric, Reading, SystemRoots
from inferometer.record.counters.nvml import find_gpus

METRICS = (
    Metric("gpu_pcie_transmit", "B/s", "Sent over PCIe, of any process.", "cause"),
    Metric("gpu_pcie_receive", "B/s", "Received over PCIe, of any process.", "cause"),
    Metric("process_gpu_usage", "%", "Time in which they had multiprocessors busy.", "effect", own=True),
    Metric("process_gpu_mem_usage", "bytes", "Device memory of the recorded processes.", "effect", own=True),
    Metric("others_gpu_processes", "processes", "Others that compute on the GPU.", "context"),
)


@dataclass
class SlowGpu(NumberedGpu):
    """One GPU as a probe of the metrics above."""

    place: SystemRoots
    _since_us: int = 0
    _has_own: bool = False

    def read(self, now_ns: int) -> Reading:
        """Values that the driver reports."""
        if self.device is None:
            return {}
        sent, received = self.nvml.pcie_bytes_per_s()
        traffic = {"gpu_pcie_transmit": sent, "gpu_pcie_receive": received}
        found: dict[str, float | None] = {metric: rate for metric, rate in traffic.items() if rate is not None}
        self._processes(found)
        return found

    def _processes(self, found: dict[str, float | None]) -> None:
        sizes, own = self.nvml.process_bytes(), set(self.place.family.members)
        if sizes is None:
            return
        ours = own & sizes.keys()
        self._has_own |= bool(ours)
        if sizes and not ours and not self._has_own:
            self.place.lack(f"nvml: none of the {len(sizes)} processes on {self.device} has an id of ours")
            return
        found["others_gpu_processes"] = len(sizes) - len(ours)
        known = [size for process in ours if (size := sizes[process]) is not None]
        if known:
            found["process_gpu_mem_usage"] = sum(known)
        usage = self.nvml.process_usage(self._since_us)
        if usage is not None and self._has_own:
            found["process_gpu_usage"] = sum(percent for process, percent in usage[0].items() if process in own)
            self._since_us = usage[1]


def _open(place: SystemRoots) -> Sequence[SlowGpu]:
    try:
        gpus = find_gpus(place)
    except Unavailable:  # `nvml.py` says so
        return []
    found = []
    for nvml, uuid, numbering in gpus:
        gpu = SlowGpu(nvml, uuid, numbering, place)
        if nvml.pcie_bytes_per_s() == (None, None):
            place.lack(f"nvml: {gpu.device or uuid} doesn't tell PCIe traffic")
        if nvml.process_bytes() is None:
            place.lack(f"nvml: {gpu.device or uuid} doesn't tell its processes")
        found.append(gpu)
    return found


SOURCE = CounterSource("nvml_slow", METRICS, _open, most_hz=1.0, is_slow=True)
