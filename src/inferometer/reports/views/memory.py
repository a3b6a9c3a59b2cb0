"""Device memory: the peak of each device, what held it, how it went, and what of the reserved memory lies idle."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import polars as pl

from inferometer.analyses.memory.holders import NO_STACK
from inferometer.analyses.memory.use import MemoryUse
from inferometer.analyses.timeline.queue import draw_strip
from inferometer.analyses.timeline.work import place_name
from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.layout import Field, Section
from inferometer.reports.views.view import View
from inferometer.units import format_bytes, format_count, format_share

_RANK: Final = Field("rank", "Rank", "number")
_DEVICES: Final = (
    Field("device", "Device", "text"),
    Field("peak_bytes", "Peak", "bytes"),
    Field("reserved_bytes", "Reserved", "bytes"),
    Field("allocated_bytes", "Allocated", "bytes"),
    Field("free_bytes", "Free in It", "bytes"),
    Field("largest_free_bytes", "Largest Free", "bytes", spare=2),
    Field("rounding_bytes", "Rounding", "bytes", spare=1),
    Field("before_bytes", "Before", "bytes", spare=4),
    Field("events", "Events", "count", spare=3),
)
_OF_BLOCKS: Final = frozenset({"largest_free_bytes", "rounding_bytes"})
_HOLDERS: Final = (
    Field("device", "Device", "text", spare=1),
    Field("share", "Of Peak", "share"),
    Field("bytes", "Bytes", "bytes"),
    Field("blocks", "Blocks", "count"),
    Field("holder", "Allocated At", "name"),
)
_MARKS: Final = 64


def _sections(found: MemoryUse) -> Sequence[Section]:
    fields = [field for field in _DEVICES if found.basis == "snapshot" or field.column not in _OF_BLOCKS]
    title = "Memory, at the end but for the peak"
    return [Section(title, _ranked(found, fields), found.devices, [*_strips(found)]), _holders(found)]


def _holders(found: MemoryUse) -> Section:
    return Section("What held the peak", _ranked(found, _HOLDERS), found.holders)


def _ranked(found: MemoryUse, fields: Sequence[Field]) -> Sequence[Field]:
    """With the rank first, where files say which it is."""
    return (_RANK, *fields) if found.devices["rank"].count() else fields


def _strips(found: MemoryUse) -> Iterator[str]:
    for place, points in found.series.group_by("rank", "device", maintain_order=True):
        if points.height > 1:
            width = -(-points.height // _MARKS)
            values = points["bytes"].to_list()
            marks = [float(max(0, *values[at : at + width])) for at in range(0, len(values), width)]
            yield f"Allocated on {_name(*place)}, event by event, highest {format_bytes(max(values))}:"
            yield draw_strip(marks)


def _name(rank: Any, device: Any) -> str:
    return place_name(rank, device or "an unnamed device")


def _remarks(found: MemoryUse) -> Iterator[str]:
    for row in found.devices.iter_rows(named=True):
        device = _name(row["rank"], row["device"])
        yield from _idle(row, device)
        yield from _of_records(row, device) if found.basis == "records" else _of_snapshot(row, device)
        if row["refused"]:
            yield f"The allocator of {device} had no memory for {format_count(row['refused'])} requests."
    named = found.holders.filter(pl.col("holder") == NO_STACK)
    if (unknown := int(named["bytes"].sum())) and found.basis == "snapshot" and found.devices["events"].sum():
        yield (
            f"{format_bytes(unknown)} in {format_count(int(named['blocks'].sum()))} blocks have no stack: they were "
            "allocated before the events that were kept, or recorded with stacks=None."
        )


def _idle(row: Mapping[str, Any], device: str) -> Iterator[str]:
    if not row["reserved_bytes"] or not row["free_bytes"]:
        return
    share = format_share(row["free_bytes"] / row["reserved_bytes"])
    largest = row["largest_free_bytes"]
    piece = "" if largest is None else f", of which at most {format_bytes(largest)} in one piece"
    yield f"{share} of what {device} has reserved is free: {format_bytes(row['free_bytes'])}{piece}."


def _of_snapshot(row: Mapping[str, Any], device: str) -> Iterator[str]:
    if not row["events"]:
        yield f"No events of {device}: its peak is the state at the end. Call _record_memory_history() for them."
    elif row["peak_event"] == 0:
        yield f"The peak of {device} is before the first event that was kept: raise max_entries to see more."
    if row["mismatched_bytes"]:
        yield f"Events and the state at the end of {device} disagree about {format_bytes(row['mismatched_bytes'])}."


def _of_records(row: Mapping[str, Any], device: str) -> Iterator[str]:
    if row["before_bytes"] > 0:
        yield (
            f"{format_bytes(row['before_bytes'])} of {device} were allocated before the recording began. The file "
            "doesn't say what for."
        )
    if row["device"] == "cpu":
        yield f"Of {device} only what was allocated while memory was recorded is counted."
    if grown := row["allocated_bytes"] - row["before_bytes"]:
        more = "more" if grown > 0 else "less"
        yield f"{device} ends with {format_bytes(abs(grown))} {more} than it began with."
    if row["peak_event"] == 0:
        yield f"The peak of {device} is before the first record."
    if row["mismatched_bytes"]:
        yield (
            f"Records of {device} and their own totals disagree about {format_bytes(row['mismatched_bytes'])}: some "
            "records are missing."
        )


VIEW = View(schema=Schema("memory", 1), sections=_sections, remarks=_remarks, remarks_in_json=True, table=_holders)
