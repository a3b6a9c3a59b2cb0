"""What a pretended NVML says, in units and words, with the names of older and newer versions of it."""

from types import SimpleNamespace
from typing import Any

import pytest

from inferometer.errors import Unavailable
from inferometer.hardware.measure.nvml import GpuState, Nvml, list_gpus

REASONS = {
    "GpuIdle": 0x1,
    "ApplicationsClocksSetting": 0x2,
    "SwPowerCap": 0x4,
    "HwSlowdown": 0x8,
    "SyncBoost": 0x10,
    "SwThermalSlowdown": 0x20,
    "HwThermalSlowdown": 0x40,
    "HwPowerBrakeSlowdown": 0x80,
    "DisplayClockSetting": 0x100,
}
NEW, OLD = "Event", "Throttle"


class NvmlError(Exception):
    pass


def refuse(*args: object) -> int:
    raise NvmlError


def pretend(mask: int = 0, *, word: str = NEW, **others: Any) -> Nvml:
    clocks = {1: 1_755, 2: 2_619}
    known: dict[str, Any] = {
        "NVMLError": NvmlError,
        "NVML_CLOCK_SM": 1,
        "NVML_CLOCK_MEM": 2,
        "NVML_TEMPERATURE_GPU": 0,
        "nvmlDeviceGetClockInfo": lambda handle, kind: clocks[kind],
        "nvmlDeviceGetTemperature": lambda handle, sensor: 61,
        "nvmlDeviceGetPowerUsage": lambda handle: 412_345,
        "nvmlDeviceGetTotalEnergyConsumption": lambda handle: 5_000_500,
        f"nvmlDeviceGetCurrentClocks{word}Reasons": lambda handle: mask,
        "nvmlDeviceGetComputeRunningProcesses": lambda handle: [SimpleNamespace(pid=41), SimpleNamespace(pid=42)],
        **{f"nvmlClocks{word}Reason{end}": bit for end, bit in REASONS.items()},
    }
    return Nvml(SimpleNamespace(**known | others), None)


def test_a_state_is_in_base_units() -> None:
    assert pretend().state() == GpuState(
        sm_clock_hz=1.755e9,
        memory_clock_hz=2.619e9,
        temperature_c=61,
        power_w=412.345,
        energy_j=5_000.5,
        reasons=frozenset(),
        is_idle=False,
    )


@pytest.mark.parametrize("word", [NEW, OLD])
@pytest.mark.parametrize(
    ("mask", "reasons"),
    [
        (0x4, {"SW power cap"}),
        (0x48, {"HW slowdown", "HW thermal"}),
        (0x88, {"HW slowdown", "power brake"}),
        (0x20, {"SW thermal"}),
        (0x1 | 0x2 | 0x10 | 0x100, set()),
        (0x2 | 0x200, {"reason 0x200"}),
    ],
)
def test_reasons_are_words_and_settings_are_none(mask: int, reasons: set[str], word: str) -> None:
    assert pretend(mask, word=word).state().reasons == frozenset(reasons)


def test_an_idle_gpu_says_so() -> None:
    assert pretend(0x1).state().is_idle is True
    assert pretend(0x4).state().is_idle is False


def test_a_new_package_on_an_old_driver_asks_by_the_older_name() -> None:
    nvml = pretend(
        nvmlDeviceGetCurrentClocksEventReasons=refuse,
        nvmlDeviceGetCurrentClocksThrottleReasons=lambda handle: 0x20,
    )
    assert nvml.state().reasons == frozenset({"SW thermal"})


def test_what_it_refuses_or_has_no_name_for_is_unknown() -> None:
    refused = pretend(
        nvmlDeviceGetClockInfo=refuse,
        nvmlDeviceGetTemperature=refuse,
        nvmlDeviceGetPowerUsage=refuse,
        nvmlDeviceGetCurrentClocksEventReasons=refuse,
    )
    del refused.library.nvmlDeviceGetTotalEnergyConsumption
    assert refused.state() == GpuState(None, None, None, None, None, None, None)
    assert pretend(nvmlDeviceGetComputeRunningProcesses=refuse).processes() is None


def test_processes_are_their_ids() -> None:
    assert pretend().processes() == frozenset({41, 42})


def test_use_memory_and_traffic_in_base_units() -> None:
    nvml = pretend(
        NVML_PCIE_UTIL_TX_BYTES=0,
        NVML_PCIE_UTIL_RX_BYTES=1,
        nvmlDeviceGetPcieThroughput=lambda handle, kind: (2, 3)[kind],
        nvmlDeviceGetUtilizationRates=lambda handle: SimpleNamespace(gpu=7, memory=5),
        nvmlDeviceGetMemoryInfo=lambda handle: SimpleNamespace(used=1, total=2),
        nvmlDeviceGetUUID=lambda handle: b"GPU-aa",
        nvmlDeviceGetName=lambda handle: "H100",
    )
    assert nvml.usage() == (7, 5)
    assert nvml.memory_bytes() == (1, 2)
    assert nvml.pcie_bytes_per_s() == (2_000, 3_000)
    assert (nvml.uuid(), nvml.name()) == ("GPU-aa", "H100")
    assert pretend().usage() is None
    assert pretend().pcie_bytes_per_s() == (None, None)
    assert pretend().link_bytes() is None


def test_use_by_process_is_of_later_samples() -> None:
    samples = [SimpleNamespace(pid=41, smUtil=20, timeStamp=5), SimpleNamespace(pid=41, smUtil=40, timeStamp=9)]
    nvml = pretend(
        nvmlDeviceGetProcessUtilization=lambda handle, since: [one for one in samples if one.timeStamp > since],
        nvmlDeviceGetComputeRunningProcesses=lambda handle: [SimpleNamespace(pid=41, usedGpuMemory=None)],
    )
    assert nvml.process_usage(0) == ({41: 30}, 9)
    assert nvml.process_usage(9) is None
    assert nvml.process_bytes() == {41: None}


def test_all_gpus_or_why_there_is_none() -> None:
    pytest.importorskip("pynvml", reason="nvidia-ml-py isn't installed")
    try:
        uuids, why = [gpu.uuid() for gpu in list_gpus()], ""
    except Unavailable as error:
        uuids, why = [], error.message
    assert all(uuids) if uuids else "NVML" in why


def test_the_real_package_has_the_names_that_we_ask_for() -> None:
    pynvml = pytest.importorskip("pynvml", reason="nvidia-ml-py isn't installed")
    assert {end: getattr(pynvml, f"nvmlClocksEventReason{end}") for end in REASONS} == REASONS
    for name in ("Temperature", "PowerUsage", "TotalEnergyConsumption", "CurrentClocksEventReasons"):
        assert callable(getattr(pynvml, f"nvmlDeviceGet{name}"))
    for name in (
        "ComputeRunningProcesses",
        "PcieThroughput",
        "FieldValues",
        "ProcessUtilization",
        "MemoryInfo",
        "UUID",
    ):
        assert callable(getattr(pynvml, f"nvmlDeviceGet{name}"))
    assert pynvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX == 138
    assert (pynvml.NVML_PCIE_UTIL_TX_BYTES, pynvml.NVML_PCIE_UTIL_RX_BYTES) == (0, 1)
    assert issubclass(pynvml.NVMLError, Exception)
