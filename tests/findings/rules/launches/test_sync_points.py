"""Waits in the midst of a step are found by the code that makes them; the one that reads the tokens is not."""

from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from tests.findings.rule_traces import called, findings, frame, generated, launched, marked, only, op, said, trace_with

RULE = "sync_points"
STEPS, ITEMS = 4, 10


def step(start: float, items: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]:
    """Kernels of 50 μs; after each of the first `items` a wait, then 30 μs without work; and a wait at the end."""
    rows, waits, ops = [], [], []
    for i in range(ITEMS):
        at = start + 90 * i
        rows.append(launched(at, at + 5, 50))
        if i < items:
            waits.append(called("cudaStreamSynchronize", at + 6, at + 57))
            ops.append(op("aten::item", at + 5.5, at + 58))
            rows.append(launched(at + 80, at + 85, 9))
    end = rows[-1]["work"]["start_ns"] / 1000 + rows[-1]["work"]["dur_ns"] / 1000
    return rows, [*waits, called("cudaEventSynchronize", end - 3, end + 2)], ops


def steps(items: int, *, is_marked: bool = True) -> Any:
    rows, waits, ops = zip(*(step(1000 * i, items) for i in range(STEPS)), strict=True)
    return trace_with(
        list(chain(*rows)),
        calls=list(chain(*waits)),
        ops=list(chain(*ops)),
        frames=[frame("engine/sampler.py(7): read_temperature", -5, 9_000)],
        spans=marked((1000 * i - 1 for i in range(STEPS)), 998) if is_marked else [],
    )


def test_waits_are_counted_by_step_and_named_by_their_code() -> None:
    finding = only(steps(items=ITEMS), RULE)
    assert finding.severity == "high"
    assert "aten::item in engine/sampler.py(7): read_temperature" in finding.title
    assert f"{STEPS * ITEMS:,} waits, {ITEMS}.0 per step" in finding.evidence[0]
    assert finding.size_ns == STEPS * ITEMS * 30_000
    assert "set_sync_debug_mode" in finding.next


def test_one_wait_is_told_as_one() -> None:
    rows = [launched(0, 5, 900), launched(935, 940, 50), launched(960, 995, 5)]
    waits = [called("cudaStreamSynchronize", 10, 930), called("cudaStreamSynchronize", 991, 1_001)]
    finding = only(trace_with(rows, calls=waits, spans=marked([-1], 1_100)), RULE)
    assert finding.evidence[0] == "1 wait leaves the device without work for 35.000 μs."
    assert ": 1 time, 35.000 μs idle after it." in finding.evidence[1]
    assert finding.evidence[-1] == "The last wait of each step isn't counted: a step may need one, to read its result."


def test_the_wait_that_reads_the_tokens_is_no_fault() -> None:
    assert not findings(steps(items=0), RULE)


def test_where_steps_are_not_known_it_is_never_grave() -> None:
    finding = only(steps(items=ITEMS, is_marked=False), RULE)
    assert "per step" not in finding.title
    assert finding.severity in ("low", "high")


@pytest.mark.parametrize("mode", ["graph", "eager"])
def test_planted_items_are_found(tmp_path: Path, mode: Any) -> None:
    finding = only(generated(tmp_path, fault="sync-points", mode=mode, layers=16), RULE)
    assert finding.severity in ("low", "medium", "high")
    assert "aten::item" in said(finding)


def test_a_run_of_graphs_is_healthy(tmp_path: Path) -> None:
    assert not findings(generated(tmp_path, layers=32), RULE)
