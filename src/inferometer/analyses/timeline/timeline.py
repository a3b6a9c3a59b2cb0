"""The time line: is a device idle and why, what is exposed, do streams overlap, which rank lags.

`exposure` says what runs and what is exposed, `gaps` why a device waits, `ranks` who keeps the others waiting, `strip`
draws it; here they become one answer.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from inferometer.analyses.result import Field, Result, Section
from inferometer.analyses.selection import Selection
from inferometer.analyses.timeline.collectives import recorded_collectives, sum_messages
from inferometer.analyses.timeline.exposure import device_exposure, stream_times
from inferometer.analyses.timeline.gaps import LAUNCH_GAP_NS, find_gaps, sum_causes
from inferometer.analyses.timeline.ranks import Ranks, compare_ranks
from inferometer.analyses.timeline.remarks import find_remarks
from inferometer.analyses.timeline.strip import BLOCKS, Glyphs, Strip, cut_strip
from inferometer.analyses.timeline.work import PLACE, Work, find_work
from inferometer.names.apis import canonical_api
from inferometer.names.demangle import demangle
from inferometer.trace.losses import Losses
from inferometer.trace.trace import Trace
from inferometer.units import format_duration

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
    Field("count", "Gaps", "count", spare=2),
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
    Field("kernel", "Ended by", "name"),
    Field("after", "After", "name", spare=5),
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
    Field("kernel", "Kernel", "name", spare=5),
)
_COLLECTIVE_FIELDS = (
    Field("collective", "Collective", "text"),
    Field("group", "Group", "text", spare=2),
    Field("ranks", "Ranks", "count", spare=3),
    Field("most", "A rank", "count", spare=4),
    Field("compared", "Compared", "count", spare=1),
    Field("waited_ns", "Waited", "ns"),
    Field("not_compared", "Not compared", "text"),
    Field("kernel", "Kernel", "name"),
)


@dataclass(frozen=True)
class Timeline(Result):
    """Frames with exact times in ns; `at_ns` counts from `origin_ns`, the trace's earliest time, as `--between` does.

    `devices` is the main table. `gaps` are the longest only; `causes` sums up all. `messages`: what collectives
    exchange, where the source records it; columns of `collectives.sum_messages`.
    """

    source: str
    origin_ns: int
    devices: pl.DataFrame
    streams: pl.DataFrame
    causes: pl.DataFrame
    gaps: pl.DataFrame
    ranks: Ranks
    messages: pl.DataFrame
    strip: Strip
    limits: str
    notable: tuple[str, ...]
    losses: Losses
    glyphs: Glyphs = BLOCKS

    def facts(self) -> Sequence[tuple[str, str]]:
        lines = [("File", self.source)]
        return [*lines, ("Only", self.limits)] if self.limits else lines

    def sections(self) -> Sequence[Section]:
        sections = [_section("Devices", _DEVICE_FIELDS, self.devices)]
        if self.devices.is_empty():
            return sections
        if self.strip.edges_ns:
            sections.append(self._strip_section())
        if self.streams.height > self.devices.height:
            sections.append(_section("Streams", _STREAM_FIELDS, self.streams))
        if not self.causes.is_empty():
            note = f"launch_gap: queued in time, began within {format_duration(LAUNCH_GAP_NS)}."
            sections.append(_section("Idle by cause", _CAUSE_FIELDS, self.causes, note))
            gaps = _renamed(self.gaps, demangle, "kernel", "after").pipe(_renamed, canonical_api, "api")
            sections.append(_section("Longest gaps", _GAP_FIELDS, gaps))
        if not self.messages.is_empty():
            sections.append(self._message_section())
        if not self.ranks.frame.is_empty():
            sections.append(_section("Ranks", _RANK_FIELDS, self.ranks.frame))
        if not self.ranks.collectives.is_empty():
            collectives = _renamed(self.ranks.collectives, demangle, "kernel")
            sections.append(_section("Collectives", _COLLECTIVE_FIELDS, collectives))
        return sections

    def remarks(self) -> Sequence[str]:
        return self.notable

    def as_json(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "origin_ns": self.origin_ns,
            "launch_gap_limit_ns": LAUNCH_GAP_NS,
            "devices": self.devices.to_dicts(),
            "streams": self.streams.to_dicts(),
            "idle_causes": self.causes.to_dicts(),
            "gaps": self.gaps.to_dicts(),
            "ranks": self.ranks.frame.to_dicts(),
            "messages": self.messages.to_dicts(),
            "compute_imbalance": self.ranks.imbalance,
            "collectives": self.ranks.collectives.to_dicts(),
            "strip": self.strip.as_json(),
            "remarks": list(self.notable),
            "losses": self.losses.as_dict(),
        }

    def _message_section(self) -> Section:
        frame = self.messages.with_columns((pl.col("dur_ns") / pl.col("count")).alias("mean_ns"))
        notes = [
            "Message: the larger of what a rank puts in and gets out.",
            "Bytes/s: that over the kernel's time, in which it may also have waited for other ranks.",
        ]
        if frame.height > _MESSAGES:
            notes.append(f"{frame.height - _MESSAGES:,} more that take less time: --json has all.")
        return _section("Messages", _MESSAGE_FIELDS, _renamed(frame.head(_MESSAGES), demangle, "kernel"), *notes)

    def _strip_section(self) -> Section:
        stream = pl.when("whole").then(pl.lit("all")).otherwise(pl.col("stream").cast(pl.String))
        frame = self.strip.lanes.select(
            *PLACE, "whole", stream.alias("stream"), pl.Series("cells", self.strip.drawn(self.glyphs), dtype=pl.String)
        )
        notes = [f"{self.glyphs.legend()}."]
        if frame.height > _LANES and frame.height > self.devices.height:
            frame = frame.filter("whole")
            notes.append("Streams are too many to draw: choose a device, or --json.")
        fields = (
            _RANK,
            _DEVICE,
            Field("stream", "Stream", "text"),
            Field("cells", self.strip.axis(self.origin_ns), "text"),
        )
        return _section("Time line", fields, frame, *notes)


def find_timeline(
    trace: Trace,
    selection: Selection | None = None,
    *,
    top: int = 10,
    width: int = 60,
    glyphs: Glyphs = BLOCKS,
) -> Timeline:
    """The time line of a trace, or of a selection of its launches.

    Args:
        trace: Needs `launches` and `calls`, and `collectives` to say what is exchanged; all tables where the selection
            has a window. Where the source recorded no calls, causes of gaps are `unknown`.
        selection: Which launches count. Of one stream, idle is when that stream runs nothing. A window cuts the
            launches that reach into it.
        top: Longest gaps to list.
        width: Slices of the strip.
        glyphs: How the strip is drawn.

    Raises:
        UnknownName: The trace has no such device, stream or rank.
        InputError: The window is none of this trace, or a table was not read.
    """
    trace.require(("launches", "calls"))
    work = find_work(trace, selection)
    cut = work.cut()
    devices = device_exposure(work, cut)
    gaps = find_gaps(trace, work)
    causes = sum_causes(gaps)
    recorded = recorded_collectives(trace)
    ranks = compare_ranks(work, devices, recorded)
    origin_ns = (trace.window() or (0, 0))[0]
    longest = _longest(gaps, origin_ns, top)
    return Timeline(
        source=trace.facts.source,
        origin_ns=origin_ns,
        devices=devices,
        streams=stream_times(cut, devices),
        causes=causes,
        gaps=longest,
        ranks=ranks,
        messages=sum_messages(work, recorded),
        strip=cut_strip(work, cut, width),
        limits=_limits(selection, work, origin_ns),
        notable=tuple(find_remarks(trace, devices, gaps, ranks)),
        losses=trace.losses,
        glyphs=glyphs,
    )


def _longest(gaps: pl.DataFrame, origin_ns: int, top: int) -> pl.DataFrame:
    order = ["gap_ns", "place", "gap_start_ns"]
    longest = gaps.top_k(top, by=order, reverse=[False, True, True])
    return longest.sort(order, descending=[True, False, False]).select(
        (pl.col("gap_start_ns") - origin_ns).alias("at_ns"),
        *("gap_ns", *PLACE, "gap_start_ns", "cause", pl.col("waited_in").cast(pl.String), "wait_end_ns"),
        *(pl.col("api").cast(pl.String), "called_ns", "call_end_ns"),
        (pl.col("called_ns") - pl.col("gap_start_ns")).alias("called_after_ns"),
        (pl.col("call_end_ns") - pl.col("called_ns")).alias("call_ns"),
        *("stream", "kernel", "after"),
    )


def _limits(selection: Selection | None, work: Work, origin_ns: int) -> str:
    """What was selected, in words."""
    if selection is None:
        return ""
    named = {"device": selection.device, "stream": selection.stream, "rank": selection.rank}
    words = [f"{name} {value}" for name, value in named.items() if value is not None]
    if work.window_ns:
        first, last = (format_duration(time - origin_ns) for time in work.window_ns)
        words.append(f"from {first} to {last}")
    if selection.stream is not None:
        words.append("what runs on other streams counts as idle")
    return ", ".join(words)


def _section(title: str, fields: Sequence[Field], frame: pl.DataFrame, *notes: str) -> Section:
    """Without a column of ranks where there are none."""
    without = frame.height > 0 and "rank" in frame.columns and frame["rank"].null_count() == frame.height
    return Section(title, [field for field in fields if not (without and field is _RANK)], frame, notes)


def _renamed(frame: pl.DataFrame, rename: Callable[[str], str], *columns: str) -> pl.DataFrame:
    return frame.with_columns(
        pl.Series(name, [None if text is None else rename(text) for text in frame[name]], dtype=pl.String)
        for name in columns
    )
