"""Loops of equal launches, and what every layer does again."""

from pathlib import Path
from typing import Any

import pytest
from tests.findings.kernel_traces import HEALTHY, ask, generated, launches, layers
from tests.traces import trace_of

from inferometer.findings.rules.launches.repeated_work import RULE

LAYER = ("norm", "gemm", "attention", "gemm")


def test_a_loop_of_equal_launches_could_be_one() -> None:
    finding = ask(RULE, layers(*LAYER * 4, *("pow", "rsqrt") * 16, "norm", times=4))[0]

    assert "4 loops of 16 turns, 128 launches" in finding.evidence[0]
    assert finding.severity == "high"
    assert finding.size_ns == 4 * (32 * 11_000 - 1_000)
    assert "124.000 μs of that is gaps" in finding.evidence[0]
    assert "and the kernel after it" in finding.evidence[1]


def test_layers_of_a_product_and_an_activation_are_no_loop() -> None:
    """Each needs the one before, as on each step of a recurrent cell: a batched launch can't do them."""
    assert not ask(RULE, layers("norm", *("gemm", "silu") * 16, "norm", times=4))


def test_launches_over_lists_of_tensors_are_batched_already() -> None:
    optimizer = "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<4> >(int)"
    step = (*LAYER * 4, *(("pow", {"kernel": optimizer}),) * 16)
    assert not ask(RULE, layers(*step, times=4))
    assert ask(RULE, layers(*LAYER * 4, *("pow",) * 16, times=4))


def test_other_grids_are_other_work() -> None:
    words = [("pow", {"grid": [n + 1, 1, 1], "block": [128, 1, 1]}) for n in range(16)]
    assert not ask(RULE, layers(*LAYER * 4, *words, times=4))


def test_a_benchmark_of_one_kernel_is_meant_to_repeat_it() -> None:
    assert not ask(RULE, trace_of(launches(*["gemm"] * 100)))


def test_layers_of_a_model_are_no_loop() -> None:
    assert not ask(RULE, layers(*LAYER, times=32))


def test_indices_made_in_every_layer_are_the_same_each_time() -> None:
    finding = ask(RULE, layers("norm", "gemm", "add_long", "kv_indices", "attention", "gemm", times=16))[0]

    assert "in every layer" in finding.title
    assert finding.size_ns == 16 * 2 * 10_000
    assert finding.severity == "high"


def test_indices_made_once_a_step_are_not() -> None:
    assert not ask(RULE, layers("add_long", "kv_indices", *LAYER * 4, times=8))


@pytest.mark.parametrize("options", HEALTHY)
def test_healthy_runs_have_none(options: dict[str, Any], tmp_path: Path) -> None:
    assert not ask(RULE, generated(tmp_path, **options))


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_metadata_made_in_every_layer_is_found_in_a_generated_run(mode: str, tmp_path: Path) -> None:
    finding = ask(RULE, generated(tmp_path, mode=mode, layers=16, fault="repeated-work"))[0]

    assert finding.severity != "info"


def test_layers_whose_kernels_alternate_between_streams_are_no_loop() -> None:
    rows: list[dict[str, Any]] = []
    for n in range(64):
        start_ns = n * 50_000 + (n // 16) * 1_000_000
        rows += launches("norm", "attention", start_ns=start_ns)
        rows += [row | {"stream": 8} for row in launches("gemm", "silu", start_ns=start_ns + 25_000)]
    assert not ask(RULE, trace_of(rows))
