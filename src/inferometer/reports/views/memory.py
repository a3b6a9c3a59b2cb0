"""Device memory: the peak of each device, what held it, how it went, and what of the reserved memory lies idle."""

from collections.abc import Iterator, Sequence
from typing import Final

import polars as pl

from inferometer.analyses.memory.use import MemoryUse
from inferometer.analyses.timeline.queue import draw_strip
from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.layout import Field, Section
from inferometer.reports.views.view import View
from inferometer.units import format_bytes, format_count, format_share

_DEVICES: Final = (
    Field("device", "Device", "text"),
    Field("peak_bytes", "Peak", "bytes"),
    Field("reserved_bytes", "Reserved", "bytes"),
    Field("allocated_bytes", "Allocated", "bytes"),
    Field("free_bytes", "Free in It", "bytes"),
    Field("largest_free_bytes", "Largest Free", "bytes", spare=2),
    Field("rounding_bytes", "Rounding", "bytes", spare=1),
    Field("events", "Events", "count", spare=3),
)
_HOLDERS: Final = (
    Field("device", "Device", "text", spare=1),
    Field("share", "Of Peak", "share"),
    Field("bytes", "Bytes", "bytes"),
    Field("blocks", "Blocks", "count"),
    Field("holder", "Allocated At", "name"),
)
_MARKS: Final = 64


def _sections(found: MemoryUse) -> Sequence[Section]:
    return [
        Section("Device memory, at the end but for the peak", _DEVICES, found.devices, [*_strips(found)]),
        _holders(found),
    ]


def _holders(found: MemoryUse) -> Section:
    return Section("What held the peak", _HOLDERS, found.holders)


def _strips(found: MemoryUse) -> Iterator[str]:
    for (device,), points in found.series.group_by("device", maintain_order=True):
        if points.height > 1:
            width = -(-points.height // _MARKS)
            values = points["bytes"].to_list()
            marks = [float(max(values[at : at + width])) for at in range(0, len(values), width)]
            yield f"Allocated on {device or 'an unnamed device'}, event by event, highest {format_bytes(max(values))}:"
            yield draw_strip(marks)


def _remarks(found: MemoryUse) -> Iterator[str]:
    for row in found.devices.iter_rows(named=True):
        device = row["device"] or "the unnamed device"
        if row["reserved_bytes"] and row["free_bytes"]:
            yield (
                f"{format_share(row['free_bytes'] / row['reserved_bytes'])} of what {device} has reserved is free: "
                f"{format_bytes(row['free_bytes'])}, of which at most {format_bytes(row['largest_free_bytes'])} in one "
                "piece."
            )
        if not row["events"]:
            yield f"No events of {device}: its peak is the state at the end. Call _record_memory_history() for them."
        elif row["peak_event"] == 0:
            yield f"The peak of {device} is before the first event that was kept: raise max_entries to see more."
        if row["mismatched_bytes"]:
            yield (
                f"Events and the state at the end of {device} disagree about {format_bytes(row['mismatched_bytes'])}."
            )
    named = found.holders.filter(pl.col("holder").str.starts_with("(no stack"))
    if (unknown := int(named["bytes"].sum())) and found.devices["events"].sum():
        yield (
            f"{format_bytes(unknown)} in {format_count(int(named['blocks'].sum()))} blocks have no stack: they were "
            "allocated before the events that were kept, or recorded with stacks=None."
        )


VIEW = View(schema=Schema("memory", 1), sections=_sections, remarks=_remarks, remarks_in_json=True, table=_holders)
