"""Devices as results: side by side, one with its sources, and those of a trace."""

import msgspec
import pytest
from tests.traces import trace_of

from inferometer.analyses.hardware.devices import describe_device, device_of, find_traced_devices, list_devices
from inferometer.hardware import Device, Quantity, devices, find_device
from inferometer.reports.base import shown_fields
from inferometer.reports.views.view import remarks_of, sections_of
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
    assert remarks_of(result) == ()
    assert [row["device"]["name"] for row in result.as_json()["devices"]] == ["H100 SXM"] * 2


def test_what_a_trace_leaves_open_is_said() -> None:
    described = (
        TracedDevice("gpu:0", "AMD Radeon Graphics"),
        TracedDevice("gpu:1", "AMD Instinct MI300X", 25_769_803_776, 38),
        TracedDevice("gpu:2", "Apple M3 Max"),
    )
    result = find_traced_devices(trace_of([{"device": "gpu:9"}, {"device": None}], facts={"devices": described}))
    assert result.frame["device"].to_list() == [None] * 4
    assert remarks_of(result) == (
        'There is no data of "AMD Radeon Graphics": --hardware-file takes yours.',
        '"AMD Instinct MI300X" with 38 multiprocessors and 24.000 GiB isn\'t MI300X: a part of one?',
        '"Apple M3 Max" may be several devices: Apple M3 Max 30-core, Apple M3 Max 40-core.',
        "The file doesn't say what gpu:9 is. If you know: inferometer hardware NAME",
        "1 launch doesn't say on which device it ran.",
    )


def unnamed(device: str, **others: object) -> TracedDevice:
    return TracedDevice(device, **({"multiprocessors": 304, "compute_capability": "9.4"} | others))  # type: ignore[arg-type]


def test_a_device_without_a_name_is_inferred_in_words_and_never_taken_for_a_fact() -> None:
    devices = tuple(unnamed(f"gpu:{n}", memory_bytes=206_141_652_992, warp_size=64) for n in (0, 1))
    result = find_traced_devices(trace_of([{}], facts={"devices": devices}))
    assert result.frame["device"].to_list() == [None, None]
    assert [device_of(device) for device in devices] == [None, None]
    assert [(row["device"], row["inferred"]) for row in result.as_json()["devices"]] == [(None, ["MI300X"])] * 2
    (remark,) = remarks_of(result)
    assert remark == (
        "The file gives no name for gpu:0 and gpu:1: with 304 multiprocessors, compute 9.4, warp size 64, 191.984 GiB "
        "they look like MI300X (inferred). What that can do: inferometer hardware MI300X"
    )


def test_several_devices_that_fit_are_all_named() -> None:
    device = TracedDevice("gpu:0", "AMD Radeon Graphics", 68_702_699_520, 104, "9.0", 64)
    (remark,) = remarks_of(find_traced_devices(trace_of([{}], facts={"devices": (device,)})))
    assert remark == (
        '"AMD Radeon Graphics" may be several devices: with 104 multiprocessors, compute 9.0, warp size 64, 63.984 GiB '
        "it looks like MI210 or MI250 GCD (inferred). What that can do: inferometer hardware NAME"
    )


def test_no_column_of_dashes_is_shown() -> None:
    device = TracedDevice("gpu:0", "Tesla V100-SXM2-16GB", 16_945_512_448, 80, "7.0", 32)
    result = find_traced_devices(trace_of([{}], facts={"devices": (device,)}))
    (section,) = sections_of(result)
    shown = [field.title for field in shown_fields(section)]
    assert shown == ["Device", "Launches", "Name", "Multiprocessors", "Compute", "Usable (GiB)"]
    assert section.frame.select(field.column for field in shown_fields(section)).row(0)[3:] == (80, "7.0", 15.8)
    assert section.notes == ()


def test_one_described_device_is_the_one_that_was_launched_on() -> None:
    trace = trace_of([{"device": "gpu:9"}], facts={"devices": (H100,)})
    assert find_traced_devices(trace).frame.select("traced", "launches", "device").rows() == [("gpu:9", 1, "H100 SXM")]


def test_ranks_may_have_devices_of_their_own() -> None:
    other = TracedDevice("gpu:0", "AMD Instinct MI300X", rank=1)
    facts = {"devices": (TracedDevice("gpu:0", "NVIDIA H200", rank=0), other)}
    result = find_traced_devices(trace_of([{"rank": 0}, {"rank": 1}, {"rank": 1}], facts=facts))
    assert result.frame.select("rank", "launches", "device").rows() == [(0, 1, "H200 SXM"), (1, 2, "MI300X")]
    assert sections_of(result)[0].fields[0].title == "Rank"


def test_a_trace_without_devices_has_no_rows() -> None:
    result = find_traced_devices(trace_of())
    assert result.frame.is_empty()
    assert remarks_of(result) == ("The file names no device, and no launches ran on one.",)


def test_the_user_s_own_devices_are_looked_through_instead() -> None:
    own = Device(name="mine", aliases=("NVIDIA H100 80GB HBM3",))
    result = find_traced_devices(trace_of([{}], facts={"devices": (H100,)}), [own])
    assert result.frame["device"].to_list() == ["mine"]
