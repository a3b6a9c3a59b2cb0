"""The time line: is a device idle and why, what is exposed, do streams overlap, which rank lags.

`exposure` says what runs and what is exposed, `gaps` why a device waits, `ranks` who keeps the others waiting, `strip`
draws it; here they become one answer.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl
from msgspec.structs import replace

from inferometer.analyses.result import Result
from inferometer.analyses.selection import Selection
from inferometer.analyses.timeline.collectives import recorded_collectives, sum_messages
from inferometer.analyses.timeline.exposure import device_exposure, stream_times
from inferometer.analyses.timeline.gaps import LAUNCH_GAP_NS, find_gaps, longest_gaps, number_of_gaps, sum_causes
from inferometer.analyses.timeline.ranks import Ranks, compare_ranks
from inferometer.analyses.timeline.remarks import find_remarks
from inferometer.analyses.timeline.strip import BLOCKS, Glyphs, Strip, cut_strip
from inferometer.analyses.timeline.work import PLACE, Work, find_work
from inferometer.trace.losses import Losses
from inferometer.trace.trace import Trace
from inferometer.units import format_duration

_GAPS = ("place", *PLACE, "gap_start_ns", "gap_ns", "cause", "api", "waited_in")


@dataclass(frozen=True)
class Timeline(Result):
    """Frames with exact times in ns; `at_ns` counts from `origin_ns`, the trace's earliest time, as `--between` does.

    `devices` is the main table. `gaps` are the longest only; `causes` sums up all `gap_count` of them, where a gap of
    several causes is a piece of each. `messages`: what collectives exchange, where the source records it; columns of
    `collectives.sum_messages`.
    """

    view: ClassVar[str] = "timeline"
    source: str
    origin_ns: int
    devices: pl.DataFrame
    streams: pl.DataFrame
    causes: pl.DataFrame
    gap_count: int
    gaps: pl.DataFrame
    ranks: Ranks
    messages: pl.DataFrame
    strip: Strip
    limits: str
    notable: tuple[str, ...]
    losses: Losses
    glyphs: Glyphs = BLOCKS

    def to_polars(self) -> pl.DataFrame:
        """One row per device."""
        return self.devices

    def as_json(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "origin_ns": self.origin_ns,
            "launch_gap_limit_ns": LAUNCH_GAP_NS,
            "devices": self.devices.to_dicts(),
            "streams": self.streams.to_dicts(),
            "idle_causes": self.causes.to_dicts(),
            "gap_count": self.gap_count,
            "gaps": self.gaps.to_dicts(),
            "ranks": self.ranks.frame.to_dicts(),
            "messages": self.messages.to_dicts(),
            "compute_imbalance": self.ranks.imbalance,
            "collectives": self.ranks.collectives.to_dicts(),
            "strip": self.strip.as_json(),
            "remarks": list(self.notable),
            "losses": self.losses.as_dict(),
        }


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
    recorded = recorded_collectives(trace)
    ranks = compare_ranks(work, devices, recorded)
    origin_ns = (trace.window() or (0, 0))[0]
    streams, strip = stream_times(cut, devices), cut_strip(work, cut, width)
    longest = _listed(longest_gaps(trace, work, top), origin_ns)
    gaps = find_gaps(trace, work, _GAPS)  # half a GB of ten million launches: when all else is made
    return Timeline(
        source=trace.facts.source,
        origin_ns=origin_ns,
        devices=_plain(devices),
        streams=_plain(streams),
        causes=_plain(sum_causes(gaps)),
        gap_count=number_of_gaps(gaps),
        gaps=_plain(longest),
        ranks=replace(ranks, frame=_plain(ranks.frame), collectives=_plain(ranks.collectives)),
        messages=_plain(sum_messages(work, recorded)),
        strip=strip,
        limits=_limits(selection, work, origin_ns),
        notable=tuple(find_remarks(trace, devices, gaps, ranks)),
        losses=trace.losses,
        glyphs=glyphs,
    )


def _plain(frame: pl.DataFrame) -> pl.DataFrame:
    """With text in place of categories."""
    return frame.with_columns(pl.col(pl.Categorical).cast(pl.String))


def _listed(gaps: pl.DataFrame, origin_ns: int) -> pl.DataFrame:
    return gaps.select(
        (pl.col("gap_start_ns") - origin_ns).alias("at_ns"),
        *("gap_ns", *PLACE, "gap_start_ns", "cause", pl.col("waited_in").cast(pl.String), "wait_end_ns"),
        *(pl.col("api").cast(pl.String), "called_ns", "call_end_ns"),
        (pl.col("called_ns") - pl.col("gap_start_ns")).alias("called_after_ns"),
        (pl.col("call_end_ns") - pl.col("called_ns")).alias("call_ns"),
        *("stream", "kernel", "after"),
    )


def _limits(selection: Selection | None, work: Work, origin_ns: int) -> str:
    """What was selected."""
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
