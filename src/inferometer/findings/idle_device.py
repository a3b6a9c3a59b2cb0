"""A device that runs nothing because the host is late, and what the host did meanwhile.

Counts idle gaps of 50 μs or more that the host caused (`host_late` and `sync` of the time line): the call that queued
the next work came after the device had run dry. Shorter ones are the rhythm of launching, the matter of
`launch_bound`. The device with the largest share of its window in such gaps stands for all. What the launching thread
did is read from its frames, ops and calls at eight moments of each gap.

Normal: an engine that prepares each step after it has read the tokens of the last leaves the device idle between
steps. That is 0 to 2 % in generated runs of graphs with 32 to 256 requests, 2 to 5 % in captures of one forward pass
from H100 and MI300, and up to 9 % in generated exports of Nsight Systems. Fires from 12 % of the window: `low`; from
20 % `medium`, from 40 % `high`.
"""

from collections.abc import Iterator

import polars as pl

from inferometer.findings.finding import Finding, Scale
from inferometer.findings.host_path import HostPath, describe_site, find_host_path
from inferometer.findings.launch_evidence import LaunchEvidence
from inferometer.findings.places import Place, grave_place
from inferometer.findings.rule import Evidence, Rule
from inferometer.units import format_duration, format_share

LONG_GAP_NS = 50_000
"""Eager launches follow each other within 5 to 30 μs in captures of PyTorch; a gap of more is no launch's cost."""

_SCALE = Scale(low=0.12, medium=0.20, high=0.40)
_SITES = 2  # places in the code to name
_SITE_SHARE = 0.1  # of the time: less is not worth a sentence


def _find(evidence: Evidence) -> Iterator[Finding]:
    launches = evidence.launches
    if launches is None:
        return
    late = launches.gaps.filter(pl.col("cause").is_in(["host_late", "sync"]), pl.col("gap_ns") >= LONG_GAP_NS)
    grave = grave_place(launches, late, "gap_ns", _SCALE)
    if grave is None:
        return
    place, idle_ns, severity = grave
    gaps = place.of(late)
    path = find_host_path(evidence.trace, gaps)
    sites = _sites(launches, gaps)
    share = idle_ns / place.window_ns
    yield Finding(
        rule=RULE.name,
        severity=severity,
        title=f"{place.name} waits {format_share(share)} of its time for the host{_where(path, sites)}",
        evidence=(
            _size(launches, place, gaps, idle_ns),
            *_meanwhile(path),
            *_ended(sites, idle_ns),
        ),
        size_ns=idle_ns,
        share=share,
        next=_next(path, evidence.trace.facts.framework),
    )


def _where(path: HostPath | None, sites: list[tuple[str | None, int]]) -> str:
    """Where the host was meanwhile, or else what it launched next, as the end of the title."""
    if path is not None and path.name:
        return f", which is in {path.name}"
    known = next((site for site, _ in sites if site), None)
    return f", before it launches {known}" if known else ""


def _size(launches: LaunchEvidence, place: Place, gaps: pl.DataFrame, idle_ns: int) -> str:
    longest = gaps.sort("gap_ns", descending=True).row(0, named=True)
    after = gaps.filter(pl.col("waited_in").is_not_null())
    waited = ""
    if after.height:
        names = ", ".join(sorted(after["waited_in"].unique()))
        waited = f" {format_duration(int(after['gap_ns'].sum()))} of it follow a wait of the host ({names})."
    return (
        f"Idle for {format_duration(idle_ns)} of {format_duration(place.window_ns)} in {gaps.height:,} gaps of "
        f"{format_duration(LONG_GAP_NS)} or more because the next work was queued late{launches.a_step(idle_ns)}; "
        f"the longest has {format_duration(longest['gap_ns'])}.{waited}"
    )


def _meanwhile(path: HostPath | None) -> Iterator[str]:
    if path is not None and path.text:
        yield f"For {format_share(path.share)} of that time the launching thread was in {path.text}."
    if path is not None and path.call:
        yield f"For {format_share(path.call[1])} of that time it was in the call {path.call[0]}."


def _sites(launches: LaunchEvidence, gaps: pl.DataFrame) -> list[tuple[str | None, int]]:
    """What launched the work that ended the gaps, and the gaps' time; the most first."""
    columns = ("op_chain", "user_frame")
    sites = launches.attribution.sites.select("node", *columns)
    known = gaps.select("node", "gap_ns").join(sites, on="node", how="left")
    sums = known.group_by(columns).agg(pl.col("gap_ns").sum()).sort("gap_ns", *columns, descending=[True, False, False])
    return [(describe_site(op_chain, frame), int(ns)) for op_chain, frame, ns in sums.head(_SITES).iter_rows()]


def _ended(sites: list[tuple[str | None, int]], idle_ns: int) -> Iterator[str]:
    told = [(site, ns) for site, ns in sites if site and ns >= _SITE_SHARE * idle_ns]
    if told:
        listed = ", ".join(f"{site} ({format_duration(ns)})" for site, ns in told)
        yield f"The work that ended the gaps is launched by {listed}."


def _next(path: HostPath | None, framework: str | None) -> str:
    if framework == "WebGPU":
        return (
            "Put more decode steps into a submit, or record the next one before the tokens of the last are read back: "
            "see how steps part into recording, submitting, waiting and reading, inferometer spans."
        )
    if path is None or path.name is None:
        return (
            "Record the host's side, and see what it does meanwhile: torch.profiler with with_stack=True, or nsys "
            "profile --python-sampling=true --trace=cuda,nvtx,osrt."
        )
    return f"Queue the next work before {path.name}, or do that on another thread or on the device."


RULE = Rule("idle_device", _find)
