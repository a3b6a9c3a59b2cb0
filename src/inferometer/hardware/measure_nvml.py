"""What NVIDIA's management library says of a GPU: clocks, power limit, driver. Only where nvidia-ml-py is installed.

Source: NVML API reference (device queries). Nothing is set, only read.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

_BUSY = 10  # percent of the time, before we begin


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

    def remarks(self) -> tuple[str, ...]:
        """Driver and power limit, which a rate depends on, and whether other work has the GPU."""
        driver = self._ask(lambda nvml: nvml.nvmlSystemGetDriverVersion())
        limit_mw = self._ask(lambda nvml: nvml.nvmlDeviceGetEnforcedPowerLimit(self.handle))
        used = self._ask(lambda nvml: nvml.nvmlDeviceGetUtilizationRates(self.handle).gpu)
        parts = [
            None if driver is None else f"driver {driver.decode() if isinstance(driver, bytes) else driver}",
            None if limit_mw is None else f"power limit {limit_mw / 1000:g} W",
        ]
        told = ", ".join(part for part in parts if part)
        lines = [f"As NVML says: {told}."] if told else []
        if used is not None and used > _BUSY:
            lines.append(f"Other work had the GPU {used} % of the time just before. Repeat it alone.")
        return tuple(lines)

    def _ask(self, question: Callable[[Any], Any]) -> Any:
        try:
            return question(self.library)
        except self.library.NVMLError:  # not supported on this device, or not allowed here
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
