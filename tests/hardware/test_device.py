"""What a device is made of, and that the values of all that we have are sane and say where they are from."""

from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest

import inferometer
from inferometer.hardware import Device, Quantity, devices
from inferometer.hardware.device import facts, unit_of

ALL = pytest.mark.parametrize("device", devices(), ids=lambda device: device.name)


def quantity(value: float, unit: str) -> Quantity:
    return Quantity(value, unit, "measured", "a test")


def peak(device: Device, fact: str) -> float | None:
    known = device.quantity(fact)
    return None if known is None else known.value


@ALL
def test_every_value_says_where_it_is_from(device: Device) -> None:
    for _, known in device.quantities():
        assert len(known.source) > 10
        assert known.kind in ("datasheet", "measured", "derived")


@ALL
def test_narrower_types_are_no_slower(device: Device) -> None:
    dtypes = ("fp64", "fp32", "tf32", "bf16", "fp8", "fp6", "fp4")
    peaks = [peak(device, f"matrix.{dtype}") for dtype in dtypes]
    known = [value for value in peaks if value is not None]
    assert known == sorted(known)
    assert peak(device, "matrix.fp16") == peak(device, "matrix.bf16")
    vector, matrix = peak(device, "vector.fp32"), peak(device, "matrix.bf16")
    assert vector is None or matrix is None or vector <= matrix


@ALL
def test_values_are_of_a_plausible_size(device: Device) -> None:
    limits = {
        "memory": (16 * 2**30, 512 * 2**30),
        "memory_bandwidth": (50e9, 20e12),
        "l2": (2**20, 256 * 2**20),
        "l2_bandwidth": (100e9, 50e12),
        "l3": (2**20, 512 * 2**20),
        "multiprocessors": (4, 512),
        "graphics_clock": (1e9, 3e9),
        "memory_clock": (1e9, 11e9),
        "link": (100e9, 2e12),
        "pcie": (15e9, 130e9),
        "power": (100, 1500),
        "launch": (500, 20e3),
    }
    for fact, known in device.quantities():
        least, greatest = limits.get(fact, (1e12, 2e16))
        assert least <= known.value <= greatest, fact


@ALL
def test_bytes_of_each_flop_are_where_gpus_are(device: Device) -> None:
    """The ridge of a device with matrix units: a figure with sparsity, or off by a thousand, would leave this range."""
    flops, traffic = peak(device, "matrix.bf16"), peak(device, "memory_bandwidth")
    if flops is not None and traffic is not None:
        assert 30 <= flops / traffic <= 450


@pytest.mark.parametrize(
    ("name", "fact", "flops_a_clock", "clock_mhz"),
    [
        ("A100 SXM 40GB", "matrix.bf16", 2048, 1410),
        ("A100 SXM 40GB", "vector.fp32", 128, 1410),
        ("H100 SXM", "matrix.bf16", 4096, 1830),
        ("H100 SXM", "vector.fp32", 256, 1980),
        ("H100 PCIe", "matrix.fp8", 8192, 1620),
        ("H100 PCIe", "vector.fp32", 256, 1755),
        ("H100 NVL", "vector.fp32", 256, 1785),
        ("H200 SXM", "vector.fp32", 256, 1980),
        ("B200", "vector.fp32", 256, 1965),
        ("L40S", "matrix.bf16", 1024, 2520),
        ("RTX 4090", "matrix.bf16", 512, 2520),
        ("RTX 4090", "vector.fp32", 256, 2520),
        ("MI210", "matrix.fp16", 1024, 1700),
        ("MI250 GCD", "matrix.fp16", 1024, 1700),
        ("MI250X GCD", "vector.fp32", 128, 1700),
        ("MI300X", "matrix.fp8", 4096, 2100),
        ("MI300X", "vector.fp32", 256, 2100),
        ("MI325X", "matrix.bf16", 2048, 2100),
        ("MI350X", "matrix.bf16", 4096, 2200),
        ("MI355X", "matrix.fp4", 16384, 2400),
        ("MI355X", "vector.fp32", 256, 2400),
    ],
)
def test_peaks_are_what_the_units_do_in_a_clock(name: str, fact: str, flops_a_clock: int, clock_mhz: int) -> None:
    (device,) = [each for each in devices() if each.name == name]
    assert device.multiprocessors is not None
    expected = flops_a_clock * clock_mhz * 1e6 * device.multiprocessors.value
    assert peak(device, fact) == pytest.approx(expected, rel=0.015)  # datasheets round


@pytest.mark.parametrize(
    ("name", "bits", "transfers_a_clock"),
    [
        ("A100 SXM 40GB", 5120, 2),
        ("A100 SXM 80GB", 5120, 2),
        ("A100 PCIe 80GB", 5120, 2),
        ("H100 SXM", 5120, 2),
        ("H100 PCIe", 5120, 2),
        ("L40S", 384, 2),
        ("RTX 4090", 384, 2),
        ("MI210", 4096, 2),
        ("MI250X GCD", 4096, 2),
    ],
)
def test_bandwidths_are_what_the_memory_clock_gives(name: str, bits: int, transfers_a_clock: int) -> None:
    (device,) = [each for each in devices() if each.name == name]
    assert device.memory_clock is not None
    expected = device.memory_clock.value * transfers_a_clock * bits / 8
    assert peak(device, "memory_bandwidth") == pytest.approx(expected, rel=0.005)


def test_the_published_platforms_are_as_published() -> None:
    """The ridges that Atrex-Bench prints, FLOP/B: 37 and 74 for H20, 43.9 and 87.8 for XPU-A."""
    known = {device.name: device for device in devices()}
    for name, bf16, fp8 in (("H20", 37, 74), ("XPU-A", 43.9, 87.8)):
        traffic = peak(known[name], "memory_bandwidth")
        assert traffic is not None
        assert peak(known[name], "matrix.bf16") == pytest.approx(bf16 * traffic, rel=1e-3)
        assert peak(known[name], "matrix.fp8") == pytest.approx(fp8 * traffic, rel=1e-3)
    assert {value.kind for fact, value in known["XPU-A"].quantities() if fact != "launch"} == {"measured"}


@ALL
def test_a_launch_has_a_figure_with_its_source_or_a_reason_why_not(device: Device) -> None:
    assert (device.launch is None) == ("launch" in device.unknown)
    if device.launch is None:
        assert "--measure" in device.unknown["launch"]
    else:
        assert "at most" in device.launch.source


@pytest.mark.parametrize(
    ("name", "trace", "times"),
    [
        ("H100 SXM", "h100_qwen1.5-0.5b", 1464),
        ("MI300X", "mi300_resnet_ddp", 2993),
        ("A100 SXM 80GB", "a100_idle_64", 6075),
        ("A100 SXM 40GB", "a100_nccl", 2698),
    ],
)
def test_launches_from_traces_are_the_least_between_the_ends_of_two_kernels(
    name: str, trace: str, times: int, shared_data: Path
) -> None:
    (device,) = [each for each in devices() if each.name == name]
    lane = ("device", "rank", "stream")
    kernels = inferometer.open(shared_data / "traces" / "kineto" / f"{trace}.json.gz").launches
    kernels = kernels.filter(pl.col("kind") == "kernel").sort(*lane, "start_ns")
    end = pl.col("start_ns") + pl.col("dur_ns")
    before = end.cum_max().shift(1).over(lane)
    found = kernels.select("start_ns", end=end, before=before).filter(pl.col("start_ns") >= pl.col("before"))
    ends = found.select(pl.col("end") - pl.col("before")).collect().to_series()
    assert device.launch is not None
    assert (ends.len(), ends.min()) == (times, device.launch.value)
    assert f"the least of {times:,} times" in device.launch.source


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"unknown": {"lunch": "no"}}, 'unknown: expected names such as "launch" or "matrix.fp8", found "lunch"'),
        ({"unknown": {"launch": " "}}, "unknown.launch: expected why the value isn't given, found no text"),
        (
            {"unknown": {"power": "secret"}, "power": quantity(5, "W")},
            "unknown.power: expected no value where a reason says why there is none, found one",
        ),
    ],
)
def test_a_reason_is_of_a_value_that_is_missing(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Device(**{"name": "mine", **values})


def test_every_fact_has_one_unit() -> None:
    assert {unit_of(fact) for fact in facts()} == {"FLOP/s", "OP/s", "B", "B/s", "count", "Hz", "W", "ns"}
    assert [unit_of(fact) for fact in ("matrix.bf16", "vector.int8", "launch")] == ["FLOP/s", "OP/s", "ns"]


def test_a_device_lists_its_values_in_one_order() -> None:
    device = Device(
        name="mine", vector={"fp32": quantity(1e12, "FLOP/s")}, memory=quantity(2**30, "B"), power=quantity(5, "W")
    )
    assert [fact for fact, _ in device.quantities()] == ["vector.fp32", "memory", "power"]
    assert [fact for fact in facts() if device.quantity(fact)] == ["vector.fp32", "memory", "power"]
    assert device.quantity("matrix.bf16") is None


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"memory_bandwidth": quantity(3350, "GB/s")}, 'memory_bandwidth: expected the unit "B/s", found "GB/s"'),
        ({"memory_bandwidth": quantity(3350, "B/s")}, "memory_bandwidth: expected 1e+09 to 1e+15 B/s, found 3350"),
        ({"matrix": {"bf16": quantity(989.4, "FLOP/s")}}, "matrix.bf16: expected 1e+09 to 1e+18 FLOP/s, found 989.4"),
        ({"matrix": {"int8": quantity(1e12, "FLOP/s")}}, 'matrix.int8: expected the unit "OP/s"'),
        ({"name": " "}, "name: expected text, found none"),
    ],
)
def test_a_unit_that_cannot_be_meant_is_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("+", r"\+")):
        Device(**{"name": "mine", **values})


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf")])
def test_a_value_is_above_zero_and_has_a_source(value: float) -> None:
    with pytest.raises(ValueError, match="expected a value above 0"):
        quantity(value, "W")
    with pytest.raises(ValueError, match="expected a source"):
        Quantity(1, "W", "datasheet", " ")


def test_a_device_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        devices()[0].name = "other"  # type: ignore[misc]
    assert msgspec.structs.replace(devices()[0], name="other").name == "other"
