"""Ops of the CPU are launches in a store where no GPU has any, and else only ops."""

from pathlib import Path

from msgspec.structs import replace
from tests.traces import rows, trace_of

import inferometer
from inferometer.record.interception.handover import _CPU_NOTE
from inferometer.trace.facts import Device
from inferometer.trace.trace import Trace

NOTE = _CPU_NOTE.format(cost="about 2 µs")
CPU, GPU = Device("cpu", "a processor"), Device("gpu:0", "a GPU")


def recorded(folder: Path, *devices: str, notes: tuple[str, ...] = (NOTE,)) -> Trace:
    launches = [{"device": device, "start_ns": 10 * i, "dur_ns": 5} for i, device in enumerate(devices)]
    facts = {"devices": (CPU, GPU) if "gpu:0" in devices else (CPU,), "notes": ("first", *notes)}
    return inferometer.open(trace_of(launches, facts=facts).save(folder / "a.ifm"))


def test_without_a_gpu_s_launches_those_of_the_cpu_are_there(tmp_path: Path) -> None:
    trace = recorded(tmp_path, "cpu", "cpu")
    assert rows(trace, "launches", "device") == ["cpu", "cpu"]
    assert trace.facts.devices == (CPU,)
    assert trace.facts.notes == ("first", NOTE)


def test_beside_a_gpu_s_launches_they_are_gone_and_so_is_the_device(tmp_path: Path) -> None:
    trace = recorded(tmp_path, "cpu", "gpu:0", "cpu")
    assert rows(trace, "launches", "device") == ["gpu:0"]
    assert trace.facts.devices == (GPU,)
    assert trace.facts.notes == (
        "first",
        "Ops that compute on the CPU are in no table of launches: a GPU did the work.",
    )


def test_a_launch_whose_device_is_not_known_is_none_of_the_cpu(tmp_path: Path) -> None:
    launches = [{"device": device, "start_ns": i} for i, device in enumerate(("cpu", None, "gpu:0"))]
    trace = inferometer.open(trace_of(launches, facts={"notes": (NOTE,)}).save(tmp_path / "a.ifm"))
    assert rows(trace, "launches", "device") == [None, "gpu:0"]


def test_a_note_keeps_whose_it_is_and_a_store_of_stores_says_the_same(tmp_path: Path) -> None:
    first = recorded(tmp_path, "cpu", "gpu:0", notes=(f"7.ifm: {NOTE}",))
    first.facts = replace(first.facts, devices=(CPU, GPU))
    again = inferometer.open(first.save(tmp_path / "b.ifm"))
    assert again.facts.notes[1].startswith("7.ifm: Ops that compute on the CPU are in no table")
    assert again.facts.devices == (GPU,)


def test_what_other_tools_call_cpu_stays(tmp_path: Path) -> None:
    trace = recorded(tmp_path, "cpu", "gpu:0", notes=())
    assert rows(trace, "launches", "device") == ["cpu", "gpu:0"]
