"""Rules about launches hold their tongue where a trace lacks what they need, and never raise."""

from typing import Any

import pytest
from tests.findings.rule_traces import findings, launched, trace_with
from tests.traces import trace_of

RULES = (
    *("idle_device", "launch_bound", "sync_points", "exposed_copies", "exposed_collectives", "rank_imbalance"),
    *("serialised_stream", "graph_breaks"),
)
NOWHERE: dict[str, Any] = {"device": None, "stream": None, "process": None}
NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"
KINDS: list[tuple[str, str, dict[str, Any]]] = [
    ("k", "kernel", {}),
    (NCCL, "kernel", {"rank": 1}),
    ("Memcpy HtoD", "memcpy", NOWHERE),
]
MIXED: list[dict[str, Any]] = [
    {"start_ns": 100 * i, "dur_ns": 50, "kernel": kernel, "kind": kind, **place}
    for i, (kernel, kind, place) in enumerate(KINDS * 30)
]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    "trace",
    [
        pytest.param(trace_of(), id="nothing"),
        pytest.param(trace_of(totals=[{"section": 0, "kernel": "k", "count": 3, "total_ns": 9}]), id="totals"),
        pytest.param(trace_of([{}]), id="one launch"),
        pytest.param(trace_of([{"dur_ns": 0}]), id="of no length"),
        pytest.param(trace_of([{"start_ns": 9 * i, **NOWHERE} for i in range(99)]), id="nowhere"),
        pytest.param(
            trace_of([{"kind": "graph", "kernel": "graph", "start_ns": 9 * i} for i in range(9)]), id="graphs"
        ),
        pytest.param(trace_of(calls=[{"api": "cudaLaunchKernel", "start_ns": 0, "dur_ns": 5}]), id="calls alone"),
    ],
)
def test_without_evidence_there_is_no_finding(rule: str, trace: Any) -> None:
    found = findings(trace, rule)
    assert all("the file has no calls of the host" in finding.evidence[0] for finding in found)


@pytest.mark.parametrize("rule", RULES)
def test_odd_places_raise_nothing(rule: str) -> None:
    findings(trace_of(MIXED), rule)
    rows = [launched(100 * i, 100 * i + 5, 20, **(NOWHERE if i % 2 else {"rank": 0})) for i in range(60)]
    for row in rows[::3]:
        row["call"] |= {"thread": None, "process": None}
    findings(trace_with(rows), rule)
