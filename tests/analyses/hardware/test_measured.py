"""A measured device for people: what part of its datasheet it reaches, and what is doubtful."""

import json

import msgspec
import pytest
from tests.hardware.clocks import Clock

from inferometer.analyses.hardware.measured import MeasuredDevice, describe_measured
from inferometer.hardware import Device
from inferometer.hardware.measure.measure import measure_subject
from inferometer.hardware.measure.subject import Subject, Task
from inferometer.hardware.measure.timing import QUICK
from inferometer.reports.views.view import facts_of, remarks_of


def described(*, bf16: float = 791.52e12, shaky: bool = False) -> MeasuredDevice:
    """An H100 SXM, whose datasheet says 989.4 TFLOP/s and 3350 GB/s; products take 1 ms, or 1 to 3 ms."""
    clock = Clock()
    call_ns = (lambda i: 1e6 * (1 + i % 3)) if shaky else 1e6
    tasks = (
        Task("memory_bandwidth", lambda effort: [clock.job(1e6, amount=2.68e9)]),
        Task("launch", lambda effort: [clock.job(2_150.0)]),
        Task("matrix.bf16", lambda effort: [clock.job(call_ns, amount=bf16 / 1e3)]),
    )
    device = Device(name="NVIDIA H100 80GB HBM3", vendor="NVIDIA")
    subject = Subject("gpu:0", device, "torch 2.9.0, CUDA 12.8", tasks, lambda: 1.755e9, ("Power limit 500 W.",))
    return describe_measured(measure_subject(subject, QUICK, clock=clock), "h100.json")


def test_values_stand_beside_the_datasheet() -> None:
    frame = described().to_polars().drop("source", "samples")
    assert frame.rows() == [
        ("memory bandwidth", 2680.0, "GB/s", 2680.0, 2680.0, 1755.0, 3350.0, 0.8),
        ("launch of an empty kernel", 2150.0, "ns", 2150.0, 2150.0, 1755.0, None, None),
        ("bf16 peak, matrix units", 791.5, "TFLOP/s", 791.5, 791.5, 1755.0, 989.4, 0.8),
    ]


def test_more_than_the_datasheet_is_shown_and_said() -> None:
    result = described(bf16=1_088.34e12)
    assert result.to_polars()["fraction"].to_list() == [0.8, None, 1.1]
    assert remarks_of(result) == (
        "Above the datasheet: bf16 peak, matrix units. Is it of this device, and at this clock?",
        "Power limit 500 W.",
    )
    assert remarks_of(described()) == ("Power limit 500 W.",)


def test_what_was_not_steady_is_said() -> None:
    result = described(shaky=True)
    assert remarks_of(result)[0].startswith("Not steady when the time was over: bf16 peak, matrix units ±")
    p10, value, p90 = result.to_polars().select("p10", "value", "p90").row(2)
    assert p10 < value < p90


def test_json_has_the_device_as_its_file_and_every_measurement() -> None:
    result = described()
    data = json.loads(msgspec.json.encode(result.as_json()))
    assert msgspec.convert(data["device"], Device) == result.measured.device
    assert [(each["fact"], each["fraction"]) for each in data["measurements"]] == [
        ("memory_bandwidth", 0.8),
        ("launch", None),
        ("matrix.bf16", 0.8),
    ]
    assert data["measurements"][2]["datasheet"] == 989.4e12
    assert (data["file"], data["on"], data["library"]) == ("h100.json", "gpu:0", "torch 2.9.0, CUDA 12.8")


def test_what_others_measured_is_no_datasheet() -> None:
    clock = Clock()
    subject = Subject(
        "gpu:0", Device(name="XPU-A"), "x 1", (Task("memory_bandwidth", lambda effort: [clock.job(1e6, amount=6e9)]),)
    )
    result = describe_measured(measure_subject(subject, QUICK, clock=clock), "x.json")
    assert result.measured.known is not None
    assert result.to_polars()["fraction"].to_list() == [None]
    assert facts_of(result)[1] == ("Known as", "XPU-A")
    assert result.to_polars()["value"].to_list() == pytest.approx([6000.0])
