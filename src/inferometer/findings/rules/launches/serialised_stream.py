"""A second stream that never runs in parallel with the first, because each waits for the other's events.

Looked at are kernels that compute and that calls of their own launched; the branches of a replayed graph, collectives
and copies are not. Fires for a stream that has at least 5 % of the window in kernels if all of this holds:

- less than 2 % of its time runs in parallel with any other work of the device;
- it takes turns with the first stream at least ten times, and the host has queued at least as many waits of streams for
  events (`cudaStreamWaitEvent`);
- the first stream, too, has at least 5 % of the window.

Streams that may overlap do so at their edges at least, so 2 % is little; without waits for events full kernels may just
have left no room, and nothing is reported. Whether the data need the order, a trace doesn't say. Normal: no second
stream, or one that overlaps. By its time's share of the window `low` from 5 %, `medium` from 15 %, `high` from 30 %.
"""

from collections.abc import Iterator

import msgspec
import numpy as np
import polars as pl

from inferometer.analyses.cover import Cover
from inferometer.findings.evidence.host_path import describe_site
from inferometer.findings.evidence.launch_evidence import LaunchEvidence
from inferometer.findings.evidence.places import BusiestDevice, places_of
from inferometer.findings.finding import Finding, Scale
from inferometer.findings.rule import Evidence, Rule
from inferometer.names.apis import canonical_api
from inferometer.names.communication import find_collective
from inferometer.units import format_duration, format_share

_SCALE = Scale("serialised_stream", low=0.05, medium=0.15, high=0.30)
_OVERLAPS = 0.02
_TURNS = 10
_WAIT = ("cudaStreamWaitEvent", "cuStreamWaitEvent", "hipStreamWaitEvent")


class _Second(msgspec.Struct, frozen=True):
    """A stream next to the first.

    `between_ns`: idle time of both where one takes over from the other. `event_waits`: how many waits for events its
    rank has.
    """

    stream: int
    first: int
    busy_ns: int
    overlap_ns: int
    turns: int
    event_waits: int
    between_ns: int
    site: str | None


def _find(evidence: Evidence) -> Iterator[Finding]:
    launches = evidence.launches
    if launches is None or launches.work["stream"].n_unique() < 2:
        return
    waits = _event_waits(evidence)
    found = [
        (second, place)
        for place in places_of(launches)
        for second in _serial(launches, place, waits.get(place.rank, 0))
    ]
    if not found:
        return
    second, place = max(found, key=lambda each: each[0].busy_ns / each[1].window_ns)
    share = second.busy_ns / place.window_ns
    severity = _SCALE.severity(share)
    if severity is None:
        return
    yield Finding(
        rule=RULE.name,
        severity=severity,
        title=(
            f"stream {second.stream} {_seldom(second)} in parallel with stream {second.first} on {place.name}: "
            "they take turns"
        ),
        evidence=(
            (
                f"It works for {format_duration(second.busy_ns)}{launches.a_step(second.busy_ns)}, "
                f"{format_share(share)} of the window; {format_duration(second.overlap_ns)} of that in parallel "
                "with other work."
            ),
            (
                f"It takes over {second.turns:,} times, and at the changes to and fro both idle "
                f"{format_duration(second.between_ns)} in all; the host queues {second.event_waits:,} waits of streams "
                "for events."
            ),
            *([f"Most of its work is launched by {second.site}."] if second.site else []),
        ),
        size_ns=second.busy_ns,
        share=share,
        next="See which waits for events (torch.cuda.Stream.wait_stream, wait_event) tie the two together, and take "
        "off those that the data don't need; if all are needed, launch on one stream.",
    )


def _seldom(second: _Second) -> str:
    return "hardly runs" if second.overlap_ns else "never runs"


def _event_waits(evidence: Evidence) -> dict[int | None, int]:
    """Calls of each rank that make a stream wait for an event."""
    counts = evidence.trace.compact("calls").group_by("rank", "api").agg(pl.len().cast(pl.Int64).alias("n")).collect()
    waits: dict[int | None, int] = {}
    for rank, api, n in counts.iter_rows():
        if canonical_api(api) in _WAIT:
            waits[rank] = waits.get(rank, 0) + n
    return waits


def _serial(launches: LaunchEvidence, place: BusiestDevice, event_waits: int) -> Iterator[_Second]:
    """The streams of a place that take turns with its first."""
    if event_waits < _TURNS:
        return
    kernels = _kernels(launches, place)
    sums = kernels.group_by("stream").agg(pl.col("dur_ns").sum()).sort("dur_ns", "stream", descending=[True, False])
    streams = [stream for stream, ns in sums.iter_rows() if ns >= _SCALE.least * place.window_ns]
    every = place.of(launches.work.select("rank", "device", "stream", "start_ns", "dur_ns"))
    for stream in streams[1:]:
        own, others = every.filter(pl.col("stream") == stream), every.filter(pl.col("stream").ne_missing(stream))
        busy, elsewhere = _cover(own), _cover(others)
        busy_ns = int((busy.end_ns - busy.start_ns).sum())
        overlap_ns = int(elsewhere.within(busy.start_ns, busy.end_ns).sum())
        both = kernels.filter(pl.col("stream").is_in([streams[0], stream])).sort("start_ns")
        turns, between_ns = _turns(both, stream, _cover(every.filter(pl.col("stream").is_in([streams[0], stream]))))
        if overlap_ns < _OVERLAPS * busy_ns and _TURNS <= turns <= event_waits:
            site = _site(launches, both.filter(pl.col("stream") == stream))
            yield _Second(stream, streams[0], busy_ns, overlap_ns, turns, event_waits, between_ns, site)


def _kernels(launches: LaunchEvidence, place: BusiestDevice) -> pl.DataFrame:
    """Kernels that compute, each launched by a call of its own, on streams that are known."""
    own = launches.work.filter(
        pl.col("kind").cast(pl.String) == "kernel", ~pl.col("is_replay"), pl.col("stream").is_not_null()
    )
    kernels = place.of(own.select("rank", "device", "kernel", "stream", "start_ns", "dur_ns", "node"))
    talking = [name for name in kernels["kernel"].unique().cast(pl.String) if find_collective(name)]
    return kernels.filter(~pl.col("kernel").cast(pl.String).is_in(talking)) if talking else kernels


def _cover(rows: pl.DataFrame) -> Cover:
    start, dur = rows["start_ns"].to_numpy(), rows["dur_ns"].to_numpy()
    return Cover.of(start, start + dur)


def _turns(both: pl.DataFrame, stream: int, busy: Cover) -> tuple[int, int]:
    """How often the second stream takes over from the first, and idle time of both at all changes, ns.

    `busy`: when either has any work, which may be a copy between two kernels.
    """
    changes = both.with_columns(
        (pl.col("stream") != pl.col("stream").shift(1)).alias("is_change"),
        (pl.col("start_ns") + pl.col("dur_ns")).cum_max().shift(1).alias("ended_ns"),
    ).filter("is_change")
    start = changes["start_ns"].to_numpy()
    ended = np.minimum(changes["ended_ns"].to_numpy(), start)
    idle_ns = int((start - ended - busy.within(ended, start)).sum())
    return changes.filter(pl.col("stream") == stream).height, idle_ns


def _site(launches: LaunchEvidence, kernels: pl.DataFrame) -> str | None:
    """The user's frame that launches more than half of the time."""
    sites = launches.attribution.sites.select("node", "user_frame")
    sums = kernels.join(sites, on="node").drop_nulls("user_frame").group_by("user_frame").agg(pl.col("dur_ns").sum())
    largest = sums.sort("dur_ns", "user_frame", descending=[True, False])
    if largest.is_empty() or 2 * largest["dur_ns"][0] <= kernels["dur_ns"].sum():
        return None
    return describe_site(None, largest["user_frame"][0])


RULE = Rule("serialised_stream", _find, (_SCALE,))
