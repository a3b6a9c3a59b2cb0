"""Host calls, launch delays, the device's queue, and waits."""

from collections.abc import Sequence

import polars as pl

from inferometer.analyses.tables.calls import CallTable
from inferometer.analyses.timeline.queue import draw_strip
from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.layout import Field, Section
from inferometer.reports.views.statistics import statistics_fields
from inferometer.reports.views.view import View
from inferometer.units import format_duration, format_share

_NAME = Field("api", "Name", "name", leads=True)
_FIELDS = statistics_fields("Num Calls", _NAME)
_DELAY_FIELDS = (
    Field("calls", "Calls", "count"),
    Field("launches", "Launches", "count", spare=2),
    Field("delay_median_ns", "Delay Med", "ns"),
    Field("delay_p95_ns", "p95", "ns", spare=3),
    Field("delay_p99_ns", "p99", "ns", spare=1),
    Field("delay_max_ns", "Max", "ns", spare=4),
    Field("queued_median_ns", "After Call Med", "ns", spare=5),
    Field("queued_p99_ns", "After Call p99", "ns", spare=6),
    _NAME,
)
_QUEUE_FIELDS = (
    Field("device", "Device", "text"),
    Field("queued_launches", "Launches", "count", spare=2),
    Field("mean_depth_text", "Mean Depth", "number"),
    Field("max_depth", "Max", "count"),
    Field("window_ns", "Window", "ns", spare=1),
    Field("busy_ns", "Busy", "ns", spare=3),
    Field("queued_idle_ns", "Idle, Queued", "ns"),
    Field("starved_ns", "Starved", "ns"),
)
_WAIT_FIELDS = (
    Field("total_ns", "Total Time", "ns"),
    Field("count", "Waits", "count"),
    Field("of_calls", "Of Calls", "count", spare=2),
    Field("max_ns", "Longest", "ns", spare=1),
    Field("idle_ns", "Device Idle", "ns"),
    Field("idle_share", "Idle", "share", spare=3),
    _NAME,
)
_STRIPS = 16  # more devices than this get no strip of their own


def _sections(table: CallTable) -> Sequence[Section]:
    sections = [Section("Host calls", _FIELDS, table.frame)]
    if table.delays["calls"][-1]:
        sections.append(_delay_section(table))
    if table.queues.height:
        sections.append(_queue_section(table))
    if table.waits.height:
        sections.append(Section("Waits of the host", _WAIT_FIELDS, table.waits))
    return sections


def _delay_section(table: CallTable) -> Section:
    every = table.delays.with_columns(pl.col("api").fill_null("(all)"))
    return Section("Launch delay: from a call to the start of its first device work", _DELAY_FIELDS, every)


def _queue_section(table: CallTable) -> Section:
    depth = pl.Series("mean_depth_text", [f"{mean:,.1f}" for mean in table.queues["mean_depth"]], dtype=pl.String)
    ranked = table.queues["rank"].null_count() < table.queues.height
    fields = (Field("rank", "Rank", "number"), *_QUEUE_FIELDS) if ranked else _QUEUE_FIELDS
    title = "Queue of the device: launches called for but not begun"
    return Section(title, fields, table.queues.with_columns(depth), _strips(table))


def _strips(table: CallTable) -> list[str]:
    lines = []
    for (rank, device), bins in table.series.group_by("rank", "device", maintain_order=True):
        place = f"{device or 'unnamed device'}" + (f" of rank {rank}" if rank is not None else "")
        width = format_duration(bins["end_ns"][0] - bins["start_ns"][0])
        depths = bins["mean_depth"].to_list()
        lines += [f"Depth of {place} over time, {width} a mark, highest {max(depths):,.1f}:", draw_strip(depths)]
    if table.queues.height > _STRIPS:
        return [*lines[: 2 * _STRIPS], f"The depth of {table.queues.height - _STRIPS:,} more is in --json."]
    return lines


def _remarks(table: CallTable) -> Sequence[str]:
    shown = []
    if table.frame.height < table.apis:
        share = table.shown_ns / table.total_ns if table.total_ns else 0.0
        shown = [f"{table.frame.height:,} of {table.apis:,} APIs shown, {format_share(share)} of the call time."]
    return [*shown, *table.notable]


VIEW = View(schema=Schema("calls", 1), sections=_sections, remarks=_remarks)
