"""Kernels that are launched one by one keep the device waiting; graphs and work queued ahead don't."""

from pathlib import Path

import pytest
from tests.findings.rule_traces import findings, frame, generated, launched, marked, only, said, trace_with

RULE = "launch_bound"
TINY = [launched(10 * i, 10 * i + 5, 2) for i in range(200)]


def test_tiny_kernels_and_what_a_graph_would_save() -> None:
    finding = only(trace_with(TINY, spans=marked((500 * i for i in range(4)), 499)), RULE)
    assert finding.severity == "high"
    assert finding.size_ns == 199 * 8_000 + 200 * 2_000
    assert finding.share == pytest.approx(1.0)
    assert "takes 2.000 μs on the device; the host launches one every 10.000 μs" in finding.evidence[0]
    assert "begins 5.000 μs after its call" in finding.evidence[0]
    assert finding.title == "launching kernels one by one takes 100.0 % of the time of gpu:0"
    assert "idles 1.592 ms in 199 gaps of up to 8.000 μs because the call for the next work" in finding.evidence[1]
    assert "kernels below 3.000 μs (200 of them) take 400.000 μs" in finding.evidence[1]
    assert "498.000 μs per step over 4 steps" in finding.evidence[1]
    assert finding.evidence[-1].startswith("Estimate: a graph that leaves 1.000 μs between kernels (an assumption)")
    assert "save about 1.393 ms" in finding.evidence[-1]


def test_the_frame_before_whose_launches_it_waits_is_named() -> None:
    frames = [frame("engine/penalties.py(12): ban_words", -1, 5_000)]
    assert "engine/penalties.py(12): ban_words" in said(only(trace_with(TINY, frames=frames), RULE))


def test_large_kernels_wait_for_late_launches_too_and_the_hosts_rhythm_sets_what_is_usual() -> None:
    slow_host = [launched(120 * i, 120 * i + 5, 40) for i in range(60)]  # 80 μs idle before each of 40 μs
    once = launched(120 * 60 + 900, 120 * 60 + 905, 40)  # and one that is late beyond the rhythm
    finding = only(trace_with([*slow_host, once]), RULE)
    assert finding.size_ns == finding.idle_ns == 59 * 80_000
    assert "in 59 gaps of up to 80.000 μs" in finding.evidence[1]
    assert "kernels below 3.000 μs (0 of them) take 0 ns" in finding.evidence[1]
    assert finding.parts == ("idle.host_late",)


def test_few_launches_have_no_rhythm() -> None:
    assert not findings(trace_with([launched(120 * i, 120 * i + 5, 40) for i in range(40)]), RULE)


def test_kernels_that_are_longer_than_their_launch_are_not_bound_by_it() -> None:
    assert not findings(trace_with([launched(20 * i, 5 + 31 * i, 30) for i in range(200)]), RULE)


def test_kernels_that_were_queued_ahead_are_not_waited_for() -> None:
    assert not findings(trace_with([launched(5 * i, 1_000 + 4.5 * i, 3.5) for i in range(200)]), RULE)


def test_kernels_that_only_begin_and_end_count_even_where_the_host_is_ahead() -> None:
    finding = only(trace_with([launched(5 * i, 2_000 + 2 * i, 1.3) for i in range(200)]), RULE)
    assert finding.size_ns == 200 * 1_300 + 199 * 700
    assert "in one kernel" in finding.next


def test_what_one_call_replays_is_not_launched_one_by_one() -> None:
    replays = [
        launched(1000 * i, 1000 * i + 20 + 5 * k, 2, api="cudaGraphLaunch", correlation_id=i + 1, graph_node_id=k)
        for i in range(10)
        for k in range(60)
    ]
    rows = [{**row, "call": {**row["call"], "correlation_id": row["work"]["correlation_id"]}} for row in replays]
    assert not findings(trace_with(rows), RULE)


def test_the_planted_storm_of_launches_is_found(tmp_path: Path) -> None:
    finding = only(generated(tmp_path, fault="launch-storm"), RULE)
    assert finding.severity in ("medium", "high")
    assert "serving/penalties.py" in said(finding)


def test_a_run_of_graphs_is_healthy(tmp_path: Path) -> None:
    assert not findings(generated(tmp_path, layers=32), RULE)
