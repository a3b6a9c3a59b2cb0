"""Devices as results: a list to choose from, all that is known of one, and which of them a trace ran on.

People read scaled units (GB/s, TFLOP/s), which the columns name; `as_json` has the values as the device files do.
"""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar

import msgspec
import polars as pl
from msgspec import structs

from inferometer.analyses.hardware.traced_names import describe_devices, infer_traced, say_properties
from inferometer.analyses.result import Result
from inferometer.hardware.device import Device, Quantity
from inferometer.hardware.known import find_candidates
from inferometer.trace.facts import Device as TracedDevice
from inferometer.trace.losses import Losses
from inferometer.trace.tables import ALL_TABLES
from inferometer.trace.trace import Trace
from inferometer.units import format_bytes, format_count, format_list

NEEDED = frozenset({"launches"})
_Found = tuple[TracedDevice, tuple[Device, ...]]
_VALUES = (  # column, what the device files call it, and what 1 is
    ("memory_gib", "memory", 2**30),
    ("bandwidth_gb_per_s", "memory_bandwidth", 10**9),
    ("bf16_tflop_per_s", "matrix.bf16", 10**12),
    ("fp8_tflop_per_s", "matrix.fp8", 10**12),
    ("fp32_tflop_per_s", "vector.fp32", 10**12),
    ("link_gb_per_s", "link", 10**9),
    ("pcie_gb_per_s", "pcie", 10**9),
)
_TRACED_SCHEMA = {"multiprocessors": pl.Int64, "compute": pl.String, "usable_gib": pl.Float64}
_SCHEMA = {column: pl.Float64 for column, *_ in _VALUES}
_SHEET = ("fact", "value", "unit", "kind", "source")
_TITLES = {
    "l2": "L2 cache",
    "l2_bandwidth": "L2 bandwidth",
    "l3": "L3 cache",
    "launch": "launch of an empty kernel",
    "pcie": "PCIe",
}
_SCALES = {  # of a unit for people, the largest first
    "FLOP/s": (("TFLOP/s", 10**12),),
    "OP/s": (("TOP/s", 10**12),),
    "B/s": (("GB/s", 10**9),),
    "B": (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)),
    "Hz": (("MHz", 10**6),),
    "count": (("", 1),),
}


@dataclass(frozen=True)
class DeviceList(Result):
    """One row per device; a column says its unit, and null is unknown or not there."""

    view: ClassVar[str] = "device_list"
    devices: tuple[Device, ...]
    frame: pl.DataFrame
    losses: Losses

    def to_polars(self) -> pl.DataFrame:
        """One row per device."""
        return self.frame

    def as_json(self) -> dict[str, Any]:
        return {"devices": [msgspec.to_builtins(device) for device in self.devices]}


@dataclass(frozen=True)
class DeviceSheet(Result):
    """One row a known value of one device; as JSON it is a device file."""

    view: ClassVar[str] = "device_sheet"
    device: Device
    frame: pl.DataFrame
    losses: Losses

    def to_polars(self) -> pl.DataFrame:
        """One row per value."""
        return self.frame

    def as_json(self) -> dict[str, Any]:
        sheet: dict[str, Any] = msgspec.to_builtins(self.device)
        return sheet


@dataclass(frozen=True)
class TracedDevices(Result):
    """One row per device of a trace: what the trace calls it, which of ours that is (null: not sure), its values.

    `found` has what the trace says of each, and the devices that may be meant: one where it is sure. `inferred` names
    those that one without a name looks like.
    """

    view: ClassVar[str] = "traced_devices"
    source: str
    found: tuple[_Found, ...]
    frame: pl.DataFrame
    inferred: tuple[tuple[str, ...], ...]
    notable: tuple[str, ...]
    losses: Losses

    def to_polars(self) -> pl.DataFrame:
        """One row per device."""
        return self.frame

    def as_json(self) -> dict[str, Any]:
        rows = [
            {
                "traced": msgspec.to_builtins(traced),
                "launches": launches,
                "device": msgspec.to_builtins(devices[0]) if len(devices) == 1 else None,
                "candidates": [device.name for device in devices],
                "inferred": list(inferred),
            }
            for (traced, devices), inferred, launches in zip(
                self.found, self.inferred, self.frame["launches"], strict=True
            )
        ]
        return {"source": self.source, "devices": rows, "remarks": list(self.notable), "losses": self.losses.as_dict()}


def list_devices(devices: Iterable[Device]) -> DeviceList:
    """The devices side by side, in the order given."""
    chosen = tuple(devices)
    frame = pl.DataFrame([_row(device) for device in chosen], schema={"device": pl.String, **_SCHEMA}, orient="row")
    return DeviceList(chosen, frame, Losses(ALL_TABLES))


def describe_device(device: Device) -> DeviceSheet:
    """All that is known of one device, each value with its source."""
    rows = [(name_fact(fact), *_scaled(known), known.kind, known.source) for fact, known in device.quantities()]
    frame = pl.DataFrame(rows, schema=dict.fromkeys(_SHEET, pl.String), orient="row")
    return DeviceSheet(device, frame, Losses(ALL_TABLES))


def find_traced_devices(trace: Trace, among: Sequence[Device] | None = None) -> TracedDevices:
    """The devices that a trace names or ran on, with how much ran there, and which known device each is.

    Args:
        trace: Needs `launches`.
        among: Look through these; None: those that we have.
    """
    trace.require(NEEDED)
    launches = _count_launches(trace)
    found = tuple((traced, _candidates(traced, among)) for traced in _traced(trace, launches))
    inferred = tuple(tuple(known.name for known in infer_traced(traced, among)) for traced, _ in found)
    rows = []
    for traced, devices in found:
        count = sum(n for (device, rank), n in launches.items() if device == traced.device and _is_of(traced, rank))
        known = devices[0] if len(devices) == 1 else None
        usable_gib = None if traced.memory_bytes is None else round(traced.memory_bytes / 2**30, 1)
        stated = (traced.multiprocessors, traced.compute_capability, usable_gib)
        rows.append((traced.rank, traced.device, count, traced.name, *stated, *_row(known)))
    names = {"traced": pl.String, "launches": pl.Int64, "name": pl.String, **_TRACED_SCHEMA, "device": pl.String}
    frame = pl.DataFrame(rows, schema={"rank": pl.Int64, **names, **_SCHEMA}, orient="row")
    notable = list(_doubts(found, among))
    if nowhere := sum(count for (device, _), count in launches.items() if device is None):
        what = (
            "1 launch doesn't say on which device it"
            if nowhere == 1
            else (f"{format_count(nowhere)} launches don't say on which device they")
        )
        notable.append(f"{what} ran.")
    if not found and not nowhere:
        notable.append("The file names no device, and no launches ran on one.")
    return TracedDevices(trace.facts.source, found, frame, inferred, tuple(notable), trace.losses)


def _count_launches(trace: Trace) -> dict[tuple[str | None, int | None], int]:
    counts = trace.tables["launches"].group_by("device", "rank").len().sort("rank", "device").collect()
    return {(device, rank): count for device, rank, count in counts.iter_rows()}


def _traced(trace: Trace, launches: Iterable[tuple[str | None, int | None]]) -> list[TracedDevice]:
    """Those that the facts describe, then those that were only launched on."""
    described = _renumbered(trace, launches)
    for device, rank in launches:
        if device is not None and not any(each.device == device and _is_of(each, rank) for each in described):
            described.append(TracedDevice(device=device))
    return described


def _renumbered(trace: Trace, launches: Iterable[tuple[str | None, int | None]]) -> list[TracedDevice]:
    """The devices described; a single one under the number that launches carry (ROCm's differ)."""
    used = [device for device, _ in launches]
    numbers = {device.device: text for text, device in describe_devices(trace.facts, used).items()}
    return [structs.replace(each, device=numbers.get(each.device, each.device)) for each in trace.facts.devices]


def _is_of(traced: TracedDevice, rank: int | None) -> bool:
    return traced.rank is None or traced.rank == rank


def device_of(traced: TracedDevice) -> Device | None:
    """The one device of ours that a trace describes so; None where that isn't sure."""
    found = _candidates(traced, None)
    return found[0] if len(found) == 1 else None


def _candidates(traced: TracedDevice, among: Sequence[Device] | None) -> tuple[Device, ...]:
    if traced.name is None:
        return ()
    return find_candidates(
        traced.name, multiprocessors=traced.multiprocessors, memory_bytes=traced.memory_bytes, among=among
    )


def _row(device: Device | None) -> tuple[Any, ...]:
    if device is None:
        return (None,) * (1 + len(_VALUES))
    known = [(device.quantity(fact), scale) for _, fact, scale in _VALUES]
    return (device.name, *(None if value is None else value.value / scale for value, scale in known))


def find_scale(known: Quantity) -> tuple[str, int]:
    """The largest unit in which a value is 1 or more, and what one of it is."""
    units = _SCALES.get(known.unit, ((known.unit, 1),))
    return next((each for each in units if known.value >= each[1]), units[-1])


def _scaled(known: Quantity) -> tuple[str, str]:
    """The value as text, exact, and its unit for people."""
    unit, scale = find_scale(known)
    value = Decimal(str(known.value)) / scale
    return f"{value.normalize():f}", unit


def name_fact(fact: str) -> str:
    """What reports call a value: `bf16 peak, matrix units`."""
    group, _, dtype = fact.partition(".")
    return f"{dtype} peak, {group} units" if dtype else _TITLES.get(group, group.replace("_", " "))


def _doubts(found: Sequence[_Found], among: Sequence[Device] | None) -> Iterator[str]:
    """What isn't known of devices, once for those that are alike, and what to do about it."""
    alike: dict[TracedDevice, list[_Found]] = {}
    for one in found:
        if len(one[1]) != 1:
            alike.setdefault(structs.replace(one[0], device="", rank=None), []).append(one)
    for traced, those in alike.items():
        texts = list(dict.fromkeys(each.device for each, _ in those))
        yield _doubt_unnamed(traced, texts, among) or _doubt(traced, those[0][1], among)


def _doubt_unnamed(traced: TracedDevice, texts: Sequence[str], among: Sequence[Device] | None) -> str | None:
    """What to say of devices (`texts`) whose name is missing or stands for several; None where they have one."""
    if names := [device.name for device in infer_traced(traced, among)]:
        no_name = f"The file gives no name for {format_list(texts)}"
        who = no_name if traced.name is None else f'"{traced.name}" may be several devices'
        looks = "it looks" if len(texts) == 1 else "they look"
        alike = f"with {say_properties(traced)} {looks} like {' or '.join(names)} (inferred)"
        name = "NAME" if len(names) > 1 else shlex.quote(names[0])
        return f"{who}: {alike}. What that can do: inferometer hardware {name}"
    if traced.name is None:
        verb = "is" if len(texts) == 1 else "are"
        return f"The file doesn't say what {format_list(texts)} {verb}. If you know: inferometer hardware NAME"
    return None


def _doubt(traced: TracedDevice, devices: Sequence[Device], among: Sequence[Device] | None) -> str:
    name = traced.name or ""
    if devices:
        return f'"{name}" may be several devices: {_names(devices)}.'
    if alike := find_candidates(name, among=among):
        count, memory = format_count(traced.multiprocessors), format_bytes(traced.memory_bytes, binary=True)
        return f'"{name}" with {count} multiprocessors and {memory} isn\'t {_names(alike)}: a part of one?'
    return f'There is no data of "{name}": --hardware-file takes yours.'


def _names(devices: Sequence[Device]) -> str:
    return ", ".join(device.name for device in devices)
