"""An idle device is laid at the door of the code that kept its next work waiting."""

from pathlib import Path

import pytest
from tests.findings.rule_traces import called, findings, frame, generated, launched, marked, only, op, said, trace_with

RULE = "idle_device"
# Each millisecond 500 μs of work, then the host computes for 490 μs before it launches again.
LATE = [launched(1000 * i, 1000 * i + 5, 500) for i in range(10)]
FRAMES = [
    frame("engine/loop.py(1): run", -10, 20_000),
    *(frame("engine/penalties.py(31): rescore", 1000 * i + 20, 1000 * i + 995) for i in range(10)),
]


def test_the_code_that_ran_meanwhile_is_named_with_its_time_a_step() -> None:
    trace = trace_with(LATE, frames=FRAMES, spans=marked((1000 * i - 5 for i in range(10)), 990))
    finding = only(trace, RULE)
    assert finding.severity == "high"
    assert finding.title == (
        "gpu:0 waits 47.4 % of its time for the host, which is in engine/penalties.py(31): rescore"
    )
    assert finding.size_ns == 9 * 500_000
    assert finding.share == pytest.approx(4.5 / 9.5)
    assert "450.000 μs a step over 10 steps" in finding.evidence[0]
    assert "engine/loop.py(1): run > engine/penalties.py(31): rescore" in finding.evidence[1]
    assert "rescore" in finding.next


def test_without_frames_what_it_launched_next_is_named_and_the_next_step_is_to_record_them() -> None:
    ops = [op("aten::mm", 1000 * i - 1, 1000 * i + 6) for i in range(10)]
    finding = only(trace_with(LATE, ops=ops), RULE)
    assert finding.title.endswith("for the host, before it launches aten::mm")
    assert "with_stack=True" in finding.next


def test_a_long_call_of_the_host_is_told() -> None:
    allocations = [called("cudaMalloc", 1000 * i + 600, 1000 * i + 990) for i in range(10)]
    assert "in the call cudaMalloc" in said(only(trace_with(LATE, calls=allocations), RULE))


def test_short_gaps_are_the_rhythm_of_launching() -> None:
    assert not findings(trace_with([launched(40 * i, 40 * i + 5, 3) for i in range(100)]), RULE)


def test_a_device_that_is_kept_busy_waits_for_nobody() -> None:
    ahead = [launched(i, 1_000 + 500 * i, 499) for i in range(20)]
    assert not findings(trace_with(ahead, frames=FRAMES), RULE)


def test_what_nobody_called_is_nobodys_fault() -> None:
    rows = [{**row, "call": {**row["call"], "process": 9}} for row in LATE]
    assert not findings(trace_with(rows), RULE)


def test_the_planted_wait_for_python_is_found(tmp_path: Path) -> None:
    finding = only(generated(tmp_path, fault="host-late"), RULE)
    assert finding.severity in ("medium", "high")
    assert "serving/penalties.py" in finding.title
    assert finding.size_ns is not None
    assert finding.size_ns > 5 * 2_900_000


def test_a_run_of_graphs_is_healthy(tmp_path: Path) -> None:
    assert not findings(generated(tmp_path, layers=32), RULE)
