"""A device that is idle for a large part of its window: of which kind, and what the host did meanwhile.

Idle gaps have a kind (`evidence.idle_kinds`); the rhythm of launching kernels one by one is the matter of
`launch_bound`, each other kind is a finding of its own: the host was late, queued work did not begin, one call's
launches pause, the calls aren't in the file. Where none of them is large but all of a device's idle time is, that is
the finding. So a device that idles for long always has one. The device with the largest share of its window stands for
all; the others that are as idle are named.

What the launching threads did is the exact overlap of the gaps with their calls, ops and frames. Where queued work did
not begin, it is asked what call any thread of the rank was in for 100 μs or more.

Normal: an engine that prepares each step after it has read the tokens of the last leaves the device idle between
steps. That is 0 to 2 % in generated runs of graphs with 32 to 256 requests, 2 to 5 % in captures of one forward pass
from H100 and MI300, and up to 9 % in generated exports of Nsight Systems. Fires from 12 % of the window: `low`; from
20 % `medium`, from 40 % `high`.
"""

from collections.abc import Iterator
from typing import Final

import msgspec
import polars as pl

from inferometer.analyses.timeline.budget import IDLE, part_key
from inferometer.findings.evidence.idle_host import describe_host
from inferometer.findings.evidence.idle_kinds import IdleKind
from inferometer.findings.evidence.idle_queue import are_pauses, describe_pauses, describe_queued
from inferometer.findings.evidence.idle_words import Words, describe_size
from inferometer.findings.evidence.launch_evidence import LaunchEvidence
from inferometer.findings.evidence.places import BusiestDevice, places_of
from inferometer.findings.finding import Finding, Scale, Severity
from inferometer.findings.rule import Evidence, Rule
from inferometer.findings.rules.launches.launch_bound import launch_bound_places
from inferometer.trace.lean import slices_of
from inferometer.units import format_duration, format_share

_SCALE = Scale("idle_device", low=0.12, medium=0.20, high=0.40)
_KINDS: Final[tuple[IdleKind, ...]] = ("host", "queued", "graph", "unknown", "recorder")
_OF_KIND: Final = {
    "launching": "late launches one by one",
    "host": "the host was late",
    "queued": "queued work did not begin",
    "pauses": "pauses between queued launches",
    "graph": "between the launches of one call",
    "unknown": "the call isn't in the file",
    "recorder": "the recording was cut",
}


class _Idle(msgspec.Struct, frozen=True):
    """A place with its idle time of one kind, or of all that no finding has."""

    place: BusiestDevice
    idle_ns: int
    severity: Severity

    @property
    def share(self) -> float:
        """Idle time as a share of its window."""
        return self.idle_ns / self.place.window_ns


def _find(evidence: Evidence) -> Iterator[Finding]:
    launches = evidence.launches
    if launches is None:
        return
    places = places_of(launches)
    is_bound = {place.name for place in launch_bound_places(launches)}
    explained: set[str] = set()
    for kind in _KINDS:
        idle = _idle_places(launches, places, (kind,))
        explained |= {each.place.name for each in idle}
        if idle:
            yield _finding(evidence, launches, (kind,), idle)
    for bound, kinds in ((False, ("launching", *_KINDS)), (True, _KINDS)):
        rest = [place for place in places if place.name not in explained and (place.name in is_bound) is bound]
        idle = _idle_places(launches, rest, kinds)
        if idle:
            yield _finding(evidence, launches, kinds, idle)


def _gaps(launches: LaunchEvidence, place: BusiestDevice, kinds: tuple[IdleKind, ...]) -> pl.DataFrame:
    own = launches.gaps.select(pl.col("kind").is_in(kinds)).to_series()
    return place.of(launches.gaps if own.all() else launches.gaps.filter(own))


def _idle_places(launches: LaunchEvidence, places: list[BusiestDevice], kinds: tuple[IdleKind, ...]) -> list[_Idle]:
    """Places that are idle like this for a share on the scale, the largest first."""
    found = []
    for place in places:
        idle_ns = sum(launches.idle_ns(place.rank, place.device, kind) for kind in kinds)
        severity = _SCALE.severity(idle_ns / place.window_ns)
        if severity is not None:
            found.append(_Idle(place, idle_ns, severity))
    return sorted(found, key=lambda idle: -idle.share)


def _finding(evidence: Evidence, launches: LaunchEvidence, kinds: tuple[IdleKind, ...], idle: list[_Idle]) -> Finding:
    worst, *others = idle
    gaps = _gaps(launches, worst.place, kinds)
    words = _describe(evidence, launches, kinds, worst, gaps)
    is_asked_for = evidence.is_on_cpu and kinds == ("recorder",)  # no fault of the program's, whatever its share
    return Finding(
        rule=RULE.name,
        severity="low" if is_asked_for else worst.severity,
        title=f"{worst.place.name} {words.title.format(share=format_share(worst.share))}",
        evidence=(*words.evidence, *_others(others)),
        size_ns=worst.idle_ns,
        share=worst.share,
        next=words.next,
        idle_ns=sum(each.idle_ns for each in idle),
        parts=tuple(part_key(IDLE, cause) for cause in gaps["cause"].unique().cast(pl.String).sort()),
    )


def _describe(
    evidence: Evidence, launches: LaunchEvidence, kinds: tuple[IdleKind, ...], worst: _Idle, gaps: pl.DataFrame
) -> Words:
    kind = kinds[0] if len(kinds) == 1 else None
    if evidence.is_on_cpu:
        return _unseen_on_cpu(worst, gaps) if kind == "recorder" else _on_cpu(launches, worst, gaps)
    if kind == "host":
        return describe_host(evidence, launches, worst.place, gaps)
    if kind == "queued" and are_pauses(gaps):
        return describe_pauses(evidence, launches, worst.place, gaps)
    if kind in ("queued", "graph"):
        return describe_queued(evidence, launches, worst.place, gaps, inside_call=kind == "graph")
    if kind == "unknown":
        return _unrecorded(evidence, worst, gaps)
    if kind == "recorder":
        return _of_recorder(worst, gaps)
    return _together(worst, gaps, beside_launching="launching" not in kinds)


def _on_cpu(launches: LaunchEvidence, worst: _Idle, gaps: pl.DataFrame) -> Words:
    size = f"No op runs for {describe_size(worst.place, gaps)}{launches.a_step(worst.idle_ns)}"
    return Words(
        "runs no op for {share} of the time",
        (f"{size}. That is time of Python, of the framework, or of what wasn't recorded.",),
        "See which modules it is in: inferometer tree.",
    )


_BY_OTHERS = "torch.profiler with ProfilerActivity.CPU, nsys with --trace=cuda"
_RECORDS_CALLS = dict.fromkeys(
    ("rocprof", "rocpd"), "rocprofv3 with --hip-trace, torch.profiler with ProfilerActivity.CPU"
)


def _unrecorded(evidence: Evidence, worst: _Idle, gaps: pl.DataFrame) -> Words:
    if evidence.trace.calls.select(pl.len()).collect().item():
        why = "the call that queued what ended them isn't in the file"
        step = "Record the window again with a few steps before it, or leave its beginning out with --between."
    else:
        why = "the file has no calls of the host"
        step = f"Record the host's calls, too: {_RECORDS_CALLS.get(evidence.trace.facts.format, _BY_OTHERS)}."
    return Words(
        "is idle {share} of its time, and the file doesn't tell why",
        (f"It is idle for {describe_size(worst.place, gaps)}: {why}.",),
        step,
    )


def _of_recorder(worst: _Idle, gaps: pl.DataFrame) -> Words:
    why = "the profiler ended a window and began the next, which takes longer the more kernels a window has"
    size = f"Idle for {describe_size(worst.place, gaps)}: {why}. Without the recorder this time isn't there."
    return Words(
        "stands still for {share} of its time while the recording is cut: that is the recorder's doing",
        (size,),
        "Leave it out where you add up times; compare leaves out steps with it. A shorter recording has less of it.",
    )


def _unseen_on_cpu(worst: _Idle, gaps: pl.DataFrame) -> Words:
    why = "the recording left steps out, or ended a window of its profile"
    return Words(
        "wasn't observed for {share} of the time: that is the recorder's doing",
        (f"No op was observed in {describe_size(worst.place, gaps)}: {why}. What ran there isn't in the file.",),
        "Leave it out where you add up times, or record every step: without --ops-every.",
    )


def _together(worst: _Idle, gaps: pl.DataFrame, *, beside_launching: bool) -> Words:
    """Of all kinds, none of which is large; late launches one by one may be another finding's."""
    is_pause = pl.col("cause") == "launch_gap"
    kind = pl.when("is_pause").then(pl.lit("pauses")).otherwise(pl.col("kind").cast(pl.String)).alias("kind")
    by = ("kind", is_pause.alias("is_pause"))
    parts = pl.concat(rows.group_by(by).agg(pl.col("gap_ns").sum()) for rows in slices_of(gaps))
    sums = parts.group_by(kind).agg(pl.col("gap_ns").sum()).sort("gap_ns", "kind", descending=[True, False])
    known = "; ".join(f"{_OF_KIND[kind]} {format_duration(ns)}" for kind, ns in sums.iter_rows())
    besides_late = " besides late launches one by one" if beside_launching else ""
    return Words(
        f"is idle {{share}} of its time{besides_late}, for several reasons",
        (f"It is idle{besides_late} for {describe_size(worst.place, gaps)}: {known}.",),
        "See which gaps are the longest and what ended them: inferometer timeline.",
    )


def _others(others: list[_Idle]) -> Iterator[str]:
    if len(others) == 1:
        yield f"{others[0].place.name} is idle like this for {format_share(others[0].share)} of its window."
    elif others:
        shares = [each.share for each in others]
        yield (
            f"{len(others):,} other devices are idle like this for {format_share(min(shares))} to "
            f"{format_share(max(shares))} of their windows."
        )


RULE = Rule("idle_device", _find, (_SCALE,))
