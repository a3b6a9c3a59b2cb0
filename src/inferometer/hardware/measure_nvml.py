"""What NVIDIA's management library says of a GPU: clocks, power, temperature, throttling, who has it.

Only where nvidia-ml-py is installed. Source: NVML API reference (device queries, clocks event reasons). Nothing is set,
only read.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from operator import methodcaller
from typing import Any

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
    """A GPU at a moment; None: the driver doesn't tell.

    Attributes:
        sm_clock_hz: Of the multiprocessors.
        memory_clock_hz: Of the memory.
        temperature_c: Of the chip.
        power_w: Drawn by the board, on most GPUs an average over a second.
        energy_j: Since the driver was loaded.
        reasons: Why clocks are lower than they could be, in words; clocks that were set, or idle ones, are no reason.
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
    """One GPU; each question has the answer None where the driver doesn't tell."""

    library: Any
    handle: Any

    def clock_hz(self) -> float | None:
        """Of the multiprocessors, now."""
        clock = self._ask(lambda nvml: nvml.nvmlDeviceGetClockInfo(self.handle, nvml.NVML_CLOCK_SM))
        return None if clock is None else clock * 1e6

    def greatest_clock_hz(self, kind: str) -> float | None:
        """The highest of `GRAPHICS` or `MEM`."""
        clock = self._ask(lambda nvml: nvml.nvmlDeviceGetMaxClockInfo(self.handle, getattr(nvml, f"NVML_CLOCK_{kind}")))
        return None if clock is None else clock * 1e6

    def driver(self) -> str | None:
        """Its version."""
        found = self._ask(lambda nvml: nvml.nvmlSystemGetDriverVersion())
        return found.decode() if isinstance(found, bytes) else found

    def remarks(self) -> tuple[str, ...]:
        """Driver and power limit, which a rate depends on, and whether other work has the GPU."""
        driver = self.driver()
        limit_mw = self._ask(lambda nvml: nvml.nvmlDeviceGetEnforcedPowerLimit(self.handle))
        used = self._ask(lambda nvml: nvml.nvmlDeviceGetUtilizationRates(self.handle).gpu)
        parts = [
            None if driver is None else f"driver {driver}",
            None if limit_mw is None else f"power limit {limit_mw / 1000:g} W",
        ]
        told = ", ".join(part for part in parts if part)
        lines = [f"As NVML says: {told}."] if told else []
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
        """Of a reason; 0 where this version of the package has none of that name."""
        return next((int(found) for each in _PREFIXES if (found := getattr(self.library, each + end, None))), 0)

    def _ask(self, question: Callable[[Any], Any]) -> Any:
        try:
            return question(self.library)
        except (self.library.NVMLError, AttributeError):  # not supported, not allowed here, or of another version
            return None


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
