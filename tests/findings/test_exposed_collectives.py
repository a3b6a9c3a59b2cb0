"""Communication that nothing hides is found, with what it waits for; what runs behind computation is not."""

from pathlib import Path
from typing import Any

import pytest
from tests.findings.rule_traces import findings, generated, launched, marked, only, said, trace_with
from tests.traces import trace_of

RULE = "exposed_collectives"
NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
GATHER = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def exchanged(start_us: float, kernel: str = NCCL) -> Any:
    rows = [
        row
        for i in range(10)
        for row in (
            launched(1000 * i, 1000 * i + 10, 500),
            launched(1000 * i + 6, 1000 * i + start_us, 400, stream=20, kernel=kernel),
        )
    ]
    return trace_with(rows, spans=marked((1000 * i for i in range(10)), 990))


@pytest.mark.parametrize(("kernel", "word"), [(NCCL, "all-reduce"), (GATHER, "all-gather")])
def test_an_exchange_alone_is_told_by_its_collective(kernel: str, word: str) -> None:
    finding = only(exchanged(515, kernel), RULE)
    assert finding.severity == "medium"
    assert word in finding.title
    assert finding.size_ns == 4_000_000
    assert "400.000 μs a step over 10 steps" in finding.evidence[0]
    assert "10 times, each 400.000 μs" in finding.evidence[1]
    assert "isn't known" in finding.evidence[-1]


def test_an_exchange_behind_computation_costs_nothing() -> None:
    assert not findings(exchanged(60), RULE)


def test_waiting_for_a_late_rank_is_told_apart_from_the_exchange() -> None:
    launches = [
        {
            "kernel": NCCL,
            "rank": rank,
            "device": f"gpu:{rank}",
            "stream": 20,
            "start_ns": at + late,
            "dur_ns": 400 - late,
        }
        for at in range(0, 100_000, 1_000)
        for rank, late in ((0, 0), (1, 350))
    ]
    finding = only(trace_of(launches), RULE)
    assert "In 100 collectives that could be matched it waited 35.000 μs" in finding.evidence[-1]
    assert "87.5 % of its communication" in finding.evidence[-1]
    assert "comes late" in finding.next


def test_the_planted_slow_collectives_are_found(tmp_path: Path) -> None:
    finding = only(generated(tmp_path, fault="slow-collectives", world=2, lockstep=True, prefill_every=3), RULE)
    assert finding.severity in ("medium", "high")
    assert "all-reduce" in said(finding)


def test_tensor_parallelism_that_exchanges_quickly_is_healthy(tmp_path: Path) -> None:
    assert not findings(generated(tmp_path, layers=16, world=2, lockstep=True), RULE)
