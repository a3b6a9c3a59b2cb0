"""Calls in the midst of a step that wait for the device, and after which it has nothing to do.

A wait empties the queue: whatever the host does next, the device idles meanwhile. Counted is the idle time that began
while a thread waited (`sync` of the time line) and ended with work that the same thread launched after it; where the
host then took 50 μs or more to launch, only the time up to the end of the wait, for the rest is `idle_device`'s
matter. The last wait of each step doesn't count: a step of an engine has to read its tokens, and some wait has to. Nor
do waits before the first step.

Where no steps are known, any wait may be the one that reads tokens: then the finding is never
more than `low`, from 5 % of the window. With steps it fires from 1 % of the device's window: `low`; from 4 % `medium`,
from 15 % `high`. Healthy runs of graphs and of large kernels have none.
"""

from collections.abc import Iterator
from typing import Any

import polars as pl

from inferometer.analyses.launched_by.host_side import THREAD
from inferometer.analyses.timeline.budget import IDLE, part_key
from inferometer.findings.evidence.host_path import describe_site, find_sites_at, outermost_op
from inferometer.findings.evidence.idle_kinds import LONG_GAP_NS
from inferometer.findings.evidence.launch_evidence import LaunchEvidence
from inferometer.findings.evidence.places import grave_place
from inferometer.findings.finding import Finding, Scale
from inferometer.findings.rule import Evidence, Rule
from inferometer.names.apis import api_kind
from inferometer.units import format_duration, format_share

_SCALE = Scale("sync_points", low=0.01, medium=0.04, high=0.15)
_WITHOUT_STEPS = Scale("sync_points.without_steps", low=0.05)
_LOOKED_AT = 4_096  # waits whose place in the code is looked up, those with the most idle time
_SHOWN = 3
_SITE = ("waited_in", "op", "user_frame")


def _find(evidence: Evidence) -> Iterator[Finding]:
    launches = evidence.launches
    if launches is None:
        return
    is_near = (pl.col("cause") == "sync") | (pl.col("gap_ns") < LONG_GAP_NS)
    gaps = launches.after_waits.filter(is_near)
    has_steps = len(launches.step_starts_ns) > 0
    waits = _inside_steps(evidence, launches, gaps) if has_steps else gaps
    grave = grave_place(launches, waits, "gap_ns", _SCALE if has_steps else _WITHOUT_STEPS)
    if grave is None:
        return
    place, idle_ns, severity = grave
    sites = _sites(evidence, place.of(waits))
    first = sites.row(0, named=True)
    share = idle_ns / place.window_ns
    count = int(sites["waits"].sum())
    named = describe_site(first["op"], first["user_frame"])
    yield Finding(
        rule=RULE.name,
        severity=severity,
        title=f"{place.name} idles {format_share(share)} of its time after waits of the host"
        + (f" in {named}" if named else f" in {first['waited_in']}"),
        evidence=(
            _lost(launches, count, idle_ns),
            *(_site(row, launches) for row in sites.head(_SHOWN).iter_rows(named=True)),
            *_later(place.of(launches.after_waits.filter(~is_near)), place.of(waits)),
            "The last wait of each step isn't counted: a step may need one, to read its result."
            if has_steps
            else "Steps aren't known: one wait per step may be needed, to read its result.",
        ),
        size_ns=idle_ns,
        share=share,
        next="Keep the value on the device, or copy it to pinned memory with non_blocking=True and read it a step "
        "later; torch.cuda.set_sync_debug_mode('warn') names the ops that wait.",
        parts=(part_key(IDLE, "sync"), part_key(IDLE, "host_late")),
    )


def _inside_steps(evidence: Evidence, launches: LaunchEvidence, gaps: pl.DataFrame) -> pl.DataFrame:
    """Those after waits in a step, but for the last wait of each thread in each step."""
    key = [*THREAD, "wait_end_ns"]
    ends = pl.concat([_named_waits(evidence), gaps.select(key)]).unique()
    step = pl.Series("step", launches.step_of(ends["wait_end_ns"].to_numpy()), dtype=pl.Int64)
    last = pl.col("wait_end_ns").max().over(*THREAD, "step")
    inside = ends.with_columns(step).filter(pl.col("step") >= 0, pl.col("wait_end_ns") < last)
    return gaps.join(inside, on=key, how="semi", nulls_equal=True)


def _named_waits(evidence: Evidence) -> pl.DataFrame:
    """When calls ended that wait by their name, with their threads."""
    calls = evidence.trace.compact("calls")
    names = calls.select(pl.col("api").unique()).collect()["api"]
    waiting = [name for name in names if api_kind(name) == "wait"]
    ended = (pl.col("start_ns") + pl.col("dur_ns")).alias("wait_end_ns")
    return calls.filter(pl.col("api").is_in(waiting)).select(*THREAD, ended).collect()


def _sites(evidence: Evidence, gaps: pl.DataFrame) -> pl.DataFrame:
    """One row per place in the code that waits: `_SITE`, `waits` and `idle_ns`, the most first."""
    by_wait = gaps.group_by(*THREAD, "waited_in", "wait_end_ns").agg(pl.col("gap_ns").sum())
    longest = by_wait.top_k(_LOOKED_AT, by="gap_ns")
    known = find_sites_at(evidence.trace, longest.with_columns((pl.col("wait_end_ns") - 1).alias("called_ns")))
    known = known.with_columns(outermost_op("op_chain").alias("op"))
    sums = known.group_by(_SITE).agg(pl.len().cast(pl.Int64).alias("waits"), pl.col("gap_ns").sum().alias("idle_ns"))
    return sums.sort("idle_ns", *_SITE, descending=[True, False, False, False])


def _lost(launches: LaunchEvidence, count: int, idle_ns: int) -> str:
    if count == 1:
        return f"1 wait leaves the device without work for {format_duration(idle_ns)}."
    return (
        f"{count:,} waits{_often(launches, count)} leave the device without work for {format_duration(idle_ns)}"
        f"{launches.a_step(idle_ns)}, on average {format_duration(idle_ns / count)} each."
    )


def _site(row: dict[str, Any], launches: LaunchEvidence) -> str:
    named = describe_site(row["op"], row["user_frame"]) or "code that wasn't recorded"
    times = "1 time" if row["waits"] == 1 else f"{row['waits']:,} times{_often(launches, row['waits'])}"
    return f"{row['waited_in']} by {named}: {times}, {format_duration(row['idle_ns'])} idle after it."


def _later(late: pl.DataFrame, waits: pl.DataFrame) -> Iterator[str]:
    """The idle time after the same waits that is the host's work, which another finding counts."""
    later_ns = int(late.join(waits, on=[*THREAD, "wait_end_ns"], how="semi", nulls_equal=True)["gap_ns"].sum())
    if later_ns:
        yield (
            f"Not counted here but in idle_device: {format_duration(later_ns)} more after these waits, in gaps of "
            f"{format_duration(LONG_GAP_NS)} or longer until the host's next launch."
        )


def _often(launches: LaunchEvidence, count: int) -> str:
    steps = launches.shared_by_steps
    return f", {count / steps:,.1f} per step" if steps > 1 else ""


RULE = Rule("sync_points", _find, (_SCALE, _WITHOUT_STEPS))
