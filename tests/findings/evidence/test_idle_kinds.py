"""Each idle gap has one kind, so kinds add up to the idle time; how late is usual depends on the host's rhythm."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples
from tests.findings.rule_traces import US, called, launched, trace_with

import inferometer
from inferometer.analyses.timeline.timeline import find_timeline
from inferometer.findings.engine import find_findings
from inferometer.findings.evidence.idle_kinds import count_gaps
from inferometer.findings.evidence.launch_evidence import LaunchEvidence
from inferometer.findings.rule import NEEDED
from inferometer.reports.views.findings import what_was_examined
from inferometer.trace.trace import Trace


def kinds(trace: Trace) -> dict[str, int]:
    sums: dict[str, int] = defaultdict(int)
    for kind, gap_ns in LaunchEvidence(trace).gaps.select("kind", "gap_ns").iter_rows():
        sums[kind] += gap_ns
    return sums


def test_gaps_within_the_rhythm_are_launching_and_longer_ones_the_hosts() -> None:
    fast = [launched(20 * i, 20 * i + 5, 10) for i in range(60)]
    assert kinds(trace_with(fast)) == {"launching": 59 * 10 * US}
    late = [*fast, launched(1_300, 1_305, 10)]
    assert kinds(trace_with(late)) == {"launching": 59 * 10 * US, "host": 110 * US}


def test_a_slow_host_has_a_longer_rhythm() -> None:
    slow = [launched(100 * i, 100 * i + 5, 10) for i in range(60)]
    assert kinds(trace_with([*slow, launched(6_300, 6_305, 10)])) == {"launching": (59 * 90 + 390) * US}
    assert kinds(trace_with([*slow, launched(6_500, 6_505, 10)])) == {"launching": 59 * 90 * US, "host": 590 * US}


def test_what_a_late_launch_takes_to_begin_is_part_of_its_lateness() -> None:
    rows = [launched(40 * i, 40 * i + 20, 10) for i in range(60)]  # begins 16 μs after its call has ended
    assert kinds(trace_with(rows)) == {"launching": 59 * 30 * US}
    gaps = LaunchEvidence(trace_with(rows)).gaps
    assert count_gaps(gaps) == (59, 30 * US)
    assert set(gaps["cause"]) == {"host_late"}


def test_few_launches_are_no_rhythm() -> None:
    assert kinds(trace_with([launched(20 * i, 20 * i + 5, 10) for i in range(20)])) == {"host": 19 * 10 * US}


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """Some ranks whose host launches a loop of kernels, tiny ones too, replays graphs, waits and is late at times."""
    rows: list[dict[str, Any]] = []
    waits: list[dict[str, Any]] = []
    for rank in range(draw(st.integers(1, 3))):
        device, own, number, at = f"gpu:{rank}", {"rank": rank}, 0, 0
        for _ in range(draw(st.integers(1, 4))):
            what = draw(st.sampled_from(["loop", "graph", "wait", "held", "late", "lost"]))
            pause, dur = draw(st.integers(0, 400)), draw(st.sampled_from([1, 2, 20, 900, 9_000]))
            count = draw(st.sampled_from([1, 60])) if what in ("loop", "graph") else 1
            delay = draw(st.integers(1, 60)) + (pause if what == "held" else 0)
            between = draw(st.integers(1, 30))
            if what == "wait":
                waits.append({**called("cudaStreamSynchronize", at, at + pause + 1), **own})
            at += 0 if what == "held" else pause
            rank_before = rows[-1]["work"]["start_ns"] / US if rows and rows[-1]["work"]["rank"] == rank else 0
            number += 1
            for k in range(count):
                number += what != "graph"
                start = max(at + delay, rank_before) + (dur + between) * k
                when = at if what == "graph" else at + (dur + between) * k
                row = launched(when, start, dur, device=device, rank=rank, correlation_id=1_000 * rank + number)
                row["call"] |= {"rank": rank if what != "lost" else 9, "correlation_id": 1_000 * rank + number}
                row["call"]["api"] = "cudaGraphLaunch" if what == "graph" else "cudaLaunchKernel"
                rows.append(row)
            at = round(rows[-1]["work"]["start_ns"] / US) + draw(st.sampled_from([-500, 0, dur]))
    return trace_with(rows, calls=waits)


@given(traces())
@examples(60)
def test_what_findings_account_for_and_the_rest_are_the_time_lines_idle_time(trace: Trace) -> None:
    found = find_findings(trace)
    idle = find_timeline(trace).devices
    assert found.examined.idle_ns == idle["idle_ns"].sum()
    assert found.examined.explained_ns == sum(finding.idle_ns or 0 for finding in found.findings)
    assert found.examined.explained_ns >= 0
    assert found.examined.unexplained_ns is not None
    assert found.examined.unexplained_ns >= 0
    assert found.examined.explained_ns + found.examined.unexplained_ns == found.examined.idle_ns
    is_long = idle.filter(idle["idle_ns"] >= 0.12 * idle["window_ns"]).height
    assert bool(is_long) == any(finding.rule == "idle_device" for finding in found.findings) or any(
        finding.rule == "launch_bound" for finding in found.findings
    )


def test_tiny_kernels_and_several_other_reasons_are_not_counted_twice() -> None:
    """Late launches take 4.4 % and, with tiny kernels, 5.5 %: `launch_bound` has them, and the rest is another's."""
    loop = [launched(10 * i, 10 * i + 5, 2) for i in range(100)]
    late = [launched(1_000, 1_005, 14_000), launched(16_505, 16_510, 500), launched(16_515, 18_205, 100)]
    found = find_findings(trace_with([*loop, *late])).at_least("low")
    told = {finding.rule: finding for finding in found if finding.idle_ns}
    assert told["launch_bound"].idle_ns == 100 * 8 * US
    assert told["idle_device"].idle_ns == 2_700 * US
    assert told["idle_device"].title == (
        "gpu:0 is idle 14.8 % of its time besides late launches one by one, for several reasons"
    )


@pytest.mark.parametrize("name", ["decode.json.gz", "nsys.sqlite.gz"])
def test_the_samples_add_up_too(name: str) -> None:
    with inferometer.open(Path(__file__).parents[3] / "samples" / name, NEEDED) as trace:
        found = find_findings(trace)
        idle = found.budget.filter(found.budget["sort"] == "idle")
        devices = find_timeline(trace).devices
        assert found.budget["time_ns"].sum() == devices["window_ns"].sum()
        assert idle["time_ns"].sum() == devices["idle_ns"].sum() == found.examined.idle_ns


def test_one_row_of_a_table_is_told_as_one() -> None:
    found = find_findings(trace_with([launched(0, 5, 10)]))
    assert next(what_was_examined(found)).endswith(
        " rules looked at 1 launch, 1 call on 1 device: nothing is above their thresholds."
    )
