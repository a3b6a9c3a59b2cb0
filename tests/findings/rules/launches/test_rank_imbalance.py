"""A rank that always comes last is named with what the others wait; ranks that take turns are not."""

from pathlib import Path
from typing import Any

import pytest
from tests.findings.rule_traces import findings, generated, only
from tests.traces import trace_of

RULE = "rank_imbalance"
NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def exchanges(late_us: Any, ranks: int = 2, steps: int = 100) -> Any:
    """Each 1,000 μs every rank computes, comes late by `late_us(step, rank)`, and leaves with all others."""
    launches = []
    for step in range(steps):
        lates = [late_us(step, rank) for rank in range(ranks)]
        for rank, late in enumerate(lates):
            place = {"rank": rank, "device": f"gpu:{rank}"}
            at, arrives, leaves = (1000 * step * 1_000, (1000 * step + 500 + late) * 1_000, (1000 * step + 960) * 1_000)
            launches.append({**place, "start_ns": at, "dur_ns": arrives - at})
            launches.append({**place, "kernel": NCCL, "stream": 20, "start_ns": arrives, "dur_ns": leaves - arrives})
    return trace_of(launches)


def test_the_rank_that_always_comes_last_is_named() -> None:
    finding = only(exchanges(lambda _, rank: 200 * (rank == 1)), RULE)
    assert finding.severity == "high"
    assert finding.title == "gpu:1 of rank 1 keeps the others waiting for 20.0 % of their time"
    assert finding.size_ns == 100 * 200_000
    assert finding.share == pytest.approx(0.2, rel=0.01)
    assert "last in 100 of 100 collectives" in finding.evidence[0]
    assert "above the mean" in finding.evidence[1]
    assert "inferometer compare" in finding.next


def test_what_others_wait_is_an_average_of_them() -> None:
    finding = only(exchanges(lambda _, rank: 200 * (rank == 3), ranks=4), RULE)
    assert finding.size_ns == 100 * 200_000


@pytest.mark.parametrize(
    "late_us",
    [
        pytest.param(lambda step, rank: 200 * (rank == step % 2), id="in turn"),
        pytest.param(lambda _, rank: 5 * (rank == 1), id="by a few μs"),
        pytest.param(lambda _step, _rank: 0, id="never"),
    ],
)
def test_ranks_that_keep_step_are_healthy(late_us: Any) -> None:
    assert not findings(exchanges(late_us), RULE)


def test_a_few_collectives_prove_nothing() -> None:
    assert not findings(exchanges(lambda _, rank: 200 * (rank == 1), steps=8), RULE)


def test_the_planted_slow_rank_is_found(tmp_path: Path) -> None:
    finding = only(generated(tmp_path, fault="slow-rank", world=2), RULE)
    assert finding.evidence[-1].count("all_reduce") == 1  # two kernels do them
    assert finding.severity in ("medium", "high")
    assert "rank 1" in finding.title


def test_equal_ranks_in_lockstep_are_healthy(tmp_path: Path) -> None:
    assert not findings(generated(tmp_path, world=2, lockstep=True), RULE)
