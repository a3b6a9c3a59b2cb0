"""What is measured becomes a device: rates exactly as the backend has them, the rest as our data or the driver say."""

import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.hardware.clocks import Clock

from inferometer.errors import InputError, Unavailable
from inferometer.hardware import Device, Quantity, read_device
from inferometer.hardware.measure.host import Host, product_fact, read_host
from inferometer.hardware.measure.measure import Measured, encode_device, file_name, find_subject, measure_subject
from inferometer.hardware.measure.nvml import Nvml, open_nvml
from inferometer.hardware.measure.subject import Subject, Task, make_device
from inferometer.hardware.measure.timing import QUICK, Effort, Job
from inferometer.hardware.measure.torch import guarded
from inferometer.hardware.measure.torch_gpu import describe_gpu, product_facts

RATES = {
    "memory_bandwidth": 2.5e12,
    "l2_bandwidth": 6.4e12,
    "vector.fp32": 50e12,
    "matrix.bf16": 800e12,
    "matrix.int8": 1.25e15,
}
FACTS = {
    "memory": Quantity(85_018_279_936, "B", "measured", "a driver"),
    "multiprocessors": Quantity(132, "count", "measured", "a driver"),
    "graphics_clock": Quantity(1.5e9, "Hz", "measured", "a driver"),
}


def pretend(
    rates: dict[str, float] = RATES, name: str = "NVIDIA H100 80GB HBM3", launch_ns: float = 2_000.0
) -> tuple[Subject, Clock]:
    """A GPU whose calls take as long as `rates` say, and an empty launch `launch_ns` in a graph, twice that else."""
    clock = Clock()

    def rate(per_s: float) -> Sequence[Job]:
        return [clock.job(1e6, amount=per_s / 1e3)]

    def launches(effort: Effort) -> Sequence[Job]:
        return [clock.job(2 * launch_ns, how="eager"), clock.job(100 * launch_ns, amount=100, how="100 a graph replay")]

    tasks = [Task(fact, lambda effort, per_s=per_s: rate(per_s)) for fact, per_s in rates.items()]  # type: ignore[misc]
    device = make_device(FACTS, name=name, vendor="NVIDIA", arch="sm_90")
    subject = Subject("gpu:0", device, "pretorch 1.0", (*tasks, Task("launch", launches)), lambda: 1.7e9, ("Warm.",))
    return subject, clock


def measure(subject: Subject, clock: Clock) -> Measured:
    return measure_subject(subject, QUICK, clock=clock)


def test_the_file_has_exactly_the_rates_of_the_device(tmp_path: Path) -> None:
    measured = measure(*pretend())
    path = tmp_path / "mine.json"
    path.write_bytes(encode_device(measured.device))
    device = read_device(path)
    assert device == measured.device
    found = {
        fact: known for fact, known in device.quantities() if known.kind == "measured" and "--measure" in known.source
    }
    assert {fact: known.value for fact, known in found.items()} == {**RATES, "launch": 2_000}
    assert {each.fact: each.clock_hz for each in measured.measurements} == dict.fromkeys([*RATES, "launch"], 1.7e9)


def test_a_source_says_how_with_what_and_when() -> None:
    measured = measure(*pretend())
    launch = measured.device.launch
    assert launch is not None
    assert launch.source == (
        f"inferometer hardware --measure on {measured.date}: 100 a graph replay; median of 5 samples of 16; "
        "4000 ns: eager; pretorch 1.0"
    )


def test_of_a_known_device_the_rest_is_from_its_data_file() -> None:
    measured = measure(*pretend())
    device, known = measured.device, measured.known
    assert known is not None
    assert (device.name, device.aliases, device.memory, device.power) == (
        "H100 SXM", known.aliases, known.memory, known.power,
    )  # fmt: skip
    assert device.matrix["fp8"] == known.matrix["fp8"]
    assert device.notes[: len(known.notes)] == known.notes
    assert device.notes[-1] == "Warm."


def test_of_an_unknown_device_the_rest_is_from_the_driver() -> None:
    measured = measure(*pretend(name="Accelerator 9000"))
    assert measured.known is None
    assert (measured.device.name, measured.device.arch) == ("Accelerator 9000", "sm_90")
    assert measured.device.memory == FACTS["memory"]
    assert measured.device.graphics_clock == FACTS["graphics_clock"]


def test_a_part_of_a_device_is_not_taken_for_the_whole() -> None:
    subject, clock = pretend()
    facts = {**FACTS, "multiprocessors": Quantity(16, "count", "measured", "a driver")}
    part = Subject(subject.on, make_device(facts, name=subject.device.name), subject.library, subject.tasks)
    assert measure(part, clock).known is None


def test_what_a_device_lacks_is_left_out_with_the_reason() -> None:
    def refuse(effort: Effort) -> Sequence[Job]:
        raise Unavailable("no such unit")

    subject, clock = pretend(rates={"memory_bandwidth": 2e12, "l2_bandwidth": 1.9e12, "matrix.bf16": 10.0})
    tasks = (*subject.tasks, Task("matrix.fp8", refuse))
    told: list[str] = []
    measured = measure_subject(
        Subject("gpu:0", subject.device, "x 1", tasks), QUICK, clock=clock, on_fact=told.append, among=[]
    )
    assert told == ["memory_bandwidth", "l2_bandwidth", "matrix.bf16", "launch", "matrix.fp8"]
    assert [each.fact for each in measured.measurements] == ["memory_bandwidth", "launch"]
    assert measured.missing == {
        "l2_bandwidth": "no quicker than memory: 1.9e+12 of 2e+12 B/s",
        "matrix.bf16": "not believable: matrix.bf16: expected 1e+09 to 1e+18 FLOP/s, found 10: is its unit right?",
        "matrix.fp8": "no such unit",
    }
    assert measured.device.matrix == {}


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("NVIDIA H200", "nvidia-h200.json"),
        ("A/B (x) ../..", "a-b-x.json"),
        ("処理", "device.json"),
        ("a" * 300, "a" * 80 + ".json"),
    ],
)
def test_a_file_is_named_after_its_device(name: str, file: str) -> None:
    assert file_name(Subject("cpu", Device(name=name), "x", ())) == file


@pytest.mark.parametrize("on", ["tpu", "gpu:", "gpu:-1", "cuda:0", "", "cpu:0", "gpu:99999"])
def test_a_place_that_is_none_is_refused(on: str) -> None:
    with pytest.raises(InputError, match="expected cpu, gpu or gpu:1"):
        find_subject(on)


@pytest.mark.skipif(find_spec("torch") is not None, reason="torch is installed")
def test_a_gpu_needs_torch() -> None:
    with pytest.raises(Unavailable, match="torch is not installed"):
        find_subject("gpu:0")
    assert find_subject().library.startswith("numpy ")


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
def test_a_gpu_that_is_not_there_is_said_so() -> None:
    with pytest.raises(Unavailable, match="there is no gpu:99: torch"):
        find_subject("gpu:99")


def test_the_processor_at_hand_is_measured() -> None:
    """Only whether it is believable, which the device checks: how quick it is depends on what else runs."""
    measured = measure_subject(find_subject("cpu"), QUICK)
    tried = {*measured.missing, *(each.fact for each in measured.measurements)}
    assert {"memory_bandwidth", "l2_bandwidth", "launch", "vector.fp32"} <= tried
    assert {"launch", "vector.fp32"} <= {fact for fact, _ in measured.device.quantities()}
    for each in measured.measurements:
        assert each.p10 <= each.quantity.value <= each.p90
        assert each.samples >= 3
    assert measured.device.multiprocessors is not None
    assert measured.known is None


@pytest.mark.parametrize(
    ("flags", "facts"),
    [
        ("", ["vector.fp32", None, None, None]),
        ("avx512_bf16 avx512_vnni", ["vector.fp32", "vector.bf16", None, "vector.int8"]),
        ("amx_bf16 amx_int8 avx512_fp16", ["vector.fp32", "matrix.bf16", "vector.fp16", "matrix.int8"]),
        ("fp asimdhp asimddp", ["vector.fp32", None, "vector.fp16", "vector.int8"]),
    ],
)
def test_a_processor_s_products_are_of_the_units_that_it_has(flags: str, facts: list[str | None]) -> None:
    host = Host("a processor", 2, None, None, frozenset(flags.split()), {})
    assert [product_fact(host, dtype) for dtype in ("fp32", "bf16", "fp16", "int8")] == facts


def test_the_host_tells_its_cores() -> None:
    host = read_host()
    assert host.cores == host.facts["multiprocessors"].value >= 1
    assert host.name


@pytest.mark.parametrize(
    ("arch", "facts"),
    [
        ("sm_60", "vector.fp32"),
        ("sm_75", "vector.fp32 matrix.fp16 matrix.int8"),
        ("sm_80", "vector.fp32 matrix.fp16 matrix.int8 matrix.tf32 matrix.bf16"),
        ("sm_90", "vector.fp32 matrix.fp16 matrix.int8 matrix.tf32 matrix.bf16 matrix.fp8"),
        ("sm_100", "vector.fp32 matrix.fp16 matrix.int8 matrix.tf32 matrix.bf16 matrix.fp8"),
        ("gfx90a", "matrix.fp32 matrix.bf16 matrix.fp16 matrix.int8"),
        ("gfx942", "matrix.fp32 matrix.bf16 matrix.fp16 matrix.fp8 matrix.int8"),
        ("gfx1100", "vector.fp32 matrix.bf16 matrix.fp16 matrix.int8"),
        ("gfx1030", "vector.fp32"),
    ],
)
def test_a_gpu_s_products_are_of_the_units_that_it_has(arch: str, facts: str) -> None:
    assert product_facts(arch) == tuple(facts.split())


def pretend_torch(properties: dict[str, Any], *, cuda: str | None = "12.8", count: int = 1) -> SimpleNamespace:
    gpu = SimpleNamespace(
        is_available=lambda: count > 0,
        device_count=lambda: count,
        get_device_properties=lambda index: SimpleNamespace(**properties),
        mem_get_info=lambda index: (70 << 30, 80 << 30),
    )
    version = SimpleNamespace(cuda=cuda, hip=None if cuda else "6.4")
    return SimpleNamespace(__version__="2.9.0", cuda=gpu, version=version)


def test_a_gpu_is_described_by_what_torch_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    properties = {
        "name": "NVIDIA H200",
        "total_memory": 150 << 30,
        "multi_processor_count": 132,
        "L2_cache_size": 60 << 20,
        "major": 9,
        "minor": 0,
        "clock_rate": 1_980_000,
    }
    monkeypatch.setitem(sys.modules, "torch", pretend_torch(properties))
    subject = describe_gpu(0)
    assert (subject.on, subject.library, subject.device.arch) == ("gpu:0", "torch 2.9.0, CUDA 12.8", "sm_90")
    assert {fact: known.value for fact, known in subject.device.quantities()} == {
        "memory": 150 << 30,
        "l2": 60 << 20,
        "multiprocessors": 132,
        "graphics_clock": 1.98e9,
    }
    facts = [task.fact for task in subject.tasks]
    assert facts == ["memory_bandwidth", "l2_bandwidth", "launch", *product_facts("sm_90")]
    with pytest.raises(Unavailable, match=r"there is no gpu:1: torch 2\.9\.0 sees only gpu:0 to gpu:0"):
        describe_gpu(1)


def test_a_gpu_of_amd_is_described_too(monkeypatch: pytest.MonkeyPatch) -> None:
    properties = {"name": "AMD Instinct MI300X", "total_memory": 192 << 30, "multi_processor_count": 304}
    properties |= {"gcnArchName": "gfx942:sramecc+:xnack-"}
    monkeypatch.setitem(sys.modules, "torch", pretend_torch(properties, cuda=None))
    subject = describe_gpu(0)
    assert (subject.library, subject.device.vendor, subject.device.arch) == ("torch 2.9.0, ROCm 6.4", "AMD", "gfx942")
    assert subject.clock_hz() is None


def test_what_torch_refuses_is_a_reason_and_no_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(calls: int) -> float:
        raise RuntimeError("CUDA out of memory. Tried to allocate 2 GiB\nSee the documentation.")

    with pytest.raises(Unavailable, match=r"^PyTorch refuses: CUDA out of memory. Tried to allocate 2 GiB$"):
        guarded(run)(1)
    torch = pretend_torch({})
    torch.cuda.get_device_properties = run
    monkeypatch.setitem(sys.modules, "torch", torch)
    with pytest.raises(Unavailable, match="PyTorch refuses: CUDA out of memory"):
        describe_gpu(0)


class NvmlError(Exception):
    pass


def test_what_nvml_says_is_noted_and_what_it_refuses_is_not() -> None:
    def refuse(handle: object, kind: int) -> int:
        raise NvmlError

    library = SimpleNamespace(
        NVMLError=NvmlError,
        NVML_CLOCK_SM=1,
        NVML_CLOCK_GRAPHICS=0,
        NVML_CLOCK_MEM=2,
        nvmlDeviceGetClockInfo=lambda handle, kind: 1_755,
        nvmlDeviceGetMaxClockInfo=refuse,
        nvmlSystemGetDriverVersion=lambda: b"570.86",
        nvmlDeviceGetEnforcedPowerLimit=lambda handle: 500_000,
        nvmlDeviceGetUtilizationRates=lambda handle: SimpleNamespace(gpu=40),
    )
    nvml = Nvml(library, None)
    assert nvml.clock_hz() == 1.755e9
    assert nvml.greatest_clock_hz("MEM") is None
    assert nvml.remarks() == (
        "As NVML says: driver 570.86, power limit 500 W.",
        "Other work had the GPU 40 % of the time just before. Repeat it alone.",
    )
    assert open_nvml(None) is None


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed: pip install 'inferometer[torch]'")
def test_a_gpu_reaches_a_believable_part_of_its_datasheet() -> None:
    import torch

    if not torch.cuda.is_available():
        pytest.skip("no GPU here")
    measured = measure_subject(find_subject("gpu:0"), QUICK)
    assert {"memory_bandwidth", "launch"} <= {each.fact for each in measured.measurements}
    for each in measured.measurements:
        known = measured.known.quantity(each.fact) if measured.known else None
        if known is not None and each.fact != "launch":
            assert 0.3 <= each.quantity.value / known.value <= 1.05, each.fact
