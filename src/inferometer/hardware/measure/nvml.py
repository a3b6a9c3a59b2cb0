"""What NVIDIA's management library says of a GPU: clocks, power, temperature, throttling, who has it.

Only where nvidia-ml-py is installed. Source: NVML API reference (device queries, clocks event reasons). Nothing is set,
only read.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from operator import methodcaller
from typing import Any

from inferometer.errors import Unavailable

_BUSY = 10  # percent of the time, before we begin

POWER_CAP = "SW power cap"
_REASONS = {  # as NVML's constants end, and in words
    "SwPowerCap": POWER_CAP,
    "HwSlowdown": "HW slowdown",
    "HwThermalSlowdown": "HW thermal",
    "HwPowerBrakeSlowdown": "power brake",
    "SwThermalSlowdown": "SW thermal",
}
_IDLE = "GpuIdle"
_SETTINGS = ("ApplicationsClocksSetting", "SyncBoost", "DisplayClockSetting")  # what someone asked for: no throttling
_PREFIXES = ("nvmlClocksEventReason", "nvmlClocksThrottleReason")  # the name since driver 535, and the one before


@dataclass(frozen=True)
class GpuState:
    """A GPU at a moment; None: the driver doesn't report.

    Attributes:
        sm_clock_hz: Of the multiprocessors.
        memory_clock_hz: Of the memory.
        temperature_c: Of the chip.
        power_w: Drawn by the board, on most GPUs an average over a second.
        energy_j: Since the driver was loaded.
        reasons: Why clocks are lower than they could be; clocks that were set, or idle ones, are no reason.
        is_idle: Nothing runs on it, so its clocks mean nothing.
    """

    sm_clock_hz: float | None
    memory_clock_hz: float | None
    temperature_c: float | None
    power_w: float | None
    energy_j: float | None
    reasons: frozenset[str] | None
    is_idle: bool | None


@dataclass(frozen=True)
class Nvml:
    """One GPU; each question has the answer None where the driver doesn't report."""

    library: Any
    handle: Any

    def clock_hz(self) -> float | None:
        """Clock of the multiprocessors now."""
        clock = self._ask(lambda nvml: nvml.nvmlDeviceGetClockInfo(self.handle, nvml.NVML_CLOCK_SM))
        return None if clock is None else clock * 1e6

    def greatest_clock_hz(self, kind: str) -> float | None:
        """The highest of `GRAPHICS` or `MEM`."""
        clock = self._ask(lambda nvml: nvml.nvmlDeviceGetMaxClockInfo(self.handle, getattr(nvml, f"NVML_CLOCK_{kind}")))
        return None if clock is None else clock * 1e6

    def driver(self) -> str | None:
        """Its version."""
        return _text(self._ask(lambda nvml: nvml.nvmlSystemGetDriverVersion()))

    def remarks(self) -> tuple[str, ...]:
        """Driver and power limit, which a rate depends on, and whether other work has the GPU."""
        driver = self.driver()
        limit_mw = self._ask(lambda nvml: nvml.nvmlDeviceGetEnforcedPowerLimit(self.handle))
        used = self._ask(lambda nvml: nvml.nvmlDeviceGetUtilizationRates(self.handle).gpu)
        parts = [
            None if driver is None else f"driver {driver}",
            None if limit_mw is None else f"power limit {limit_mw / 1000:g} W",
        ]
        known = ", ".join(part for part in parts if part)
        lines = [f"As NVML says: {known}."] if known else []
        if used is not None and used > _BUSY:
            lines.append(f"Other work had the GPU {used} % of the time just before. Repeat it alone.")
        return tuple(lines)

    def state(self) -> GpuState:
        """Now."""
        memory_mhz = self._ask(lambda nvml: nvml.nvmlDeviceGetClockInfo(self.handle, nvml.NVML_CLOCK_MEM))
        power_mw = self._ask(lambda nvml: nvml.nvmlDeviceGetPowerUsage(self.handle))
        energy_mj = self._ask(lambda nvml: nvml.nvmlDeviceGetTotalEnergyConsumption(self.handle))
        mask = self._reason_mask()
        return GpuState(
            sm_clock_hz=self.clock_hz(),
            memory_clock_hz=None if memory_mhz is None else memory_mhz * 1e6,
            temperature_c=self._ask(lambda nvml: nvml.nvmlDeviceGetTemperature(self.handle, nvml.NVML_TEMPERATURE_GPU)),
            power_w=None if power_mw is None else power_mw / 1e3,
            energy_j=None if energy_mj is None else energy_mj / 1e3,
            reasons=None if mask is None else self._reasons(mask),
            is_idle=None if mask is None else bool(mask & self._bit(_IDLE)),
        )

    def processes(self) -> frozenset[int] | None:
        """Ids of those that compute on it, as the driver counts them: in a container they may differ from ours."""
        running = self._ask(lambda nvml: nvml.nvmlDeviceGetComputeRunningProcesses(self.handle))
        return None if running is None else frozenset(int(process.pid) for process in running)

    def uuid(self) -> str | None:
        """`GPU-…`, the same in every process and for CUDA."""
        return _text(self._ask(lambda nvml: nvml.nvmlDeviceGetUUID(self.handle)))

    def name(self) -> str | None:
        """Name of the product."""
        return _text(self._ask(lambda nvml: nvml.nvmlDeviceGetName(self.handle)))

    def usage(self) -> tuple[float, float] | None:
        """Percent of the last sample period (1/6 to 1 s) in which a kernel ran, and in which memory was in use."""
        rates = self._ask(lambda nvml: nvml.nvmlDeviceGetUtilizationRates(self.handle))
        return None if rates is None else (float(rates.gpu), float(rates.memory))

    def memory_bytes(self) -> tuple[int, int] | None:
        """In use, and in all."""
        found = self._ask(lambda nvml: nvml.nvmlDeviceGetMemoryInfo(self.handle))
        return None if found is None else (int(found.used), int(found.total))

    def pcie_bytes_per_s(self) -> tuple[float | None, float | None]:
        """Sent by the GPU and received by it, over the last 20 ms, for which each of the two calls waits."""
        sent = self._ask(lambda nvml: nvml.nvmlDeviceGetPcieThroughput(self.handle, nvml.NVML_PCIE_UTIL_TX_BYTES))
        received = self._ask(lambda nvml: nvml.nvmlDeviceGetPcieThroughput(self.handle, nvml.NVML_PCIE_UTIL_RX_BYTES))
        return None if sent is None else sent * 1e3, None if received is None else received * 1e3

    def link_bytes(self) -> tuple[int, int] | None:
        """Data sent and received over all NVLinks so far; None where there are none or they aren't counted."""
        values = self._ask(lambda nvml: nvml.nvmlDeviceGetFieldValues(self.handle, _link_fields(nvml)))
        if values is None or any(value.nvmlReturn for value in values):
            return None
        sent, received = (int(value.value.ullVal) << 10 for value in values)
        return sent, received

    def process_bytes(self) -> dict[int, int | None] | None:
        """Memory of each process that computes on it; of one None where the driver doesn't report."""
        running = self._ask(lambda nvml: nvml.nvmlDeviceGetComputeRunningProcesses(self.handle))
        return None if running is None else {int(one.pid): one.usedGpuMemory for one in running}

    def process_usage(self, since_us: int) -> tuple[dict[int, float], int] | None:
        """Percent of the time that each process had multiprocessors busy, of the samples later than `since_us`.

        With the latest sample's time, which is the next question's `since_us`. None where there are no such samples.
        """
        samples = self._ask(lambda nvml: nvml.nvmlDeviceGetProcessUtilization(self.handle, since_us))
        if not samples:
            return None
        by_process: dict[int, list[float]] = {}
        for sample in samples:
            by_process.setdefault(int(sample.pid), []).append(float(sample.smUtil))
        latest_us = max(int(sample.timeStamp) for sample in samples)
        return {process: sum(some) / len(some) for process, some in by_process.items()}, latest_us

    def _reason_mask(self) -> int | None:
        """By the newer function, else by the older: an old driver lacks the one, a newer package may lack the other."""
        for name in ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"):
            mask = self._ask(methodcaller(name, self.handle))
            if mask is not None:
                return int(mask)
        return None

    def _reasons(self, mask: int) -> frozenset[str]:
        named = {self._bit(end): words for end, words in _REASONS.items()}
        ignored = sum(self._bit(end) for end in (_IDLE, *_SETTINGS))
        active = [1 << place for place in range(mask.bit_length()) if mask >> place & 1]
        return frozenset(named.get(bit, f"reason 0x{bit:x}") for bit in active if not bit & ignored)

    def _bit(self, end: str) -> int:
        """The bit of a reason; 0 where this version of the package has none of that name."""
        return next((int(found) for each in _PREFIXES if (found := getattr(self.library, each + end, None))), 0)

    def _ask(self, question: Callable[[Any], Any]) -> Any:
        try:
            return question(self.library)
        except (self.library.NVMLError, AttributeError):  # not supported, not allowed here, or of another version
            return None


def list_gpus() -> list[Nvml]:
    """All GPUs of the driver, in the order of their PCI addresses.

    Raises:
        Unavailable: There is no library, no driver, or no GPU; the message says which.
    """
    if find_spec("pynvml") is None:
        raise Unavailable("nvidia-ml-py isn't installed", hint="pip install 'inferometer[record]'")
    import pynvml

    try:
        pynvml.nvmlInit()
        count = pynvml.nvmlDeviceGetCount()
        found = [Nvml(pynvml, pynvml.nvmlDeviceGetHandleByIndex(i)) for i in range(count)]
    except pynvml.NVMLError as error:
        raise Unavailable(f"NVML: {error}") from error
    if not found:
        raise Unavailable("NVML knows no GPU")
    return found


def _text(found: Any) -> str | None:
    """Older versions of the package give bytes."""
    return found.decode() if isinstance(found, bytes) else found


def _link_fields(nvml: Any) -> list[tuple[int, int]]:
    all_links = 0xFFFFFFFF
    return [(getattr(nvml, f"NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_{way}"), all_links) for way in ("TX", "RX")]


def open_nvml(uuid: str | None) -> Nvml | None:
    """The GPU with this UUID, as PyTorch gives it; None without the library, the driver, or such a GPU (a MIG part)."""
    if uuid is None or find_spec("pynvml") is None:
        return None
    import pynvml

    try:
        pynvml.nvmlInit()
        name = uuid if uuid.startswith("GPU-") else f"GPU-{uuid}"
        return Nvml(pynvml, pynvml.nvmlDeviceGetHandleByUUID(name))
    except pynvml.NVMLError:
        return None
