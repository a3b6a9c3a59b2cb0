"""Kernels launched one by one: the device waits for each next launch, or does little but begin and end kernels.

The time has two parts, on the device where they have the largest share of its window:

- idle gaps of the rhythm of launching (`evidence.idle_kinds`): the call for the next work returned after the device had
  gone idle, and no more time passed than is usual between launches. Kernels of any size may wait like this. Longer
  gaps are `idle_device`'s matter, those after a wait of the host `sync_points`';
- kernels below 3 μs that calls of their own launched, with the pause of the device before each. A launch takes the host
  2 to 5 μs, and a kernel that does nothing takes the device 1 to 2 μs: such kernels are launches more than work, even
  where the host is ahead.

Work of graph replays doesn't count: one call queues it all. What a graph would save is an estimate, and reported as
one: all of the gaps but what a replay leaves between its kernels. That is taken from the trace where it has replays,
else 1 μs, which is what captures from H100 and A100 show. Recording makes calls slower, Python stacks most of all:
without a profiler the gaps are shorter.

Normal: eager steps of an 8B model spend 3 % on small kernels, replayed steps 0.3 to 1.1 %, of a 1B model with 4
requests 2.6 %; eager decode of a small model is launch-bound, and that is a finding. Fires from 5 % of the window:
`low`; from 12 % `medium`, from 30 % `high`.
"""

from collections.abc import Iterator

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from inferometer.analyses.launched_by.host_side import THREAD
from inferometer.analyses.nesting import order_points
from inferometer.analyses.timeline.budget import IDLE, part_key
from inferometer.findings.evidence.host_path import describe_site
from inferometer.findings.evidence.idle_kinds import FEW, LAUNCHING_SCALE, count_gaps
from inferometer.findings.evidence.launch_evidence import LaunchEvidence
from inferometer.findings.evidence.launching import TINY_NS, late_gaps, tiny_kernels, tiny_pauses
from inferometer.findings.evidence.places import BusiestDevice, grave_place, places_of
from inferometer.findings.finding import Finding, Severity
from inferometer.findings.rule import Evidence, Rule
from inferometer.trace.lean import has_one
from inferometer.units import format_duration, format_share

_SCALE = LAUNCHING_SCALE
_REPLAY_GAP_NS = 1_000
_MOSTLY = 0.5


class _Bound(msgspec.Struct, frozen=True):
    """The place on which launching takes the largest share, and how long all its parts take there."""

    place: BusiestDevice
    size_ns: int
    severity: Severity


class _Launching(msgspec.Struct, frozen=True):
    """Of one place: kernels launched one by one, the gaps before them, and of these kernels the tiny ones.

    `late`: gaps of the kind `launching`; `pauses`: those before tiny kernels that were queued in time. `kernels`: rows
    of those launched one by one.
    """

    kernels: NDArray[np.uint32]
    late: pl.DataFrame
    pauses: pl.DataFrame
    tiny: pl.DataFrame

    def times(self) -> pl.DataFrame:
        """`node` and `ns` of every part, summed by node."""
        parts = ((self.late, "gap_ns"), (self.pauses, "gap_ns"), (self.tiny, "dur_ns"))
        return pl.concat([rows.group_by("node").agg(pl.col(name).sum().alias("ns")) for rows, name in parts])


def _find(evidence: Evidence) -> Iterator[Finding]:
    launches = evidence.launches
    bound = None if launches is None else _bound(launches)
    if launches is None or bound is None:
        return
    share = bound.size_ns / bound.place.window_ns
    found = _rows(launches, bound.place)
    site = _site(launches, found.times())
    late_ns = int(found.late["gap_ns"].sum())
    yield Finding(
        rule=RULE.name,
        severity=bound.severity,
        title=f"launching kernels one by one takes {format_share(share)} of the time of {bound.place.name}"
        + (f", mostly in {site}" if site else ""),
        evidence=(
            _rhythm(launches.work, found.kernels),
            _lost(launches, found, bound.size_ns),
            _saving(launches, bound.place, found),
        ),
        size_ns=bound.size_ns,
        share=share,
        next=_next(is_late=late_ns >= _MOSTLY * bound.size_ns),
        idle_ns=sum(_late_ns(launches, place) for place in _bound_places(launches, bound)),
        parts=(part_key(IDLE, "host_late"),),
    )


def launch_bound_places(launches: LaunchEvidence) -> list[BusiestDevice]:
    """The places whose late launches this rule accounts for: that of its finding, others where these alone are many."""
    bound = _bound(launches)
    return [] if bound is None else _bound_places(launches, bound)


def _bound(launches: LaunchEvidence) -> _Bound | None:
    """None where it takes little of each window, or so few kernels are no rhythm."""
    grave = grave_place(launches, launches.launching_ns, "ns", _SCALE)
    return None if grave is None or len(_kernels(launches, grave[0])) < FEW else _Bound(*grave)


def _bound_places(launches: LaunchEvidence, bound: _Bound) -> list[BusiestDevice]:
    own = (bound.place.rank, bound.place.device)
    return [place for place in places_of(launches) if (place.rank, place.device) == own or _is_late(launches, place)]


def _is_late(launches: LaunchEvidence, place: BusiestDevice) -> bool:
    return _SCALE.severity(_late_ns(launches, place) / place.window_ns) is not None


def _late_ns(launches: LaunchEvidence, place: BusiestDevice) -> int:
    return launches.idle_ns(place.rank, place.device, "launching")


def _kernels(launches: LaunchEvidence, place: BusiestDevice) -> NDArray[np.uint32]:
    """The rows of `work` on this place that were launched one by one."""
    rows = place.of(launches.work.select("rank", "device", launches.is_alone).with_row_index("row"))
    return rows.filter("is_alone")["row"].to_numpy()


def _rows(launches: LaunchEvidence, place: BusiestDevice) -> _Launching:
    tiny = tiny_kernels(launches.work, launches.is_alone)
    parts = (late_gaps(launches.gaps), tiny_pauses(launches.gaps, tiny), tiny)
    return _Launching(_kernels(launches, place), *map(place.of, parts))


def _lost(launches: LaunchEvidence, found: _Launching, size_ns: int) -> str:
    count, longest_ns = count_gaps(found.late)
    of_tiny = (
        f"kernels below {format_duration(TINY_NS)} ({found.tiny.height:,} of them) take "
        f"{format_duration(int(found.tiny['dur_ns'].sum()))}, pauses of the device before them "
        f"{format_duration(int(found.pauses['gap_ns'].sum()))}"
    )
    late = (
        f"It idles {format_duration(int(found.late['gap_ns'].sum()))} in {count:,} gaps of up to "
        f"{format_duration(longest_ns)} because the call for the next work returned only after it had gone idle; "
    )
    return f"{late if count else ''}{of_tiny}: {format_duration(size_ns)} together{launches.a_step(size_ns)}."


def _rhythm(work: pl.DataFrame, kernels: NDArray[np.uint32]) -> str:
    """Median times of these rows, of launching them, and from a call to its kernel."""
    own = work.select(*THREAD, "start_ns", "dur_ns", "called_ns")
    own = own if len(kernels) == own.height else own[kernels]
    start, dur, called = (own[name].to_numpy() for name in ("start_ns", "dur_ns", "called_ns"))
    if not has_one(own, *THREAD):
        numbers = own.select(THREAD).unique().with_row_index("number")
        lane = own.join(numbers, on=THREAD, how="left", nulls_equal=True, maintain_order="left")["number"].to_numpy()
        in_time = order_points(lane, called)
        same = lane[in_time][1:] == lane[in_time][:-1]
    else:
        in_time = np.argsort(called, kind="stable")
        same = np.ones(max(0, len(in_time) - 1), dtype=np.bool_)
    between = np.diff(called[in_time])[same]
    medians = (float(np.median(times)) if len(times) else None for times in (dur, between, start - called))
    dur_ns, every, after = map(format_duration, medians)
    return (
        f"The median of {len(kernels):,} kernels launched one by one takes {dur_ns} on the device; the host launches "
        f"one every {every}, and it begins {after} after its call began (medians)."
    )


def _site(launches: LaunchEvidence, times: pl.DataFrame) -> str | None:
    """The user's frame whose launches take more than half of the time."""
    sites = launches.attribution.sites.select("node", "user_frame")
    sums = times.join(sites, on="node").drop_nulls("user_frame").group_by("user_frame").agg(pl.col("ns").sum())
    largest = sums.sort("ns", "user_frame", descending=[True, False])
    if largest.is_empty() or int(largest["ns"][0]) < _MOSTLY * int(times["ns"].sum()):
        return None
    return describe_site(None, largest["user_frame"][0])


def _saving(launches: LaunchEvidence, place: BusiestDevice, found: _Launching) -> str:
    replayed = place.of(launches.gaps).filter(pl.col("cause") == "graph")["gap_ns"]
    measured = replayed.median() if replayed.len() >= FEW else None
    gap_ns, basis = (
        (float(measured), "as the replays in this trace do")
        if isinstance(measured, int | float)
        else (float(_REPLAY_GAP_NS), "an assumption")
    )
    gaps = pl.concat([found.late.select("gap", "gap_ns"), found.pauses.select("gap", "gap_ns")])
    whole = gaps.group_by("gap").agg(pl.col("gap_ns").sum())
    saved_ns = float(whole.select((pl.col("gap_ns") - gap_ns).clip(lower_bound=0).sum()).item())
    return (
        f"Estimate: a graph that leaves {format_duration(gap_ns)} between kernels ({basis}) would save about "
        f"{format_duration(saved_ns)}{launches.a_step(saved_ns)}; the kernels' own time stays, unless they are fused. "
        "Recording slows the host down: without it the gaps are shorter."
    )


def _next(*, is_late: bool) -> str:
    if is_late:
        return (
            "Replay these launches as a CUDA graph: torch.compile(mode='reduce-overhead'); in vLLM without "
            "--enforce-eager, in SGLang without --disable-cuda-graph."
        )
    return "Do it in one kernel: vectorise the loop that launches them, or let torch.compile fuse them."


RULE = Rule("launch_bound", _find, (_SCALE,))
