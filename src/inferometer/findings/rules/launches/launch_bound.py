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
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from inferometer.analyses.launched_by.host_side import THREAD
from inferometer.analyses.nesting import order_points
from inferometer.analyses.timeline.budget import IDLE, part_key
from inferometer.findings.evidence.host_path import describe_site
from inferometer.findings.evidence.idle_kinds import FEW, LAUNCHING_SCALE, count_gaps
from inferometer.findings.evidence.launch_evidence import LaunchEvidence
from inferometer.findings.evidence.places import BusiestDevice, places_of, worst_place
from inferometer.findings.finding import Finding, Severity
from inferometer.findings.rule import Evidence, Rule
from inferometer.trace.lean import aggregate, has_one
from inferometer.units import format_duration, format_share

_SCALE = LAUNCHING_SCALE
_TINY_NS = 3_000
_REPLAY_GAP_NS = 1_000
_MOSTLY = 0.5
_COLUMNS = ("rank", "device", "called_ns", "dur_ns", "node")
_GAPS = ("rank", "device", "gap", "gap_ns", "called_ns", "node")


@dataclass(frozen=True)
class _Launching:
    """Of one place: kernels launched one by one, the gaps before them, and of these kernels the tiny ones.

    `late`: gaps of the kind `launching`; `pauses`: those before tiny kernels that were queued in time. `kernels`: rows
    of those launched one by one.
    """

    place: BusiestDevice
    kernels: NDArray[np.uint32]
    late: pl.DataFrame
    pauses: pl.DataFrame
    tiny: pl.DataFrame

    @property
    def size_ns(self) -> int:
        """Time of all parts."""
        return sum(int(rows[name].sum()) for rows, name in self._parts())

    @property
    def severity(self) -> Severity | None:
        """None where it takes little of the window, or so few kernels are no rhythm."""
        return _SCALE.severity(self.size_ns / self.place.window_ns) if len(self.kernels) >= FEW else None

    def times(self) -> pl.DataFrame:
        """`node` and `ns` of every part."""
        return pl.concat([rows.select("node", pl.col(name).alias("ns")) for rows, name in self._parts()])

    def _parts(self) -> tuple[tuple[pl.DataFrame, str], ...]:
        return (self.late, "gap_ns"), (self.pauses, "gap_ns"), (self.tiny, "dur_ns")


def _find(evidence: Evidence) -> Iterator[Finding]:
    launches = evidence.launches
    found = _launching(launches) if launches is not None else None
    if launches is None or found is None or found.severity is None:
        return
    share = found.size_ns / found.place.window_ns
    site = _site(launches, found.times())
    late_ns = int(found.late["gap_ns"].sum())
    yield Finding(
        rule=RULE.name,
        severity=found.severity,
        title=f"launching kernels one by one takes {format_share(share)} of the time of {found.place.name}"
        + (f", mostly in {site}" if site else ""),
        evidence=(_rhythm(launches.work, found.kernels), _lost(launches, found), _saving(launches, found)),
        size_ns=found.size_ns,
        share=share,
        next=_next(is_late=late_ns >= _MOSTLY * found.size_ns),
        idle_ns=sum(_late_ns(launches, place) for place in _bound_places(launches, found)),
        parts=(part_key(IDLE, "host_late"),),
    )


def launch_bound_places(launches: LaunchEvidence) -> list[BusiestDevice]:
    """The places whose late launches this rule accounts for: that of its finding, others where these alone are many."""
    found = _launching(launches)
    return [] if found is None or found.severity is None else _bound_places(launches, found)


def _bound_places(launches: LaunchEvidence, found: _Launching) -> list[BusiestDevice]:
    own = (found.place.rank, found.place.device)
    return [place for place in places_of(launches) if (place.rank, place.device) == own or _is_late(launches, place)]


def _is_late(launches: LaunchEvidence, place: BusiestDevice) -> bool:
    return _SCALE.severity(_late_ns(launches, place) / place.window_ns) is not None


def _late_ns(launches: LaunchEvidence, place: BusiestDevice) -> int:
    return launches.idle_ns(place.rank, place.device, "launching")


def _gaps(launches: LaunchEvidence, which: pl.Expr) -> pl.DataFrame:
    return launches.gaps.lazy().filter(which).select(_GAPS).collect()


def _launching(launches: LaunchEvidence) -> _Launching | None:
    """The place on which launching takes the largest share."""
    work = launches.work
    tiny = work.select(_COLUMNS).filter(launches.is_alone & (work["dur_ns"] < _TINY_NS))
    between = (pl.col("cause") == "launch_gap") & ~pl.col("is_replay").fill_null(value=True)
    late, pauses = (_gaps(launches, which) for which in (pl.col("kind") == "launching", between))
    pauses = pauses.filter(_called_by(pauses, tiny))
    sums = [_by_place(rows, name) for rows, name in ((late, "gap_ns"), (pauses, "gap_ns"), (tiny, "dur_ns"))]
    worst = worst_place(launches, pl.concat(sums), "ns")
    if worst is None:
        return None
    place = worst[0]
    kernels = place.of(work.select("rank", "device", launches.is_alone).with_row_index("row")).filter("is_alone")
    return _Launching(place, kernels["row"].to_numpy(), place.of(late), place.of(pauses), place.of(tiny))


def _lost(launches: LaunchEvidence, found: _Launching) -> str:
    count, longest_ns = count_gaps(found.late)
    of_tiny = (
        f"kernels below {format_duration(_TINY_NS)} ({found.tiny.height:,} of them) take "
        f"{format_duration(int(found.tiny['dur_ns'].sum()))}, pauses of the device before them "
        f"{format_duration(int(found.pauses['gap_ns'].sum()))}"
    )
    late = (
        f"It idles {format_duration(int(found.late['gap_ns'].sum()))} in {count:,} gaps of up to "
        f"{format_duration(longest_ns)} because the call for the next work returned only after it had gone idle; "
    )
    return (
        f"{late if count else ''}{of_tiny}: {format_duration(found.size_ns)} together{launches.a_step(found.size_ns)}."
    )


def _called_by(gaps: pl.DataFrame, kernels: pl.DataFrame) -> pl.Series:
    """Whether what ended each gap was called for when one of these kernels of its rank was."""
    found = np.zeros(gaps.height, dtype=np.bool_)
    asked = gaps["called_ns"].fill_null(0).to_numpy()
    for rank in gaps["rank"].unique():
        own, wanted = (rows["rank"].eq_missing(rank).to_numpy() for rows in (kernels, gaps))
        times = np.sort(kernels["called_ns"].to_numpy()[own], kind="stable")
        if len(times):
            at = np.searchsorted(times, asked[wanted])
            at[at == len(times)] = 0  # beyond the last: the first is no match
            found[wanted] = times[at] == asked[wanted]
    return pl.Series(found) & gaps["called_ns"].is_not_null()


def _by_place(rows: pl.DataFrame, column: str) -> pl.DataFrame:
    return aggregate(rows, ["rank", "device"], pl.col(column).sum().alias("ns"))


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


def _saving(launches: LaunchEvidence, found: _Launching) -> str:
    replayed = found.place.of(launches.gaps).filter(pl.col("cause") == "graph")["gap_ns"]
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
