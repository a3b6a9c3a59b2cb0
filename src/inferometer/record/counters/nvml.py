"""NVIDIA GPUs by NVML: clocks, reasons of throttling, power, temperature, use, memory, NVLink.

Source: NVML API reference. Each call takes some microseconds. An idle GPU lowers its clocks by itself: then they, and
reasons, aren't known, and `gpu_idle` is 1. Utilisation is the driver's own mean over 1/6 to 1 s. What takes long is in
`nvml_slow.py`. GPUs that the recorded process can't see are left out; MIG parts are reported as the whole GPU.

| metric | unit | role |
| --- | --- | --- |
| `gpu_sm_frequency` | MHz | cause |
| `gpu_mem_frequency` | MHz | cause |
| `gpu_throttle_*`, one a reason | 0 or 1 | cause; the power cap, at which many GPUs run, context |
| `gpu_temperature` | °C | cause |
| `gpu_mem_used` | bytes | cause |
| `gpu_link_transmit`, `gpu_link_receive` | B/s | cause |
| `gpu_power` | W | effect |
| `gpu_usage` | % | effect; compare makes the load by others of it |
| `gpu_mem_bandwidth_usage` | % of the time | context |
| `gpu_idle` | 0 or 1 | context |
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from inferometer.errors import Unavailable
from inferometer.hardware.measure.nvml import POWER_CAP, GpuState, Nvml
from inferometer.record.counters.gpus import NumberedGpu, Numbering
from inferometer.record.counters.metric import CounterSource, Metric, Rates, Reading, SystemRoots
from inferometer.trace.facts import Device

_REASONS = {
    POWER_CAP: "gpu_throttle_sw_power_cap",
    "HW slowdown": "gpu_throttle_hw_slowdown",
    "HW thermal": "gpu_throttle_hw_thermal",
    "power brake": "gpu_throttle_power_brake",
    "SW thermal": "gpu_throttle_sw_thermal",
}
METRICS = (
    Metric("gpu_sm_frequency", "MHz", "Clock of the multiprocessors, where they aren't idle.", "cause"),
    Metric("gpu_mem_frequency", "MHz", "Clock of the memory, where the GPU isn't idle.", "cause"),
    *(
        Metric(name, "fraction", f"1 while {reason} holds clocks down.", "context" if reason == POWER_CAP else "cause")
        for reason, name in _REASONS.items()
    ),
    Metric("gpu_throttle_other", "fraction", "1 while another reason does.", "cause"),
    Metric("gpu_temperature", "°C", "Of the chip.", "cause"),
    Metric("gpu_mem_used", "bytes", "Memory in use by all processes.", "cause"),
    Metric("gpu_link_transmit", "B/s", "Data sent over all NVLinks.", "cause"),
    Metric("gpu_link_receive", "B/s", "Data received over all NVLinks.", "cause"),
    Metric("gpu_power", "W", "Drawn by the board; on most GPUs an average over a second.", "effect"),
    Metric("gpu_usage", "%", "Time in which a kernel ran, of any process.", "effect"),
    Metric("gpu_mem_bandwidth_usage", "%", "Time in which device memory was read or written.", "context"),
    Metric("gpu_idle", "fraction", "1 while nothing runs on it.", "context"),
)


@dataclass
class Gpu(NumberedGpu):
    """One GPU as a probe of the metrics above."""

    has_links: bool = False
    _rates: Rates = field(default_factory=Rates)

    def read(self, now_ns: int) -> Reading:
        """Values that the driver reports."""
        if self.device is None:
            return {}
        found = _of_state(self.nvml.state())
        usage, memory = self.nvml.usage(), self.nvml.memory_bytes()
        if usage is not None:
            found |= {"gpu_usage": usage[0], "gpu_mem_bandwidth_usage": usage[1]}
        if memory is not None:
            found["gpu_mem_used"] = memory[0]
        links = self.nvml.link_bytes() if self.has_links else None
        for metric, count in zip(("gpu_link_transmit", "gpu_link_receive"), links or (), strict=False):
            self._rates.per_s(found, metric, count, now_ns)
        return found


def _of_state(state: GpuState) -> dict[str, float | None]:
    stated: dict[str, float | None] = {"gpu_temperature": state.temperature_c, "gpu_power": state.power_w}
    if state.is_idle is not None:
        stated["gpu_idle"] = float(state.is_idle)
    if not state.is_idle:
        for metric, clock_hz in (("gpu_sm_frequency", state.sm_clock_hz), ("gpu_mem_frequency", state.memory_clock_hz)):
            stated[metric] = None if clock_hz is None else clock_hz / 1e6
        if state.reasons is not None:
            stated |= {name: float(reason in state.reasons) for reason, name in _REASONS.items()}
            stated["gpu_throttle_other"] = float(bool(state.reasons - _REASONS.keys()))
    return {metric: value for metric, value in stated.items() if value is not None}


def find_gpus(place: SystemRoots) -> list[tuple[Nvml, str, Numbering]]:
    """Each GPU with its UUID. Raises `Unavailable` where there is none."""
    known = [(nvml, uuid) for nvml in place.gpus() if (uuid := nvml.uuid()) is not None]
    if not known:
        raise Unavailable("NVML tells no UUID of a GPU")
    numbering = Numbering([uuid for _, uuid in known], place.environ)
    return [(nvml, uuid, numbering) for nvml, uuid in known]


def _open(place: SystemRoots) -> Sequence[Gpu]:
    found = []
    for nvml, uuid, numbering in find_gpus(place):
        gpu = Gpu(nvml, uuid, numbering, has_links=nvml.link_bytes() is not None)
        _say_what_lacks(gpu, place)
        memory = nvml.memory_bytes()
        if gpu.device is not None:
            place.know(Device(gpu.device, name=nvml.name(), memory_bytes=None if memory is None else memory[1]))
        found.append(gpu)
    return found


def _say_what_lacks(gpu: Gpu, place: SystemRoots) -> None:
    state = gpu.nvml.state()
    asked = {
        "clocks": state.sm_clock_hz,
        "reasons of throttling": state.reasons,
        "power": state.power_w,
        "temperature": state.temperature_c,
        "utilisation": gpu.nvml.usage(),
        "memory": gpu.nvml.memory_bytes(),
        "NVLink traffic": gpu.has_links or None,
    }
    lacking = [name for name, value in asked.items() if value is None]
    if lacking:
        place.lack(f"nvml: {gpu.device or gpu.uuid} doesn't tell {', '.join(lacking)}")


SOURCE = CounterSource("nvml", METRICS, _open, most_hz=100.0)
