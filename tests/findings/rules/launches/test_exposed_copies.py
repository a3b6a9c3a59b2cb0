"""Copies that nothing hides are found with their kind, rate and code; copies behind kernels are not."""

from pathlib import Path
from typing import Any

import pytest
from tests.findings.rule_traces import findings, generated, launched, marked, only, op, said, trace_with

RULE = "exposed_copies"
COPY: dict[str, Any] = {"kind": "memcpy", "kernel": "Memcpy HtoD (Pageable -> Device)", "bytes": 2_000_000}


def copies(stream: int, start_us: float) -> Any:
    """Ten steps of a kernel of 500 μs and a copy of 400 μs; 2 MB in 400 μs are 5 GB/s."""
    rows = [
        row
        for i in range(10)
        for row in (
            launched(1000 * i, 1000 * i + 10, 500),
            launched(1000 * i + 6, 1000 * i + start_us, 400, api="cudaMemcpyAsync", stream=stream, **COPY),
        )
    ]
    ops = [op("aten::copy_", 1000 * i + 5, 1000 * i + 11) for i in range(10)]
    return trace_with(rows, ops=ops, spans=marked((1000 * i for i in range(10)), 990))


def test_a_copy_alone_is_told_with_its_rate() -> None:
    finding = only(copies(stream=7, start_us=515), RULE)
    assert finding.severity == "high"
    assert finding.size_ns == 10 * 400_000
    assert finding.share == pytest.approx(4_000 / 9_905)
    assert "Memcpy HtoD (Pageable -> Device) by aten::copy_" in finding.title
    assert "400.000 μs per step over 10 steps" in finding.evidence[0]
    assert "20.000 MB at 5.000 GB/s, as from pageable memory" in finding.evidence[1]
    assert "pin_memory=True" in finding.next


def sited(*sites: tuple[str, int], kernel: str = "Memcpy DtoD (Device -> Device)") -> Any:
    """Copies of 400 μs a ms, alone on the device, of this op and so many bytes, ten times."""
    rows, ops = [launched(0, 0, 1)], []
    for i in range(10):
        for k, (name, size) in enumerate(sites):
            at = 1000 * (len(sites) * i + k) + 100
            rows.append(launched(at + 2, at + 10, 400, kind="memcpy", kernel=kernel, bytes=size))
            ops.append(op(name, at, at + 8))
    return trace_with(rows, ops=ops)


def test_bytes_are_those_of_the_row() -> None:
    finding = only(sited(("aten::a", 3_000_000), ("aten::b", 2_000)), RULE)
    assert finding.title.endswith("the most of it in Memcpy DtoD (Device -> Device) by aten::a")
    assert finding.evidence[1].endswith(
        "by aten::a: 10 times, exposed for 4.000 ms; they move 30.000 MB at 7.500 GB/s."
    )
    assert finding.evidence[2].endswith("by aten::b: 10 times, exposed for 4.000 ms; they move 20.000 kB.")


def test_copies_of_an_exchange_are_said_to_be_of_communication() -> None:
    finding = only(sited(("torch.distributed.ddp.reducer::copy_bucket_to_grad", 2_000)), RULE)
    assert "copy_bucket_to_grad, part of communication: 10 times" in finding.evidence[1]
    assert "gradient_as_bucket_view=True" in finding.next


def test_a_copy_behind_a_kernel_costs_nothing() -> None:
    assert not findings(copies(stream=21, start_us=60), RULE)


def test_sets_of_memory_count_too() -> None:
    rows = [
        row
        for i in range(10)
        for row in (
            launched(100 * i, 100 * i + 10, 40),
            launched(100 * i + 6, 100 * i + 55, 30, api="cudaMemsetAsync", kind="memset", kernel="Memset (Device)"),
        )
    ]
    assert "torch.empty" in only(trace_with(rows), RULE).next


@pytest.mark.parametrize("mode", ["graph", "eager"])
def test_the_planted_copy_is_found(tmp_path: Path, mode: Any) -> None:
    finding = only(generated(tmp_path, fault="exposed-copy", mode=mode), RULE)
    assert finding.severity in ("medium", "high")
    assert "HtoD" in finding.title
    assert "aten::to" in said(finding)


@pytest.mark.parametrize("mode", ["graph", "eager"])
def test_the_few_bytes_of_a_step_are_no_fault(tmp_path: Path, mode: Any) -> None:
    assert not findings(generated(tmp_path, layers=16, mode=mode), RULE)
