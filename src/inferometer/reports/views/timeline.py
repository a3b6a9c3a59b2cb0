"""The time line: devices, streams, idle time by cause, ranks, and the strip that draws them."""

from collections.abc import Callable, Sequence

import polars as pl

from inferometer.analyses.timeline.gaps import LAUNCH_GAP_NS
from inferometer.analyses.timeline.timeline import Timeline
from inferometer.analyses.timeline.work import PLACE
from inferometer.names.apis import canonical_api
from inferometer.names.demangle import demangle
from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.layout import Field, Section
from inferometer.reports.views.view import View
from inferometer.units import format_counted, format_duration

_LANES = 40  # lines of the strip; more hide each other
_MESSAGES = 12  # rows of the table; expert parallelism has a size a step
_RANK = Field("rank", "Rank", "number")
_DEVICE = Field("device", "Device", "text")
_STREAM = Field("stream", "Stream", "number")
_DEVICE_FIELDS = (
    _RANK,
    _DEVICE,
    Field("launches", "Launches", "count", spare=3),
    Field("window_ns", "Window", "ns", spare=1),
    Field("busy_share", "Busy", "share"),
    Field("idle_ns", "Idle", "ns"),
    Field("compute_busy_ns", "Compute", "ns"),
    Field("communication_busy_ns", "Comm.", "ns", spare=5),
    Field("exposed_communication_ns", "Exposed comm.", "ns"),
    Field("copy_busy_ns", "Copies", "ns", spare=6),
    Field("exposed_copy_ns", "Exposed copies", "ns"),
    Field("concurrent_ns", "Concurrent", "ns", spare=4),
)
_STREAM_FIELDS = (
    _RANK,
    _DEVICE,
    _STREAM,
    Field("mostly", "Mostly", "text", spare=1),
    Field("launches", "Launches", "count", spare=2),
    Field("busy_share", "Busy", "share"),
    Field("busy_ns", "Busy time", "ns"),
    Field("summed_ns", "Summed", "ns", spare=4),
    Field("longest_gap_ns", "Longest gap", "ns", spare=3),
)
_CAUSE_FIELDS = (
    _RANK,
    _DEVICE,
    Field("cause", "Cause", "text"),
    Field("share", "Of idle", "share"),
    Field("idle_ns", "Idle", "ns"),
    Field("count", "Pieces", "count", spare=2),
    Field("longest_ns", "Longest", "ns", spare=1),
)
_GAP_FIELDS = (
    Field("at_ns", "At", "ns"),
    Field("gap_ns", "Idle", "ns"),
    _RANK,
    _DEVICE,
    Field("cause", "Cause", "text"),
    Field("waited_in", "Waited in", "text", spare=3),
    Field("called_after_ns", "Called after", "ns", spare=1),
    Field("api", "By", "text", spare=2),
    Field("call_ns", "Call took", "ns", spare=2),
    Field("stream", "Stream", "number", spare=4),
    Field("kernel", "Ended by", "kernel"),
    Field("after", "After", "kernel", spare=5),
)
_RANK_FIELDS = (
    _RANK,
    _DEVICE,
    Field("compute_busy_ns", "Compute", "ns"),
    Field("against_mean", "Against mean", "share"),
    Field("compared", "Collectives", "count", spare=1),
    Field("last", "Arrived last", "count", spare=2),
    Field("last_share", "Last", "share"),
    Field("waited_ns", "Waited", "ns"),
    Field("kept_waiting_ns", "Kept others waiting", "ns"),
)
_MESSAGE_FIELDS = (
    _RANK,
    _DEVICE,
    Field("collective", "Collective", "text"),
    Field("message_bytes", "Message", "bytes"),
    Field("dtype", "Type", "text"),
    Field("group", "Group", "text", spare=4),
    Field("group_size", "Of ranks", "count"),
    Field("count", "Launches", "count"),
    Field("dur_ns", "Summed", "ns"),
    Field("mean_ns", "Mean", "ns", spare=1),
    Field("bytes_per_s", "Bytes/s", "bytes"),
    Field("kernel", "Kernel", "kernel", spare=5),
)
_COLLECTIVE_FIELDS = (
    Field("collective", "Collective", "text"),
    Field("group", "Group", "text", spare=2),
    Field("ranks", "Ranks", "count", spare=3),
    Field("most", "A rank", "count", spare=4),
    Field("compared", "Compared", "count", spare=1),
    Field("waited_ns", "Waited", "ns"),
    Field("not_compared", "Not compared", "sentence"),
    Field("kernel", "Kernel", "kernel"),
)


def _facts(timeline: Timeline) -> Sequence[tuple[str, str]]:
    lines = [("File", timeline.source)]
    return [*lines, ("Only", timeline.limits)] if timeline.limits else lines


def _sections(timeline: Timeline) -> Sequence[Section]:
    sections = [_section("Devices", _DEVICE_FIELDS, timeline.devices)]
    if timeline.devices.is_empty():
        return sections
    if timeline.strip.edges_ns:
        sections.append(_strip_section(timeline))
    if timeline.streams.height > timeline.devices.height:
        sections.append(_section("Streams", _STREAM_FIELDS, timeline.streams))
    if not timeline.causes.is_empty():
        gaps_found = format_counted(timeline.gap_count, "gap")
        notes = (
            f"Pieces: {gaps_found} in all; one that has several causes is a piece of each.",
            f"launch_gap: queued in time, began within {format_duration(LAUNCH_GAP_NS)}.",
        )
        sections.append(_section("Idle by cause", _CAUSE_FIELDS, timeline.causes, *notes))
        gaps = _renamed(timeline.gaps, demangle, "kernel", "after").pipe(_renamed, canonical_api, "api")
        sections.append(_section("Longest gaps", _GAP_FIELDS, gaps))
    if not timeline.messages.is_empty():
        sections.append(_message_section(timeline))
    if not timeline.ranks.frame.is_empty():
        sections.append(_section("Ranks", _RANK_FIELDS, timeline.ranks.frame))
    if not timeline.ranks.collectives.is_empty():
        collectives = _renamed(timeline.ranks.collectives, demangle, "kernel")
        sections.append(_section("Collectives", _COLLECTIVE_FIELDS, collectives))
    return sections


def _remarks(timeline: Timeline) -> Sequence[str]:
    return timeline.notable


def _message_section(timeline: Timeline) -> Section:
    frame = timeline.messages.with_columns((pl.col("dur_ns") / pl.col("count")).alias("mean_ns"))
    notes = [
        "Message: the larger of what a rank puts in and gets out.",
        "Bytes/s: that over the kernel's time, in which it may also have waited for other ranks.",
    ]
    if frame.height > _MESSAGES:
        notes.append(f"{frame.height - _MESSAGES:,} more that take less time: --json has all.")
    return _section("Messages", _MESSAGE_FIELDS, _renamed(frame.head(_MESSAGES), demangle, "kernel"), *notes)


def _strip_section(timeline: Timeline) -> Section:
    stream = pl.when("whole").then(pl.lit("all")).otherwise(pl.col("stream").cast(pl.String))
    frame = timeline.strip.lanes.select(
        *PLACE,
        "whole",
        stream.alias("stream"),
        pl.Series("cells", timeline.strip.drawn(timeline.glyphs), dtype=pl.String),
    )
    notes = [f"{timeline.glyphs.legend()}."]
    if frame.height > _LANES and frame.height > timeline.devices.height:
        frame = frame.filter("whole")
        notes.append("Streams are too many to draw: choose a device, or --json.")
    fields = (
        _RANK,
        _DEVICE,
        Field("stream", "Stream", "text"),
        Field("cells", timeline.strip.axis(timeline.origin_ns), "drawing"),
    )
    return _section("Time line", fields, frame, *notes)


def _section(title: str, fields: Sequence[Field], frame: pl.DataFrame, *notes: str) -> Section:
    """Without a column of ranks where there are none."""
    without = frame.height > 0 and "rank" in frame.columns and frame["rank"].null_count() == frame.height
    return Section(title, [field for field in fields if not (without and field is _RANK)], frame, notes)


def _renamed(frame: pl.DataFrame, rename: Callable[[str], str], *columns: str) -> pl.DataFrame:
    return frame.with_columns(
        pl.Series(name, [None if text is None else rename(text) for text in frame[name]], dtype=pl.String)
        for name in columns
    )


VIEW = View(schema=Schema("timeline", 1), facts=_facts, sections=_sections, remarks=_remarks)
