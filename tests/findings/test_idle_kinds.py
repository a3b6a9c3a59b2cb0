"""Each idle gap has one kind, so kinds add up to the idle time; how late is usual depends on the host's rhythm."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.findings.rule_traces import US, launched, trace_with

import inferometer
from inferometer.analyses.timeline import find_timeline
from inferometer.findings.engine import find_findings
from inferometer.findings.idle_kinds import count_gaps, idle_by_kind
from inferometer.findings.launch_evidence import LaunchEvidence
from inferometer.findings.rule import NEEDED
from inferometer.trace.trace import Trace


def kinds(trace: Trace) -> dict[str, int]:
    return dict(idle_by_kind(LaunchEvidence(trace)).select("kind", "idle_ns").iter_rows())


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


TIMES = st.tuples(st.integers(0, 300), st.integers(-40, 200), st.integers(1, 120), st.booleans())


@given(st.lists(TIMES, min_size=1, max_size=40), st.booleans())
def test_what_findings_account_for_and_the_rest_are_the_time_lines_idle_time(
    times: list[tuple[int, int, int, bool]], has_calls: bool
) -> None:
    called_us, rows = 0, []
    for between, delay, dur, other in times:
        called_us += between
        row = launched(called_us, called_us + delay, dur, device="gpu:1" if other else "gpu:0")
        rows.append(row if has_calls else {**row, "call": {**row["call"], "process": 9}})
    trace = trace_with(rows)
    examined = find_findings(trace).examined
    idle_ns = int(find_timeline(trace).devices["idle_ns"].sum())
    assert examined.idle_ns == idle_ns
    assert examined.explained_ns is not None
    assert 0 <= examined.explained_ns <= idle_ns
    assert examined.explained_ns + (examined.unexplained_ns or 0) == idle_ns


@pytest.mark.parametrize("name", ["decode.json.gz", "nsys.sqlite.gz"])
def test_the_samples_add_up_too(name: str) -> None:
    with inferometer.open(Path(__file__).parents[2] / "samples" / name, NEEDED) as trace:
        found = find_findings(trace)
        idle = found.budget.filter(found.budget["sort"] == "idle")
        devices = find_timeline(trace).devices
        assert found.budget["time_ns"].sum() == devices["window_ns"].sum()
        assert idle["time_ns"].sum() == devices["idle_ns"].sum() == found.examined.idle_ns
