"""Devices as results: side by side, one with its sources, and those of a trace."""

import msgspec
import pytest
from tests.traces import trace_of

from inferometer.analyses.hardware import describe_device, find_traced_devices, list_devices
from inferometer.hardware import Device, Quantity, devices, find_device
from inferometer.trace.facts import Device as TracedDevice

H100 = TracedDevice("gpu:0", "NVIDIA H100 80GB HBM3", 85_018_279_936, 132)


def known(name: str) -> Device:
    device = find_device(name)
    assert device is not None
    return device


def test_a_list_has_the_values_in_the_units_of_its_columns() -> None:
    frame = list_devices([known("H100 SXM"), known("Apple M1"), known("CPU")]).to_polars()
    assert frame.columns[0] == "device"
    rows = {name: values for name, *values in frame.iter_rows()}
    assert rows["H100 SXM"] == [80.0, 3350.0, 989.4, 1978.9, 66.9, 450.0, 63.0]
    assert rows["Apple M1"] == [None, 68.25, None, None, 2.6, None, None]
    assert rows["CPU"] == [None] * 7


def test_a_sheet_shows_every_value_exactly_with_its_unit_and_source() -> None:
    device = Device(
        name="mine",
        matrix={"int8": Quantity(1978.9e12, "OP/s", "datasheet", "a datasheet")},
        l2=Quantity(48 * 2**20, "B", "measured", "a test"),
        multiprocessors=Quantity(132, "count", "measured", "a test"),
        graphics_clock=Quantity(1.98e9, "Hz", "derived", "a sum"),
        power=Quantity(700, "W", "datasheet", "a datasheet"),
    )
    assert describe_device(device).to_polars().rows() == [
        ("int8 peak, matrix units", "1978.9", "TOP/s", "datasheet", "a datasheet"),
        ("L2 cache", "48", "MiB", "measured", "a test"),
        ("multiprocessors", "132", "", "measured", "a test"),
        ("graphics clock", "1980", "MHz", "derived", "a sum"),
        ("power", "700", "W", "datasheet", "a datasheet"),
    ]


@pytest.mark.parametrize("device", devices(), ids=lambda device: device.name)
def test_a_sheet_as_json_is_a_device_file(device: Device) -> None:
    sheet = describe_device(device)
    assert msgspec.convert(sheet.as_json(), Device) == device
    assert sheet.to_polars().height == len(list(device.quantities()))


def test_the_devices_of_a_trace_come_with_their_launches() -> None:
    idle = TracedDevice("gpu:1", "NVIDIA H100 80GB HBM3", 85_018_279_936, 132)
    trace = trace_of([{}, {}], facts={"devices": (H100, idle)})
    result = find_traced_devices(trace)
    assert result.frame.select("traced", "launches", "device").rows() == [
        ("gpu:0", 2, "H100 SXM"),
        ("gpu:1", 0, "H100 SXM"),
    ]
    assert result.remarks() == ()
    assert [row["device"]["name"] for row in result.as_json()["devices"]] == ["H100 SXM"] * 2


def test_what_a_trace_leaves_open_is_said() -> None:
    described = (
        TracedDevice("gpu:0", "AMD Radeon Graphics"),
        TracedDevice("gpu:1", "AMD Instinct MI300X", 25_769_803_776, 38),
        TracedDevice("gpu:2", "Apple M3 Max"),
    )
    result = find_traced_devices(trace_of([{"device": "gpu:9"}, {"device": None}], facts={"devices": described}))
    assert result.frame["device"].to_list() == [None] * 4
    assert result.remarks() == (
        'There is no data of "AMD Radeon Graphics": --device-file takes yours.',
        '"AMD Instinct MI300X" with 38 multiprocessors and 24.000 GiB isn\'t MI300X: a part of one?',
        '"Apple M3 Max" may be several devices: Apple M3 Max 30-core, Apple M3 Max 40-core.',
        "The trace doesn't say what gpu:9 is.",
        "1 launches don't say on which device they ran.",
    )


def test_ranks_may_have_devices_of_their_own() -> None:
    other = TracedDevice("gpu:0", "AMD Instinct MI300X", rank=1)
    facts = {"devices": (TracedDevice("gpu:0", "NVIDIA H200", rank=0), other)}
    result = find_traced_devices(trace_of([{"rank": 0}, {"rank": 1}, {"rank": 1}], facts=facts))
    assert result.frame.select("rank", "launches", "device").rows() == [(0, 1, "H200 SXM"), (1, 2, "MI300X")]
    assert result.sections()[0].fields[0].title == "Rank"


def test_a_trace_without_devices_has_no_rows() -> None:
    assert find_traced_devices(trace_of()).frame.is_empty()


def test_the_user_s_own_devices_are_looked_through_instead() -> None:
    own = Device(name="mine", aliases=("NVIDIA H100 80GB HBM3",))
    result = find_traced_devices(trace_of([{}], facts={"devices": (H100,)}), [own])
    assert result.frame["device"].to_list() == ["mine"]
