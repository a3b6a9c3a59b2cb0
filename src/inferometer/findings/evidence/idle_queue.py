"""Idle time with work queued, and between the launches of one call: what the host did, and what it may wait for."""

from collections.abc import Iterator

import msgspec
import numpy as np
import polars as pl

from inferometer.analyses.cover import Cover
from inferometer.analyses.timeline.gaps import LAUNCH_GAP_NS
from inferometer.analyses.timeline.host_activity import THREAD
from inferometer.analyses.timeline.waits import waiting_calls
from inferometer.findings.evidence.idle_kinds import count_gaps
from inferometer.findings.evidence.idle_words import MOSTLY, Words, describe_size
from inferometer.findings.evidence.launch_evidence import LaunchEvidence
from inferometer.findings.evidence.other_processes import other_processes
from inferometer.findings.evidence.places import BusiestDevice
from inferometer.findings.rule import Evidence
from inferometer.names import decode
from inferometer.names.apis import canonical_api
from inferometer.trace.facts import Facts
from inferometer.trace.trace import Trace
from inferometer.units import format_counted, format_duration, format_share

_LONG_CALL_NS = 100_000  # a call of less has no part in a long wait
_ENDED = 2  # kernels to name
_SAID_SHARE = 0.1
_USUAL_SHARE = 0.01
_NEARLY_ALL = 0.8
_UNKNOWN = (
    "What the work waited for, the trace doesn't tell: an event of another stream, another rank or device, or work "
    "that the file doesn't hold."
)


class _Blocked(msgspec.Struct, frozen=True):
    """The call in which threads of the rank were for the most of some time: `count` calls, `open_ns` of it.

    `is_waiting`: all of these calls waited for a device themselves.
    """

    api: str
    count: int
    open_ns: int
    is_waiting: bool


def describe_queued(
    evidence: Evidence, launches: LaunchEvidence, place: BusiestDevice, gaps: pl.DataFrame, *, inside_call: bool
) -> Words:
    """Title, evidence and next step of idle time of the kinds `queued` and `graph`."""
    idle_ns, (_, longest_ns) = int(gaps["gap_ns"].sum()), count_gaps(gaps)
    blocked = _blocked(evidence.trace, gaps)
    is_submit = inside_call and evidence.trace.facts.framework == "WebGPU"
    where = "between the launches of submits" if is_submit else "between the nodes of graph replays"
    title = where if inside_call else "with work queued that does not begin"
    while_in = ""
    if blocked is not None and blocked.open_ns > MOSTLY * idle_ns:
        while_in = f", while the host is in {blocked.api}"
    others = other_processes(evidence.trace, place.device)
    what = f"It idles {where}" if inside_call else "Work had been queued and did not begin"
    sentences = (
        f"{what} for {describe_size(place, gaps)}{launches.a_step(idle_ns)}.{_usual(gaps)}",
        *_ended(gaps, idle_ns),
        *_while_blocked(blocked, idle_ns),
        others.in_words() if others else _UNKNOWN,
    )
    if others is not None and others.is_usual:
        alone = f"Stop what else computes on {others.device} and record again: inferometer compare says what that took."
        return Words(f"idles {{share}} of its time {title}{while_in}", sentences, alone)
    return Words(
        f"idles {{share}} of its time {title}{while_in}",
        sentences,
        _next(evidence.trace.facts, blocked, idle_ns, longest_ns, is_submit=is_submit, inside_call=inside_call),
    )


def describe_pauses(evidence: Evidence, launches: LaunchEvidence, place: BusiestDevice, gaps: pl.DataFrame) -> Words:
    """The same where nearly all of it are the short pauses between launches that were queued in time."""
    pauses = gaps.filter(pl.col("cause") == "launch_gap")
    median_ns = float(np.median(pauses["gap_ns"].to_numpy()))
    steps = launches.a_step(int(gaps["gap_ns"].sum()))
    return Words(
        "pauses for {share} of its time between launches that were queued in time",
        (
            f"It is idle for {describe_size(place, gaps)}{steps}.{_usual(gaps)}",
            f"The median pause is {format_duration(median_ns)}: what this device takes between two launches.",
        ),
        "Have fewer launches do the same: fused kernels (torch.compile, a library's), larger batches.",
    )


def are_pauses(gaps: pl.DataFrame) -> bool:
    """Whether nearly all of the time of these gaps is short pauses between launches that were queued in time."""
    pauses_ns = int(gaps.filter(pl.col("cause") == "launch_gap")["gap_ns"].sum())
    return pauses_ns > _NEARLY_ALL * int(gaps["gap_ns"].sum())


def _usual(gaps: pl.DataFrame) -> str:
    """How much of it are the short pauses that a device makes between any two launches."""
    pauses = gaps.filter(pl.col("cause") == "launch_gap")
    pauses_ns = int(pauses["gap_ns"].sum())
    if pauses_ns < _USUAL_SHARE * int(gaps["gap_ns"].sum()):
        return ""
    count = format_counted(pauses.height, "pause")
    return f" {format_duration(pauses_ns)} of it are {count} of up to {format_duration(LAUNCH_GAP_NS)}."


def _ended(gaps: pl.DataFrame, idle_ns: int) -> Iterator[str]:
    """The kernels before which most of the time is lost."""
    sums = gaps.group_by("kernel").agg(pl.col("gap_ns").sum(), pl.col("gap").n_unique().alias("count"))
    named = sums.with_columns(pl.col("kernel").cast(pl.String)).sort("gap_ns", "kernel", descending=[True, False])
    known = [
        f"{decode(kernel).short_name} ({format_duration(ns)}, {count:,} {'time' if count == 1 else 'times'})"
        for kernel, ns, count in named.head(_ENDED).iter_rows()
        if kernel and ns >= _SAID_SHARE * idle_ns
    ]
    if known:
        yield f"The most time is lost before {', '.join(known)}."


def _blocked(trace: Trace, gaps: pl.DataFrame) -> _Blocked | None:
    """The long call that threads of the rank were in for most of the gaps' time; a graph's launch may be long, too."""
    rank = pl.col("rank").eq_missing(pl.lit(gaps["rank"][0], dtype=pl.Int64))
    columns = ("api", "start_ns", "dur_ns")
    rows = trace.calls.filter(rank, pl.col("dur_ns") >= _LONG_CALL_NS).select(*THREAD, *columns).collect()
    waiting = waiting_calls(trace).select(*THREAD, *columns, pl.lit(value=True).alias("is_waiting")).unique()
    long = rows.join(waiting, on=[*THREAD, *columns], how="left", nulls_equal=True)
    within = Cover.of(gaps["gap_start_ns"].to_numpy(), (gaps["gap_start_ns"] + gaps["gap_ns"]).to_numpy())
    found: list[_Blocked] = []
    named = long.with_columns(
        pl.col("api").replace({name: canonical_api(name) for name in long["api"].unique()})
    ).partition_by("api", maintain_order=True)
    for calls in named:
        start = calls["start_ns"].to_numpy()
        end = start + calls["dur_ns"].to_numpy()
        open_ns = int(Cover.of(start, end).within(within.start_ns, within.end_ns).sum())
        inside = within.within(start, end) > 0
        if open_ns:
            waits = bool(calls["is_waiting"].fill_null(value=False).to_numpy()[inside].all())
            found.append(_Blocked(str(calls["api"][0]), int(inside.sum()), open_ns, waits))
    return max(found, key=lambda each: (each.open_ns, each.api), default=None)


def _while_blocked(blocked: _Blocked | None, idle_ns: int) -> Iterator[str]:
    if blocked is None or blocked.open_ns < _SAID_SHARE * idle_ns:
        return
    calls = format_counted(blocked.count, "call")
    known = (
        f"For {format_duration(blocked.open_ns)} of that ({format_share(blocked.open_ns / idle_ns)}) the host was in "
        f"{blocked.api} ({calls})"
    )
    yield f"{known}, which waited for the device, too." if blocked.is_waiting else f"{known}."


def _next(
    facts: Facts, blocked: _Blocked | None, idle_ns: int, longest_ns: int, *, is_submit: bool, inside_call: bool
) -> str:
    if is_submit:
        return "See which kernels the pauses are before: inferometer timeline; fewer, larger dispatches have fewer."
    if longest_ns > MOSTLY * idle_ns:
        is_in = blocked is not None and not blocked.is_waiting and blocked.open_ns > MOSTLY * idle_ns
        during = f" and what {blocked.api} does there" if blocked is not None and is_in else ""
        return (
            f"One gap is most of it: see what stands around it{during} (inferometer timeline gives its time), or leave "
            "it out with --between."
        )
    if (facts.world_size or 1) > max(1, len(facts.ranks)):
        return (
            f"Profile all {facts.world_size:,} ranks at once and open their folder, to see whether it waits for "
            "another one: inferometer timeline FOLDER."
        )
    if inside_call:
        return (
            "See which nodes the longest gaps end with (inferometer timeline), and what these depend on in the graph; "
            "fewer nodes leave fewer gaps."
        )
    return (
        "See which kernels the longest gaps end with (inferometer timeline), and which events their streams wait for: "
        "the calls of cudaStreamWaitEvent before theirs."
    )
