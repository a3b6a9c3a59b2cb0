"""Which device a name means, and which names mean none."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import inferometer
from inferometer.errors import InputError, UnknownName
from inferometer.hardware import Device, devices, find_candidates, find_device
from inferometer.hardware.known import infer_devices, plain_name, require_device, with_own

SAMPLES = Path(__file__).resolve().parents[2] / "samples"


@pytest.mark.parametrize("device", devices(), ids=lambda device: device.name)
def test_every_name_of_a_device_finds_it_alone(device: Device) -> None:
    for name in (device.name, *device.aliases):
        assert find_device(name.replace("*", " (15.0.7, 256 bits)")) is device
    for name in device.shared_names:
        assert device in find_candidates(name.rstrip("*"))


def test_no_name_is_listed_twice() -> None:
    counts = Counter(plain_name(name) for device in devices() for name in {device.name, *device.aliases})
    names = Counter(plain_name(device.name) for device in devices())
    assert set(names.values()) == {1}
    own = Counter(plain_name(name) for device in devices() for name in device.aliases)
    assert {name for name, count in own.items() if count > 1} == set()
    spelled_as_the_name = {name for name, count in counts.items() if count > 1}
    assert spelled_as_the_name <= set(names)


@pytest.mark.parametrize(
    ("name", "device"),
    [
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA H100 NVL", "H100 NVL"),
        ("NVIDIA H200", "H200 SXM"),
        ("NVIDIA H200 NVL", "H200 NVL"),
        ("NVIDIA H20", "H20"),
        ("A100-SXM4-40GB", "A100 SXM 40GB"),
        ("NVIDIA A100-SXM4-80GB", "A100 SXM 80GB"),
        ("NVIDIA A100-PCIE-40GB", "A100 PCIe 40GB"),
        ("NVIDIA A100 80GB PCIe", "A100 PCIe 80GB"),
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA B200", "B200"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
        ("ANGLE (NVIDIA, NVIDIA GeForce RTX 4090 (0x00002684) Direct3D11 vs_5_0 ps_5_0, D3D11)", "RTX 4090"),
        ("AMD Instinct MI300X VF", "MI300X"),
        ("AMD Instinct(TM) MI355X", "MI355X"),
        ("Apple M2 Pro", "Apple M2 Pro"),
        ("m4", "Apple M4"),
        ("ANGLE (Apple, ANGLE Metal Renderer: Apple M1 Pro, Unspecified Version)", "Apple M1 Pro"),
        ("llvmpipe (LLVM 15, 256 bits)", "CPU"),
        ("google/swiftshader", "CPU"),
        ("SwiftShader Device (Subzero)", "CPU"),
        ("xpu-a", "XPU-A"),
        *[(name, None) for name in ("", "*", "NVIDIA", "GPU", "apple metal-3", "AMD Radeon Graphics", "Apple M3 Max")],
        *[(name, None) for name in ("NVIDIA H100", "NVIDIA H100 80GB HBM2e", "NVIDIA H800", "NVIDIA A100-SXM-64GB")],
        *[(name, None) for name in ("NVIDIA GeForce RTX 4090 D", "NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA L40")],
        *[(name, None) for name in ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "AMD Instinct MI300A", "gfx942", "gfx9")],
    ],
)
def test_a_name_means_one_device_or_none(name: str, device: str | None) -> None:
    found = find_device(name)
    assert (found and found.name) == device


@pytest.mark.parametrize(
    ("name", "multiprocessors", "memory_bytes", "devices"),
    [
        ("gfx942:sramecc+:xnack-", None, None, ["MI300X", "MI325X"]),
        ("gfx942:sramecc+:xnack-", 304, 206_141_652_992, ["MI300X"]),
        ("gfx90a", 110, None, ["MI250X GCD"]),
        ("gfx90a", 104, 68_702_699_520, ["MI210", "MI250 GCD"]),
        ("AMD Instinct MI250X / MI250", 104, None, ["MI250 GCD"]),
        ("Apple M3 Max", 40, None, ["Apple M3 Max 40-core"]),
        ("AMD Instinct MI300X", 304, 205_571_227_648, ["MI300X"]),
        ("AMD Instinct MI300X", 38, 25_769_803_776, []),  # one of eight partitions
        ("NVIDIA H100 80GB HBM3", 132, 85_018_279_936, ["H100 SXM"]),
        ("NVIDIA H100 80GB HBM3", 114, None, []),
        ("NVIDIA B200", 148, 182_631 * 2**20, ["B200"]),
    ],
)
def test_multiprocessors_and_memory_tell_devices_apart(
    name: str, multiprocessors: int | None, memory_bytes: int | None, devices: list[str]
) -> None:
    found = find_candidates(name, multiprocessors=multiprocessors, memory_bytes=memory_bytes)
    assert [device.name for device in found] == devices


@pytest.mark.parametrize(
    ("file", "device"),
    [
        ("a100_simple_add.json.gz", "A100 SXM 40GB"),
        ("triton_example.json.gz", "A100 SXM 40GB"),
        ("h100_qwen1.5-0.5b.json.gz", "H100 SXM"),
        ("mi300_qwen1.5-0.5b.json.gz", "MI300X"),
        ("mi300_sglang_qwen3-8b_decode.json.gz", "MI300X"),
        ("mi250_minitoy.json.gz", None),  # "AMD Radeon Graphics": an MI210, or a die of an MI250
    ],
)
def test_the_devices_of_real_captures_are_found(shared_data: Path, file: str, device: str | None) -> None:
    assert known_devices(shared_data / "traces" / "kineto" / file) == {device}


@pytest.mark.parametrize("file", ["decode.json.gz", "nsys.sqlite.gz"])
def test_the_devices_of_the_samples_are_found(file: str) -> None:
    assert known_devices(SAMPLES / file) == {"H100 SXM"}


def known_devices(path: Path) -> set[str | None]:
    found: set[str | None] = set()
    for traced in inferometer.open(path, set()).facts.devices:
        device = find_device(
            traced.name or "", multiprocessors=traced.multiprocessors, memory_bytes=traced.memory_bytes
        )
        found.add(device.name if device else None)
    return found


def test_a_name_of_a_user_is_found_or_refused_with_what_to_write() -> None:
    assert require_device("h100 sxm").name == "H100 SXM"
    with pytest.raises(InputError, match=r'"A100" may be several devices: A100 PCIe 40GB, .*, A100 SXM 80GB'):
        require_device("A100")
    with pytest.raises(UnknownName) as refused:
        require_device("MI300Y")
    assert refused.value.known[0] == "MI300X"


def test_a_device_of_the_user_comes_first_and_takes_the_place_of_ours() -> None:
    own = Device(name="bench node", aliases=("NVIDIA H100 80GB HBM3",))
    known = with_own(own)
    assert known[0] is own
    assert len(known) == len(devices())
    assert find_device("NVIDIA H100 80GB HBM3", among=known) is own
    assert find_device("H100 PCIe", among=known) is find_device("H100 PCIe")


@pytest.mark.parametrize(
    ("told", "names"),
    [
        ({"multiprocessors": 304, "compute_capability": "9.4", "memory_bytes": 206_141_652_992}, ["MI300X"]),
        ({"multiprocessors": 304, "compute_capability": "9.4"}, ["MI300X", "MI325X"]),
        ({"multiprocessors": 256, "compute_capability": "9.5", "warp_size": 64}, ["MI350X", "MI355X"]),
        ({"multiprocessors": 148, "compute_capability": "10.0", "warp_size": 32}, ["B200"]),
        ({"multiprocessors": 304, "compute_capability": "9.0"}, []),  # another generation
        ({"multiprocessors": 304, "compute_capability": "9.4", "warp_size": 32}, []),
        ({"multiprocessors": 38, "compute_capability": "9.4"}, []),  # a part of one
        ({"multiprocessors": 304}, []),  # one property is no likeness
        ({"multiprocessors": None, "compute_capability": "9.4"}, []),
    ],
)
def test_a_device_without_a_name_is_like_those_with_its_properties(told: dict[str, Any], names: list[str]) -> None:
    assert [device.name for device in infer_devices(**told)] == names
