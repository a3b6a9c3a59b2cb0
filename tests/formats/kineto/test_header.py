"""What is next to the events: devices, ranks, versions, the clock's base, names of processes and threads."""

import json
from typing import Any

import msgspec
import pytest

from inferometer.formats.kineto.header import FileHeader
from inferometer.trace.facts import Device, Facts
from inferometer.trace.losses import Losses


def take(**fields: Any) -> tuple[Facts, dict[str | None, str]]:
    """The facts from these fields, and the losses' names by field."""
    losses = Losses()
    header = FileHeader(losses)
    for key, value in fields.items():
        header.take(key, value.encode() if isinstance(value, str) else json.dumps(value).encode())
    return header.facts("x.json", "kineto"), {loss.category: loss.name for loss in losses}


def test_device_properties_become_devices() -> None:
    properties = {
        "id": 3,
        "name": "NVIDIA H100 80GB HBM3",
        "totalGlobalMem": 85017755648,
        "computeMajor": 9,
        "computeMinor": 0,
        "numSms": 132,
        "warpSize": 32,
        "maxThreadsPerBlock": 1024,
    }
    facts, losses = take(deviceProperties=[properties])
    assert facts.devices == (Device("gpu:3", "NVIDIA H100 80GB HBM3", 85017755648, 132, "9.0", 32),)
    assert losses == {}


def test_a_device_without_a_number_has_its_place() -> None:
    assert [device.device for device in take(deviceProperties=[{}, {"name": "b"}])[0].devices] == ["gpu:0", "gpu:1"]


def test_the_fields_that_only_pytorch_writes_tell_its_profiler() -> None:
    assert take(schemaVersion=1)[0].tool == "PyTorch profiler (Kineto)"
    facts, _ = take(displayTimeUnit="ms", otherData={})
    assert (facts.tool, facts.framework) == ("Chrome trace", None)


def test_rank_world_size_and_versions_are_kept_as_the_file_has_them() -> None:
    facts, _ = take(
        distributedInfo={"backend": "nccl", "rank": 2, "world_size": 8, "nccl_version": "2.21"},
        cuda_runtime_version=12040,
        baseTimeNanoseconds=1_700_000_000_000_000_000,
        with_stack=1,
        record_shapes=0,
    )
    assert (facts.ranks, facts.world_size, facts.clock_base_ns) == ((2,), 8, 1_700_000_000_000_000_000)
    assert facts.versions == {"nccl": "2.21", "cuda_runtime_version": "12040"}
    assert facts.recorded == {"stacks": True, "shapes": False}


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("deviceProperties", "[null]"),
        ("deviceProperties", "5"),
        ("deviceProperties", '{"id":0}'),
        ("deviceProperties", '[{"id":NaN}]'),
        ("deviceProperties", "[" * 100_000),
        ("distributedInfo", "7"),
        ("baseTimeNanoseconds", "[]"),
        ("baseTimeNanoseconds", "1e400"),
        ("baseTimeNanoseconds", '"soon"'),
        ("baseTimeNanoseconds", "\xff"),
    ],
)
def test_a_field_that_cannot_be_read_is_counted_under_its_name(key: str, text: str) -> None:
    assert take(**{key: text})[1] == {key: "unreadable_header"}


@pytest.mark.parametrize(
    "fields",
    [
        {"deviceProperties": [{"id": 2**70, "name": 5, "totalGlobalMem": 1e30, "computeMajor": "9", "warpSize": True}]},
        {"distributedInfo": {"rank": 2**70, "world_size": -(2**70)}},
        {"distributedInfo": {"rank": True, "world_size": "8"}},
        {"baseTimeNanoseconds": 10**30},
        {"schemaVersion": {"a": 1}, "cupti_version": None},
    ],
)
def test_facts_of_a_hostile_header_can_be_written_and_read(fields: dict[str, Any]) -> None:
    facts, _ = take(**fields)
    assert msgspec.json.decode(msgspec.json.encode(facts), type=Facts) == facts
    assert (facts.ranks, facts.world_size, facts.clock_base_ns) == ((), None, None)


def test_a_field_too_large_to_keep_is_known_to_be_there_and_counted() -> None:
    losses = Losses()
    header = FileHeader(losses)
    header.take("deviceProperties", None)
    header.take("experiment", None)  # a field that nothing is read from
    assert header.is_kineto
    assert [(loss.name, loss.category, loss.count) for loss in losses] == [
        ("unreadable_header", "deviceProperties", 1),
        ("field_not_searched", "experiment", 1),
    ]
    assert header.facts("x", "kineto").devices == ()
