"""One layer that takes longer than its siblings for the same work."""

from pathlib import Path
from typing import Any

import pytest
from tests.findings.kernel_traces import HEALTHY, ask, generated, launches
from tests.traces import trace_of

from inferometer.analyses import batches
from inferometer.findings.rules.launches.slow_sibling import RULE
from inferometer.trace.trace import Trace


def _replays(slow: int | None, *, layers: int = 16, replays: int = 4, kernel: str = "gemm") -> Trace:
    """Replays of a graph of `layers` layers, one of which may be slow."""
    rows: list[dict[str, Any]] = []
    for replay in range(replays):
        words: list[str | tuple[str, dict[str, Any]]] = []
        for layer in range(layers):
            gemm = (kernel, {"dur_ns": 60_000}) if layer == slow else "gemm"
            words += ["norm", "attention", gemm, "silu"]
        part = launches(*words, start_ns=replay * 10_000_000)
        rows += [row | {"correlation_id": replay + 1} for row in part]
    return trace_of(rows)


def test_a_slow_layer_of_a_graph_stands_out() -> None:
    finding = ask(RULE, _replays(slow=5))[0]

    assert finding.size_ns == 4 * 60_000
    assert "6.0x as long" in finding.title
    assert (
        "at the 6th of 16 like places in a pass: 6.00x the median of all 16; 4 launches, 240.000 μs in all"
        in (finding.evidence[0])
    )


@pytest.mark.parametrize("rows", [1, 65, 130])
def test_launches_are_taken_in_stretches_of_whole_passes(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = ask(RULE, _replays(slow=5))
    monkeypatch.setattr(batches, "AT_ONCE", rows)
    assert ask(RULE, _replays(slow=5)) == at_once


def test_without_modules_another_kernel_may_have_other_work() -> None:
    assert not ask(RULE, _replays(slow=5, kernel="other_gemm"))


def test_equal_layers_have_none() -> None:
    assert not ask(RULE, _replays(slow=None))


def test_a_kind_of_layers_is_no_fault() -> None:
    """Every second layer is of another kind."""
    rows: list[dict[str, Any]] = []
    for replay in range(4):
        words: list[str | tuple[str, dict[str, Any]]] = []
        for layer in range(16):
            words += ["norm", "attention", ("gemm", {"dur_ns": 10_000 + 20_000 * (layer % 2)}), "silu"]
        rows += [row | {"correlation_id": replay + 1} for row in launches(*words, start_ns=replay * 10_000_000)]
    assert not ask(RULE, trace_of(rows))


def test_eager_launches_have_a_place_in_their_step() -> None:
    rows: list[dict[str, Any]] = []
    for step in range(6):
        words = [("gemm", {"dur_ns": 60_000 if layer == 5 else 10_000}) for layer in range(16)]
        rows += launches(*(part for word in words for part in ("norm", word, "silu")), start_ns=step * 10_000_000)
    spans = [{"span": f"ProfilerStep#{n}", "start_ns": n * 10_000_000 - 1_000, "dur_ns": 9_000_000} for n in range(6)]

    finding = ask(RULE, trace_of(rows, spans=spans))[0]

    assert "at the 6th of 16 like places in a pass" in finding.title
    assert finding.size_ns == 6 * 60_000


def test_eager_launches_without_modules_and_steps_have_no_place() -> None:
    assert not ask(RULE, trace_of(launches(*("norm", "gemm") * 20, ("gemm", {"dur_ns": 90_000}))))


@pytest.mark.parametrize("options", HEALTHY)
def test_healthy_runs_have_none(options: dict[str, Any], tmp_path: Path) -> None:
    assert not ask(RULE, generated(tmp_path, layers=8, **options))


@pytest.mark.parametrize("options", [{"mode": "eager"}, {}, {"stack": False, "marks": "none"}])
def test_a_slow_layer_is_found_in_a_generated_run(options: dict[str, Any], tmp_path: Path) -> None:
    finding = ask(RULE, generated(tmp_path, layers=16, fault="slow-layer", **options))[0]

    assert finding.severity != "info"
    assert "4.0x as long" in finding.title or "3.9x as long" in finding.title
