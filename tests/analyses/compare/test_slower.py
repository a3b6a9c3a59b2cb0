"""When a run counts as slower: by its mean and its median, and what is reported where they disagree."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tests.analyses.compare.run_traces import GEMM, LAYER, kernel_run
from tests.traces import trace_of

from inferometer import Trace
from inferometer.analyses.compare.check import check_steps
from inferometer.analyses.compare.comparison import Comparison, compare

_US = 1_000


def run_of(steps_us: Sequence[float]) -> Trace:
    """One kernel per marked step, as long as the step."""
    rows: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    spans: list[dict[str, Any]] = []
    now = 0
    for step, took_us in enumerate(steps_us):
        dur_ns = round(took_us * _US)
        calls.append({"api": "cudaLaunchKernel", "start_ns": now, "dur_ns": 1, "correlation_id": step})
        rows.append({"kernel": "gemm", "start_ns": now, "dur_ns": dur_ns, "correlation_id": step})
        spans.append({"span": f"ProfilerStep#{step}", "start_ns": now, "dur_ns": dur_ns})
        now += dur_ns
    return trace_of(rows, calls=calls, spans=spans)


def around(mean_us: float, *, spread: float = 0.01, steps: int = 60, seed: int = 0) -> list[float]:
    return list(mean_us * (1 + spread * np.random.default_rng(seed).standard_normal(steps)))


@pytest.mark.parametrize(
    ("candidate", "speed", "words", "fails"),
    [
        (around(100, seed=1), "same", "The step is as long as before, within noise", False),
        (
            around(102, seed=1),
            "same",
            "The step is longer, not clearly by more than runs of one program differ (3%)",
            False,
        ),
        (
            around(98, seed=1),
            "same",
            "The step is shorter, not clearly by more than runs of one program differ (3%)",
            False,
        ),
        (around(106, seed=1), "slower", "The step is slower", True),
        (around(106, spread=0.1, seed=1), "unclear", "The step is longer, not clearly by more than", True),
        (around(100.3, seed=0), "same", "The step is as long as before, within 0.5%", False),
        (around(90, seed=1), "faster", "The step is faster", False),
        ([*around(100, steps=50, seed=1), *[160.0] * 10], "uneven", "The mean step is longer", True),
    ],
)
def test_mean_and_median_decide_together(candidate: list[float], speed: str, words: str, *, fails: bool) -> None:
    found = compare(run_of(around(100)), run_of(candidate))
    assert found.leading.slowdown.speed == speed
    assert found.judged.why.startswith(words)
    assert check_steps(found, 0.0).failed == fails


def test_an_uneven_run_has_both_ratios_and_names_no_cause() -> None:
    """50 steps as before and 10 of 160: the mean is 1.10 times, the median about 1."""
    found = compare(run_of(around(100)), run_of([*around(100, steps=50, seed=1), *[160.0] * 10]))
    assert found.verdict == "too few samples"
    assert "(1.099 times" in found.judged.why
    assert "its median is not (0.99" in found.judged.why
    assert found.judged.claimed is None


@pytest.mark.parametrize("seed", range(12))
def test_not_slower_never_stands_next_to_an_interval_above_one(seed: int) -> None:
    draw = np.random.default_rng(seed)
    means, spreads = draw.uniform(95, 105, 2), draw.uniform(0, 0.1, 2)
    found = compare(*(run_of(around(means[k], spread=spreads[k], seed=seed + k)) for k in (0, 1)))
    assert _agrees(found), found.judged.why


def _agrees(found: Comparison) -> bool:
    low, high = found.changes.step_ratio_interval or (0.0, 2.0)
    text = found.judged.why
    if "as long as before" in text or "not slower" in text:
        return low <= 1 <= high or abs((found.changes.step_ratio or 0.0) - 1) < 0.005
    return not ("slower" in text or "longer" in text) or low > 1


@pytest.mark.parametrize(("device", "verdict"), [("gpu:0", "software change"), ("cpu", "cause not measured")])
def test_a_function_that_only_became_slower_is_no_change_of_software_on_a_cpu(device: str, verdict: str) -> None:
    """One of six kernels takes twice as long: on a GPU that is the kernel, on a CPU whatever else ran there."""
    layer = [(name, dur_ns * (2 if name == GEMM else 1)) for name, dur_ns in LAYER]
    found = compare(kernel_run(seed=0, device=device), kernel_run(layer, seed=1, device=device))
    assert found.verdict == verdict


def test_what_became_of_functions_is_named_without_those_in_both() -> None:
    fused = [("qkv_kernel", 9_000), ("flash_kernel", 7_000), (GEMM, 20_000), ("silu_mul_kernel", 9_000)]
    found = compare(kernel_run(seed=0), kernel_run(fused, seed=1))
    assert found.verdict == "software change"
    assert re.search(
        r"One function differs: .* became silu mul kernel \(triton\) \((?:fused|renamed)\)", found.judged.why
    )
