"""Samples: of the allocator, which the host writes with each allocation, and of a device's line `_counters_`."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from inferometer.formats.xplane.lines import Events, LineReader
from inferometer.formats.xplane.plane import Plane, Value, text
from inferometer.trace.builder import TraceBuilder

COUNTERS = "_counters_"
ALLOCATIONS = frozenset({"MemoryAllocation", "MemoryDeallocation"})
_OF_ALLOCATOR = {  # stat: unit
    "bytes_allocated": "byte",
    "bytes_available": "byte",
    "bytes_reserved": "byte",
    "peak_bytes_in_use": "byte",
    "fragmentation": None,
}
_LARGEST = 1e308
_DEVICE = re.compile(r"GPU_(\d{1,4})_")


def read_allocations(plane: Plane, events: Events, process: int | None, out: TraceBuilder) -> None:
    """What the allocator had at each event: a sample of each of its numbers, by device where its name has one."""
    stats = plane.columns(events, {*_OF_ALLOCATOR, "allocator_name"})
    allocators = [text(value) for value in stats.pop("allocator_name", [])]
    samples = []
    for row, time_ns in enumerate(events.start_ns.tolist()):
        allocator = (allocators[row] if allocators else None) or "allocator"
        match = _DEVICE.match(allocator)
        device, prefix = (f"gpu:{match[1]}", "") if match else (None, f"{allocator} ")
        numbers = _numbers({name: column[row] for name, column in stats.items()})
        samples.append(
            [
                _Sample(f"{prefix}{name}", device, process, time_ns, value, _OF_ALLOCATOR[name])
                for name, value in numbers
            ]
        )
    _add(samples, plane.names(events.name_id).to_list(), out)


def read_counters(plane: Plane, line: Any, device: str, lines: LineReader, out: TraceBuilder) -> None:
    """Samples of a device's line: of an event with one number by the event's name, of others with the number's too."""
    if not out.wants("counters"):
        return
    events = lines.read(line, "counters")
    names = plane.names(events.name_id).to_list()
    samples = []
    for event, name, time_ns in zip(events.messages, names, events.start_ns.tolist(), strict=True):
        numbers = _numbers(plane.values(event.stats))
        samples.append(
            [
                _Sample(name if len(numbers) == 1 else f"{name} {stat}", device, None, time_ns, value, None)
                for stat, value in numbers
            ]
        )
    _add(samples, names, out)


class _Sample(NamedTuple):
    """A row of `counters`."""

    metric: str
    device: str | None
    process: int | None
    time_ns: int
    value: float
    unit: str | None


def _add(samples: Sequence[Sequence[_Sample]], names: Sequence[str], out: TraceBuilder) -> None:
    """Hand over the samples of each event; each counts as seen, an event without any as one."""
    rows = [sample for each in samples for sample in each]
    empty = [name for each, name in zip(samples, names, strict=True) if not each]
    out.losses.see("counters", len(rows) + len(empty) - len(samples))
    out.losses.count("counter_without_value", len(empty), category="counters", example=empty[0] if empty else None)
    out.add("counters", len(rows), {name: [getattr(row, name) for row in rows] for name in _Sample._fields})


def _numbers(stats: Mapping[str, Value]) -> list[tuple[str, float]]:
    return [
        (name, float(value))
        for name, value in stats.items()
        if isinstance(value, int | float) and abs(value) < _LARGEST
    ]
