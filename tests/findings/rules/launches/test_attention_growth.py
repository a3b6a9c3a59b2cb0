"""Attention that takes longer as the run goes on, beyond its noise; a short run or a flat one has no trend."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.findings.kernel_traces import HEALTHY, KERNELS, ask, generated
from tests.traces import trace_of

from inferometer.findings.rules.launches.attention_growth import RULE
from inferometer.trace.trace import Trace


def _run(launches: int, growth: float, seed: int = 1) -> Trace:
    noise = np.random.default_rng(seed).normal(1, 0.03, launches)
    rows = []
    for n in range(launches):
        dur_ns = int(20_000 * (1 + growth * n / launches) * noise[n])
        rows.append({"kernel": KERNELS["attention"], "start_ns": n * 100_000, "dur_ns": dur_ns})
        rows.append({"kernel": KERNELS["gemm"], "start_ns": n * 100_000 + 50_000, "dur_ns": 20_000})
    return trace_of(rows)


def test_growth_beyond_noise_is_found_and_projected() -> None:
    finding = ask(RULE, _run(800, growth=0.5))[0]

    assert finding.severity == "medium"
    assert finding.size_ns == pytest.approx(800 * 20_000 * 0.25, rel=0.05)
    assert "If it goes on so, a launch takes twice as long as at first after 1,6" in finding.evidence[1]


def test_flat_attention_has_no_trend() -> None:
    assert not any(ask(RULE, _run(800, growth=0.0, seed=seed)) for seed in range(10))


def test_layers_of_one_pass_are_no_trend() -> None:
    assert not ask(RULE, _run(32, growth=1.0))


@pytest.mark.parametrize("options", HEALTHY)
def test_healthy_runs_have_no_trend(options: dict[str, Any], tmp_path: Path) -> None:
    assert not ask(RULE, generated(tmp_path, **options))


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_growing_attention_is_found_in_a_generated_run(mode: str, tmp_path: Path) -> None:
    finding = ask(RULE, generated(tmp_path, mode=mode, steps=24, fault="attention-growth"))[0]

    assert finding.severity != "info"
    assert "steps with such launches; the run has " in finding.evidence[1]
