"""Ops whose calls are far above what the device allows, and which of them are no finding."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.findings.kernel_traces import ask
from tests.traces import trace_of

from inferometer.findings.rules.launches.above_the_bound import RULE
from inferometer.trace.facts import Device
from inferometer.trace.trace import Trace

BF16 = "c10::BFloat16"
THREAD = {"rank": 0, "process": 1, "thread": 2}
M, N, K = 4096, 4096, 4096
GATED = [[8192, 8192], [8192, 16384]]
BOUND_NS = 2 * M * N * K / 989.4e12 * 1e9  # dense bf16 of an H100 SXM


def traced(*ops: tuple[str, list[list[int]], int], device: str = "NVIDIA H100 80GB HBM3", **launch: Any) -> Trace:
    """A launch for each op: its name, its tensors, how long it took."""
    rows = list(enumerate(ops))
    return trace_of(
        [
            {"start_ns": 1_000_000 * at, "dur_ns": took, "correlation_id": at, "rank": 0, "process": 1, "kernel": "k"}
            | launch
            for at, (_, _, took) in rows
        ],
        facts={"devices": (Device(device="gpu:0", name=device),)},
        calls=[
            {"api": "cudaLaunchKernel", "start_ns": 1_000 * at + 100, "dur_ns": 10, "correlation_id": at} | THREAD
            for at, _ in rows
        ],
        ops=[
            {
                "op": op,
                "start_ns": 1_000 * at,
                "dur_ns": 900,
                "input_dims": json.dumps(dims),
                "input_dtypes": json.dumps([BF16] * len(dims)),
            }
            | THREAD
            for at, (op, dims, _) in rows
        ],
    )


def product(took_ns: int) -> tuple[str, list[list[int]], int]:
    return "aten::mm", [[M, K], [K, N]], took_ns


def copy(took_ns: int) -> tuple[str, list[list[int]], int]:
    return "aten::copy_", [[64, 1024, 1024], [64, 1024, 1024]], took_ns


def test_a_slow_product_is_named_with_its_work_and_its_bound() -> None:
    (finding,) = ask(RULE, traced(product(900_000), product(900_000), copy(100_000)))

    bound = 2 * BOUND_NS
    above = 1_800_000 - bound
    assert finding.severity == "medium"
    assert finding.size_ns == 1_800_000
    reached = f"{100 * bound / 1_800_000:.1f} %"
    assert finding.title.startswith("2 calls of aten::mm [4096,4096] [4096,4096] bf16 ")
    assert finding.title.endswith(f"reach {reached} of what the H100 SXM allows")
    assert f"Bound, by matrix: {bound / 1e3:.3f} μs." in finding.evidence[0]
    assert f"{100 * above / 1_900_000:.1f} % of the device time" in finding.evidence[0]
    assert f"{2 * M * N * K:,} FLOPs, read {2 * 2 * M * K:,} bytes and write {2 * M * N:,}" in finding.evidence[1]


@pytest.mark.parametrize(
    ("op", "advice"),
    [
        (product(900_000), "inferometer replay --op 1"),
        (
            ("sgl_kernel::silu_and_mul", [[8192, 8192], [8192, 16384]], 900_000),
            "inferometer bench silu_and_mul --shapes",
        ),
        (("sgl_kernel::gelu_and_mul", [[8192, 8192], [8192, 16384]], 900_000), "Try another kernel"),
    ],
)
def test_what_to_do_next_is_something_that_can_be_done(op: tuple[str, list[list[int]], int], advice: str) -> None:
    (finding,) = ask(RULE, traced(op))

    assert advice in finding.next
    assert finding.next.endswith("All ops: inferometer roofline.")


def quiet() -> Iterator[tuple[str, Trace]]:
    yield "a product that is quick", traced(product(round(BOUND_NS / 0.7)))
    yield "a little of the time", traced(product(400_000), ("my::op", [[M, K]], 9_000_000))
    yield "short launches", traced(*(("aten::mm", [[16, 16], [16, 16]], 6_000) for _ in range(50)))
    yield "a device that isn't known", traced(product(900_000), device="Octopus 9000")
    yield "a copy to the device", traced(copy(900_000), kernel="Memcpy HtoD (Pinned -> Device)", kind="memcpy")
    yield (
        "a collective, which may wait for others",
        traced(("c10d::_allgather_base_", [[8 * M, K], [M, K]], 90_000_000)),
    )
    yield "an op without a model", traced(("my::op", [[M, K]], 900_000))
    yield "no launches", traced()


@pytest.mark.parametrize(("what", "trace"), list(quiet()))
def test_what_is_no_finding(what: str, trace: Trace) -> None:
    assert ask(RULE, trace) == [], what
