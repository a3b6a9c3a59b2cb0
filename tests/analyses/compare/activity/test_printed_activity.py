"""Two runs whose engine printed sums step by step, compared."""

from collections.abc import Sequence
from typing import Any

import pytest
from tests.traces import trace_of

import inferometer
from inferometer import Trace
from inferometer.analyses.compare.activity.printed_activity import context_range, shared_contexts
from inferometer.analyses.compare.activity.sources import activity
from inferometer.reports.views.view import remarks_of

MS = 1_000_000


def run(
    contexts: Sequence[int], *, down_ms: int = 10, tokens: Sequence[int] = (), facts: dict[str, Any] | None = None
) -> Trace:
    """Decode steps of four tokens after a prefill; attention takes 25 μs a token for each token of context."""
    tokens = tokens or [4] * len(contexts)
    steps: list[dict[str, Any]] = [
        {"step": 0, "phase": "prefill", "prefill_tokens": 9, "gpu_busy_ns": 30 * MS, "source": "recorded"}
    ]
    totals: list[dict[str, Any]] = [{"step": 0, "kernel": "matmul:ffn_down:L0", "total_ns": 30 * MS}]
    end = 0
    for number, (context, n) in enumerate(zip(contexts, tokens, strict=True), 1):
        jitter = (number * 7 % 5) * MS // 50
        parts = {f"matmul:ffn_down:L{layer}": down_ms * MS * n // 8 + jitter for layer in (0, 1)}
        parts["attention"] = context * n * MS // 40
        busy = sum(parts.values())
        steps.append(
            {"step": number, "phase": "decode", "start_ns": end, "dur_ns": busy + 5 * MS, "gpu_busy_ns": busy}
            | {"decode_tokens": n, "context_len": context, "source": "recorded"}
        )
        totals.extend({"step": number, "kernel": kernel, "total_ns": ns} for kernel, ns in parts.items())
        end += busy + 5 * MS
    return trace_of(
        steps=steps, totals=[row | {"section": 0, "device": "webgpu:0"} for row in totals], facts=facts or {}
    )


def test_steps_are_cycles_and_classes_functions() -> None:
    found = activity(run([9, 13], down_ms=8))
    assert found.functions.select("cycle", "function", "cls", "calls").rows() == [
        (0, "matmul:ffn_down", "compute", 4),
        (0, "attention", "compute", 4),
        (1, "matmul:ffn_down", "compute", 4),
        (1, "attention", "compute", 4),
    ]
    assert found.cycles.select("cycle", "device", "complete").rows() == [(0, "webgpu:0", True), (1, "webgpu:0", True)]
    assert found.notes == ("2 decode steps as the source printed them; 1 of other phases are left out.",)


def test_a_smaller_last_batch_is_no_complete_cycle() -> None:
    found = activity(run([9, 13, 17, 21], tokens=[4, 4, 4, 3]))
    assert found.cycles["complete"].to_list() == [True, True, True, False]


def test_a_slower_kernel_is_named_with_its_part_of_the_step() -> None:
    contexts = range(9, 89, 4)
    result = inferometer.compare(run(contexts), run(contexts, down_ms=20))
    first = result.changes.contributions[0]
    assert (first.name, first.kind) == ("matmul:ffn_down", "slower")
    assert first.delta_ns == pytest.approx(10 * MS, rel=0.01)
    assert result.changes.unexplained_ns == 0


def test_a_run_against_itself_has_no_changes() -> None:
    same = run(range(9, 89, 4))
    assert inferometer.compare(same, same).changes.changed == ()


def test_only_steps_with_the_same_context_are_compared() -> None:
    short, long = run(range(9, 89, 4)), run(range(49, 289, 4))
    assert (context_range(short), shared_contexts(short, long)) == ((9, 85), (49, 85))
    result = inferometer.compare(short, long)
    assert result.changes.changed == ()
    assert (result.changes.base_steps, result.changes.candidate_steps) == (10, 10)
    assert "10 have a context that the other run has, too: 49 to 85 tokens" in " ".join(remarks_of(result))


def test_runs_without_a_common_context_are_not_compared() -> None:
    result = inferometer.compare(run(range(9, 89, 4)), run(range(109, 189, 4)))
    assert result.verdict == "not comparable"
    assert result.comparable.why == "No steps with the same length of context: 9 to 85 tokens against 109 to 185."


def test_runs_of_different_models_are_not_compared() -> None:
    contexts = range(9, 89, 4)
    result = inferometer.compare(run(contexts, facts={"model": "a-1b"}), run(contexts, facts={"model": "b-2b"}))
    assert (result.verdict, result.comparable.why) == (
        "not comparable",
        "The runs are of different models: a-1b against b-2b.",
    )
