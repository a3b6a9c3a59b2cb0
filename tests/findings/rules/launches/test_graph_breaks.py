"""Steps that fell out of their graph, or are cut into several, are found by what the device idles for it."""

from pathlib import Path
from typing import Any

from tests.findings.rule_traces import findings, frame, generated, launched, marked, only, op, said, trace_with

RULE = "graph_breaks"


def replayed(at: float, kernels: int = 20, correlation: int = 0) -> list[dict[str, Any]]:
    """One call that replays kernels of 20 μs."""
    return [
        launched(at, at + 8 + 21 * k, 20, api="cudaGraphLaunch", correlation_id=correlation, graph_node_id=k)
        for k in range(kernels)
    ]


def trace_of_calls(rows: list[dict[str, Any]], **others: Any) -> Any:
    """As `trace_with`, with one call for all rows of one `correlation_id`."""
    for number, row in enumerate(rows, start=1_000):
        row["call"]["correlation_id"] = row["work"].setdefault("correlation_id", number)
    return trace_with(rows, **others)


def test_a_step_that_runs_eagerly_among_replayed_ones() -> None:
    rows = []
    for i in range(8):
        at = 1000.0 * i
        eager = [launched(at + 45 * k, at + 45 * k + 5, 20) for k in range(20)]
        rows += eager if i in (3, 5) else replayed(at, kernels=40, correlation=i + 1)
    finding = only(trace_of_calls(rows, spans=marked((1000 * i - 1 for i in range(8)), 990)), RULE)
    assert finding.severity == "medium"
    assert finding.title == "2 of 8 decode steps run eagerly though others replay a graph: batch size 8"
    assert finding.size_ns == 2 * 990_000
    assert "--cuda-graph-bs" in finding.next


def test_steps_that_all_replay_are_healthy() -> None:
    rows = [row for i in range(8) for row in replayed(1000.0 * i, correlation=i + 1)]
    assert not findings(trace_of_calls(rows, spans=marked((1000 * i - 1 for i in range(8)), 990)), RULE)


def test_several_graphs_a_step_with_the_host_late_between() -> None:
    rows = []
    for i in range(6):
        for part in range(4):
            at = 1000.0 * i + 250 * part
            rows += replayed(at, kernels=5, correlation=10 * i + part + 1)
            rows.append(launched(at + 180, at + 185, 5))
    finding = only(trace_of_calls(rows, spans=marked((1000 * i - 1 for i in range(6)), 998)), RULE)
    assert "between the graphs of a step" in finding.title
    assert finding.evidence[0] == "6 steps launch 4 graphs each (median), and 4 kernels and copies one by one (median)."
    # 73 μs before each eager kernel, 68 μs before each graph but the first; what follows the last graph is no break
    assert finding.size_ns == 6 * 3 * (73_000 + 68_000)


def test_several_graphs_a_step_that_the_host_queues_ahead_are_healthy() -> None:
    rows = []
    for i in range(24):
        for row in replayed(110.0 * i, kernels=5, correlation=i + 1):
            row["call"]["start_ns"] = 1_000 * i
            rows.append(row)
    assert not findings(trace_of_calls(rows, spans=marked((440 * i for i in range(6)), 439)), RULE)


def regions(pieces: int) -> Any:
    """Six forward passes of so many regions, 100 μs each; between two the host runs Python for 60 μs."""
    rows, ops = [], []
    for i in range(6):
        for piece in range(pieces):
            at = 1000.0 * i + 160 * piece
            ops.append(op(f"Torch-Compiled Region: {piece}/0", at, at + 100))
            rows += [launched(at + 10 * k + 5, at + 10 * k + 10, 9) for k in range(9)]
    return trace_with(rows, ops=ops, frames=[frame("engine/model.py(9): forward", -1, 9_000)])


def test_breaks_of_compiled_code_are_counted_and_named() -> None:
    finding = only(regions(pieces=4), RULE)
    assert "broken into 4 graphs a forward pass" in finding.title
    assert "Torch-Compiled Region: 0/0, Torch-Compiled Region: 1/0" in finding.evidence[0]
    assert finding.size_ns == 6 * 3 * 71_000
    assert "TORCH_LOGS=graph_breaks" in finding.next


def test_one_region_a_forward_pass_is_whole() -> None:
    assert not findings(regions(pieces=1), RULE)


def test_a_batch_size_without_a_graph_is_found(tmp_path: Path) -> None:
    trace = generated(tmp_path, fault="graph-breaks", batches=(32, 16), steps=12, model="llama-3.2-1b", layers=8)
    assert "decode steps run eagerly" in said(findings(trace, RULE)[0])


def test_a_prefill_runs_eagerly_and_that_is_healthy(tmp_path: Path) -> None:
    assert not findings(generated(tmp_path, steps=12, prefill_every=4, layers=16), RULE)


def test_a_model_compiled_whole_is_healthy(tmp_path: Path) -> None:
    assert not findings(generated(tmp_path, mode="eager", compiled=True), RULE)
