"""Long kernels with few blocks or few warps; what is so by design is none."""

from pathlib import Path
from typing import Any

import pytest
from tests.findings.kernel_traces import HEALTHY, ask, generated, layers
from tests.traces import trace_of

from inferometer.findings.rules.launches.low_occupancy import RULE


def _facts(**device: Any) -> dict[str, Any]:
    from inferometer.trace.facts import Device

    return {"devices": (Device(device="gpu:0", **device),)}


def _launch(word: str, blocks: int, dur_ns: int = 50_000, **changes: Any) -> tuple[str, dict[str, Any]]:
    return word, {"grid": [blocks, 1, 1], "block": [128, 1, 1], "dur_ns": dur_ns, **changes}


def test_attention_with_few_blocks_should_be_split() -> None:
    trace = layers(_launch("attention", 8), _launch("gemm", 132), times=6, facts=_facts(multiprocessors=132))

    finding = ask(RULE, trace)[0]

    assert finding.severity == "high"
    assert finding.size_ns == 6 * 50_000
    assert (
        "8 blocks for 132 multiprocessors, 128 threads in a block, 6 launches, median 50.000 μs" in finding.evidence[0]
    )
    assert finding.evidence[-1] == (
        "While they run, multiprocessors without any of their blocks stand for 47.0 % of the GPU time, unless another "
        "stream uses them."
    )
    assert "split keys and values (flash decoding) where a sequence asks one token per step" in finding.next


def test_the_device_is_known_by_its_name() -> None:
    facts = _facts(name="NVIDIA H100 80GB HBM3")
    assert ask(RULE, layers(_launch("attention", 8), times=6, facts=facts))


def test_a_device_that_the_trace_does_not_describe_is_as_the_others_if_these_are_alike() -> None:
    from inferometer.trace.facts import Device

    alike = [Device(device=f"gpu:{n}", multiprocessors=132) for n in (1, 2)]
    launch = _launch("attention", 8)
    assert ask(RULE, layers(launch, times=6, facts={"devices": tuple(alike)}))
    unlike = (*alike, Device(device="gpu:3", multiprocessors=108))
    assert not ask(RULE, layers(launch, times=6, facts={"devices": unlike}))


def test_few_warps_of_a_kernel_that_streams_are_told() -> None:
    trace = layers(_launch("norm", 4_000, occupancy=0.06), _launch("gemm", 132, occupancy=0.06), times=6)

    finding = ask(RULE, trace)[0]

    assert finding.size_ns == 6 * 50_000
    assert finding.severity == "info"  # nothing proves that they cost anything
    assert "6 % occupancy by the profiler's estimate" in finding.evidence[0]
    assert "the trace doesn't tell" in finding.evidence[-1]
    assert finding.next.startswith("Compare the bytes")


def test_few_warps_for_want_of_blocks_get_other_advice_than_large_blocks() -> None:
    launch = _launch("norm", 80, occupancy=0.1)

    finding = ask(RULE, layers(launch, _launch("gemm", 132), times=6, facts=_facts(multiprocessors=132)))[0]

    assert "80 blocks for 132 multiprocessors, 10 % occupancy" in finding.evidence[0]
    assert finding.next.endswith("spread the work over more blocks.")


def test_a_place_is_that_of_these_launches() -> None:
    """Of one kernel, those of another grid come from elsewhere."""
    rows = [{"grid": [blocks, 1, 1], "block": [128, 1, 1], "dur_ns": 50_000} for blocks in (8, 4_000)]
    calls = [
        {"api": "cudaLaunchKernel", "start_ns": 100_000 * n, "dur_ns": 1_000, "correlation_id": n} for n in range(6)
    ]
    ops = [{"op": f"aten::{'mul' if n % 2 else 'add'}", "start_ns": 100_000 * n, "dur_ns": 2_000} for n in range(6)]
    kernels = [row | {"start_ns": 100_000 * n + 5_000, "correlation_id": n} for n, row in enumerate(rows * 3)]

    finding = ask(RULE, trace_of(kernels, calls=calls, ops=ops, facts=_facts(multiprocessors=132)))[0]

    assert " in aten::add: 8 blocks" in finding.evidence[0]


@pytest.mark.parametrize(
    "launch",
    [
        _launch("gemm", 132),  # persistent
        _launch("attention", 8, dur_ns=4_000),  # short
        _launch("sample", 32),  # a block a row
        _launch("kv_indices", 8),
        _launch("gemm", 4_000, occupancy=0.1),  # large tiles
    ],
)
def test_what_is_so_by_design_is_passed_over(launch: tuple[str, dict[str, Any]]) -> None:
    assert not ask(RULE, layers(launch, times=6, facts=_facts(multiprocessors=132)))


def test_of_an_unknown_device_nothing_is_said() -> None:
    assert not ask(RULE, layers(_launch("attention", 8), times=6))


@pytest.mark.parametrize("options", HEALTHY)
def test_healthy_runs_have_none(options: dict[str, Any], tmp_path: Path) -> None:
    assert not ask(RULE, generated(tmp_path, **options))


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_sampling_by_one_block_is_found_in_a_generated_run(mode: str, tmp_path: Path) -> None:
    finding = ask(RULE, generated(tmp_path, mode=mode, fault="low-occupancy"))[0]

    assert finding.severity != "info"
    assert "1 block for 132 multiprocessors" in finding.evidence[0]
