"""Reductions of split-K products: notable, or as healthy decode steps have them."""

from pathlib import Path
from typing import Any

import pytest
from tests.findings.kernel_traces import HEALTHY, ask, generated, layers

from inferometer.findings.rules.launches.split_k_reductions import RULE


def test_reductions_that_take_a_quarter_are_told_with_their_products() -> None:
    finding = ask(RULE, layers("norm", "split_gemm", "reduce", "attention", times=5))[0]

    assert finding.severity == "medium"
    assert finding.size_ns == 5 * 10_000
    assert "the products before them 50.000 μs" in finding.evidence[0]
    assert "100.0 % of the products' time" in finding.evidence[1]


def test_a_usual_share_asks_for_nothing() -> None:
    trace = layers(("gemm", {"dur_ns": 70_000}), "split_gemm", "reduce", "attention", times=5)

    assert [finding.severity for finding in ask(RULE, trace)] == ["info"]


def test_less_is_not_told() -> None:
    assert not ask(RULE, layers(("gemm", {"dur_ns": 150_000}), "split_gemm", "reduce", "attention", times=5))


def test_without_reductions_nothing_is_said() -> None:
    assert not ask(RULE, layers("norm", "split_gemm", "attention", times=5))


@pytest.mark.parametrize("options", HEALTHY)
def test_healthy_runs_have_no_more_than_info(options: dict[str, Any], tmp_path: Path) -> None:
    assert all(finding.severity == "info" for finding in ask(RULE, generated(tmp_path, **options)))


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_too_many_parts_are_found_in_a_generated_run(mode: str, tmp_path: Path) -> None:
    assert ask(RULE, generated(tmp_path, mode=mode, layers=16, fault="split-k"))[0].severity != "info"
