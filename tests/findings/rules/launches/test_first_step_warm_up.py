"""First steps that tune or compile; steps that only differ in kind are none."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.findings.kernel_traces import HEALTHY, ask, generated
from tests.traces import trace_of

from inferometer.findings.evidence.launch_evidence import LaunchEvidence
from inferometer.findings.rules.launches.first_step_warm_up import RULE, _before
from inferometer.trace.trace import Trace

MS = 1_000_000


def _steps(walls_ms: Sequence[float], **others: Any) -> Trace:
    """Marked decode steps with one kernel each."""
    start_ns, spans, rows = 0, [], []
    for wall_ms in walls_ms:
        wall_ns = int(wall_ms * MS)
        spans.append({"span": "step[DECODE bs=8]", "start_ns": start_ns, "dur_ns": wall_ns})
        rows.append({"start_ns": start_ns + 1_000, "dur_ns": MS})
        start_ns += wall_ns + 1_000
    return trace_of(rows, spans=spans, **others)


def test_a_slow_first_step_is_a_warm_up() -> None:
    calls = [{"api": "cudaMalloc", "start_ns": 2 * MS, "dur_ns": 3 * MS}]

    finding = ask(RULE, _steps([30, *[5] * 10], calls=calls))[0]

    assert finding.severity == "low"
    assert finding.size_ns == 25 * MS
    assert "6.0x the median of 6 like steps after the first 5" in finding.evidence[0]
    assert finding.evidence[1] == "3.000 ms of it went to allocating memory, in 1 call of cudaMalloc."


def test_compilers_that_call_each_other_count_once() -> None:
    frames = [
        {"frame": "triton/compiler/compiler.py(226): compile", "start_ns": 2 * MS, "dur_ns": 9 * MS},
        {"frame": "triton/compiler/compiler.py(226): compile", "start_ns": 3 * MS, "dur_ns": 4 * MS},
        {"frame": "triton/compiler/compiler.py(226): compile", "start_ns": 12 * MS, "dur_ns": 2 * MS},
    ]

    finding = ask(RULE, _steps([30, *[5] * 10], frames=[frame | {"thread": 1} for frame in frames]))[0]

    assert finding.title == "the first step takes 25.000 ms beyond the usual"
    assert finding.evidence[1].startswith(
        "11.000 ms of it went to compiling or tuning, in 2 outermost calls; the longest, "
    )


def test_a_small_one_asks_for_nothing() -> None:
    assert [finding.severity for finding in ask(RULE, _steps([10, *[5] * 150]))] == ["info"]


def test_equal_steps_have_no_warm_up() -> None:
    assert not ask(RULE, _steps([5.2, 5, 5.1, 4.9, 5, 5.1, 5, 4.8, 5.2, 5]))


def test_a_slow_step_later_is_no_warm_up() -> None:
    assert not ask(RULE, _steps([5, 5, 30, *[5] * 10]))


def test_steps_that_spread_widely_have_no_warm_up() -> None:
    assert not ask(RULE, _steps([12, 4, 9, 6, 5, 4, 12, 5, 9, 6, 11, 4]))


def test_a_longer_step_of_unknown_work_is_no_warm_up_if_the_device_is_busy() -> None:
    spans: list[dict[str, Any]] = [
        {"span": f"ProfilerStep#{n}", "start_ns": 50 * n * MS, "dur_ns": (40 if n == 0 else 10) * MS} for n in range(12)
    ]
    busy = [{"start_ns": span["start_ns"], "dur_ns": span["dur_ns"] - MS} for span in spans]
    idle = [{"start_ns": span["start_ns"], "dur_ns": 9 * MS} for span in spans]

    assert not ask(RULE, trace_of(busy, spans=spans))
    assert ask(RULE, trace_of(idle, spans=spans))


def test_without_steps_nothing_is_said() -> None:
    assert not ask(RULE, trace_of([{}]))


@pytest.mark.parametrize("options", HEALTHY)
def test_healthy_runs_have_none(options: dict[str, Any], tmp_path: Path) -> None:
    assert not ask(RULE, generated(tmp_path, **options))


@pytest.mark.parametrize("steps", [12, 24])  # of 12, no step is like the first, but a compiler is seen in it
def test_tuning_is_found_in_a_generated_run(steps: int, tmp_path: Path) -> None:
    finding = ask(RULE, generated(tmp_path, steps=steps, fault="warm-up"))[0]

    assert finding.severity == "low"
    assert any("went to compiling or tuning" in sentence for sentence in finding.evidence)


def test_tuning_is_found_without_marks_and_stacks(tmp_path: Path) -> None:
    finding = ask(RULE, generated(tmp_path, steps=24, fault="warm-up", marks="none", stack=False))[0]

    assert finding.severity == "low"
    assert finding.size_ns is not None
    assert finding.size_ns > 90 * MS  # eight configurations of 12 ms


@pytest.mark.parametrize(("began_ms", "is_told"), [(0, True), (95, False)])
def test_what_runs_before_steps_that_were_found_counts_if_it_is_long(began_ms: int, *, is_told: bool) -> None:
    steps = pl.DataFrame(
        {"step": [0, 1], "phase": ["decode"] * 2, "tokens": [8, 8], "start_ns": [100 * MS, 110 * MS]}
    ).with_columns(
        wall_ns=pl.lit(10 * MS, pl.Int64),
        gap_ns=pl.lit(0, pl.Int64),
        is_partial=pl.lit(value=False),
        confidence=pl.lit(0.9),
    )
    launches = LaunchEvidence(trace_of([{"start_ns": began_ms * MS}, {"start_ns": 100 * MS}]))

    found = _before(launches, steps)

    assert found["wall_ns"].to_list() == ([100 * MS] if is_told else [])
    assert _before(launches, steps.with_columns(pl.lit(None, pl.Float64).alias("confidence"))).is_empty()  # marked
