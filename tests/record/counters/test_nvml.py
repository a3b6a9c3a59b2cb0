"""What a pretended NVML says through the sources of GPUs, and how torch numbers them."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from tests.hardware.measure.test_nvml import pretend as pretend_nvml
from tests.hardware.measure.test_nvml import refuse
from tests.record.counters.pretended import pretend
from tests.record.sinks import MemorySink

from inferometer.errors import Unavailable
from inferometer.hardware.measure.nvml import Nvml
from inferometer.record.counters import nvml, nvml_slow
from inferometer.record.counters.gpus import Numbering, visible
from inferometer.record.counters.metric import SystemRoots
from inferometer.record.counters.sampler import CounterSampler
from inferometer.trace.facts import Device

UUIDS = ["GPU-aa11", "GPU-ab22", "GPU-cc33"]


def one_gpu(i: int = 0, mask: int = 0, **others: Any) -> Nvml:
    def links(handle: object, fields: list[tuple[int, int]]) -> list[SimpleNamespace]:
        return [SimpleNamespace(nvmlReturn=0, value=SimpleNamespace(ullVal=field * 4)) for field, _ in fields]

    known: dict[str, Any] = {
        "NVML_PCIE_UTIL_TX_BYTES": 0,
        "NVML_PCIE_UTIL_RX_BYTES": 1,
        "NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX": 138,
        "NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX": 139,
        "nvmlDeviceGetName": lambda handle: b"NVIDIA H100 80GB HBM3",
        "nvmlDeviceGetUUID": lambda handle: UUIDS[i],
        "nvmlDeviceGetUtilizationRates": lambda handle: SimpleNamespace(gpu=83, memory=40),
        "nvmlDeviceGetMemoryInfo": lambda handle: SimpleNamespace(used=5 << 30, total=80 << 30),
        "nvmlDeviceGetPcieThroughput": lambda handle, kind: (2_000, 3_000)[kind],
        "nvmlDeviceGetFieldValues": links,
        "nvmlDeviceGetComputeRunningProcesses": lambda handle: [
            SimpleNamespace(pid=7, usedGpuMemory=1 << 30),
            SimpleNamespace(pid=99, usedGpuMemory=None),
        ],
        "nvmlDeviceGetProcessUtilization": lambda handle, since: [
            SimpleNamespace(pid=pid, smUtil=util, timeStamp=stamp)
            for pid, util, stamp in ((7, 20, 100), (7, 40, 200), (99, 50, 300))
            if stamp > since
        ],
    }
    return pretend_nvml(mask, **(known | others))


def place_of(root: Path, *gpus: Nvml, **environ: str) -> tuple[SystemRoots, list[str]]:
    place, lacking = pretend(root)
    return replace(place, gpus=lambda: list(gpus), environ=environ), lacking


def test_a_gpu_at_work(tmp_path: Path) -> None:
    place, lacking = place_of(tmp_path, one_gpu(mask=0x44))
    (gpu,) = nvml.SOURCE.open(place)
    assert gpu.device == "gpu:0"
    found = gpu.read(0)
    assert found == {
        "gpu_sm_frequency": 1_755,
        "gpu_mem_frequency": 2_619,
        "gpu_temperature": 61,
        "gpu_power": 412.345,
        "gpu_idle": 0,
        "gpu_throttle_sw_power_cap": 1,
        "gpu_throttle_hw_slowdown": 0,
        "gpu_throttle_hw_thermal": 1,
        "gpu_throttle_power_brake": 0,
        "gpu_throttle_sw_thermal": 0,
        "gpu_throttle_other": 0,
        "gpu_usage": 83,
        "gpu_mem_bandwidth_usage": 40,
        "gpu_mem_used": 5 << 30,
    }
    assert {"gpu_link_transmit": 0, "gpu_link_receive": 0}.items() <= gpu.read(10).items()
    assert lacking == []


def test_the_recording_knows_its_gpus_and_what_a_profiler_said_stays(tmp_path: Path) -> None:
    sink = MemorySink()
    sink.facts = msgspec.structs.replace(sink.facts, devices=(Device("gpu:0", name="said before"),))
    place, _ = place_of(tmp_path, one_gpu(0), one_gpu(1), one_gpu(2), CUDA_VISIBLE_DEVICES="2,0")
    (lane,) = CounterSampler(sink, sources=[nvml.SOURCE], place=place).make_lanes()
    lane.open()
    known = Device("gpu:1", name="NVIDIA H100 80GB HBM3", memory_bytes=80 << 30)
    assert sink.facts.devices == (Device("gpu:0", name="said before"), known)


def test_links_are_rates_of_kib() -> None:
    assert one_gpu().link_bytes() == (138 * 4 * 1024, 139 * 4 * 1024)
    assert one_gpu(nvmlDeviceGetFieldValues=lambda handle, fields: [SimpleNamespace(nvmlReturn=3)]).link_bytes() is None


def test_an_idle_gpu_tells_no_clocks_and_no_reasons(tmp_path: Path) -> None:
    (gpu,) = nvml.SOURCE.open(place_of(tmp_path, one_gpu(mask=0x1))[0])
    found = gpu.read(0)
    assert found["gpu_idle"] == 1
    assert not [metric for metric in found if "frequency" in metric or "throttle" in metric]


def test_what_a_driver_refuses_is_said_once_for_all(tmp_path: Path) -> None:
    gpu = one_gpu(nvmlDeviceGetPowerUsage=refuse, nvmlDeviceGetFieldValues=refuse, nvmlDeviceGetPcieThroughput=refuse)
    place, lacking = place_of(tmp_path, gpu)
    (probe,), (slow,) = nvml.SOURCE.open(place), nvml_slow.SOURCE.open(place)
    assert "gpu_power" not in probe.read(0)
    assert "gpu_pcie_transmit" not in slow.read(0)
    assert lacking == ["nvml: gpu:0 doesn't tell power, NVLink traffic", "nvml: gpu:0 doesn't tell PCIe traffic"]


def test_traffic_and_processes(tmp_path: Path) -> None:
    place, lacking = place_of(tmp_path, one_gpu())
    (gpu,) = nvml_slow.SOURCE.open(place)
    assert gpu.read(0) == {
        "gpu_pcie_transmit": 2e6,
        "gpu_pcie_receive": 3e6,
        "others_gpu_processes": 1,
        "process_gpu_mem_usage": 1 << 30,
        "process_gpu_usage": 30,
    }
    assert "process_gpu_usage" not in gpu.read(10)  # no sample since
    assert lacking == []


def test_processes_of_another_numbering_are_not_taken_for_others(tmp_path: Path) -> None:
    theirs = one_gpu(nvmlDeviceGetComputeRunningProcesses=lambda handle: [SimpleNamespace(pid=5_007, usedGpuMemory=1)])
    place, lacking = place_of(tmp_path, theirs)
    (gpu,) = nvml_slow.SOURCE.open(place)
    assert gpu.read(0).keys() == {"gpu_pcie_transmit", "gpu_pcie_receive"}
    assert lacking == ["nvml: none of the 1 processes on gpu:0 has an id of ours"]


def test_without_nvml_one_source_says_so(tmp_path: Path) -> None:
    place, _ = pretend(tmp_path)
    with pytest.raises(Unavailable, match="there is no GPU"):
        nvml.SOURCE.open(place)
    assert nvml_slow.SOURCE.open(place) == []


@pytest.mark.parametrize(
    ("variable", "seen"),
    [
        (None, [0, 1, 2]),
        ("", []),
        ("2,0", [2, 0]),
        (" 1 , 7, 0", [1]),
        ("-1,0", []),
        ("GPU-ab,GPU-cc33", [1, 2]),
        ("GPU-a", []),
        ("0,0", [0]),
        ("MIG-1/2/3", []),
    ],
)
def test_what_the_variable_makes_visible(variable: str | None, seen: list[int]) -> None:
    assert visible(UUIDS, variable) == [UUIDS[i] for i in seen]


def test_gpus_that_the_process_cannot_see_are_left_out(tmp_path: Path) -> None:
    place, _ = place_of(tmp_path, one_gpu(0), one_gpu(1), one_gpu(2), CUDA_VISIBLE_DEVICES="2,0")
    probes = nvml.SOURCE.open(place)
    assert [probe.device for probe in probes] == ["gpu:1", None, "gpu:0"]
    assert probes[1].read(0) == {}


def test_torch_says_the_order_once_it_uses_cuda() -> None:
    started: list[bool] = []
    cuda = SimpleNamespace(
        is_initialized=lambda: bool(started),
        device_count=lambda: 2,
        get_device_properties=lambda i: SimpleNamespace(uuid=("cc33", "aa11")[i]),
    )
    numbering = Numbering(UUIDS, {}, lambda: SimpleNamespace(cuda=cuda))
    assert [numbering.device_of(uuid) for uuid in UUIDS] == ["gpu:0", "gpu:1", "gpu:2"]
    started.append(True)
    assert [numbering.device_of(uuid) for uuid in UUIDS] == ["gpu:1", None, "gpu:0"]
