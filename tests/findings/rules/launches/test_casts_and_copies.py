"""Casts and copies around products: those of every layer count, those of a pass's end don't."""

from pathlib import Path
from typing import Any

import pytest
from tests.findings.kernel_traces import HEALTHY, KERNELS, ask, generated, layers
from tests.findings.rule_traces import frame, launched, op, trace_with
from tests.traces import trace_of

import inferometer
from inferometer.findings.causes import explain
from inferometer.findings.rules.launches.casts_and_copies import RULE
from inferometer.findings.rules.launches.unfused_elementwise import RULE as UNFUSED


def test_casts_before_and_behind_products_count() -> None:
    trace = layers("norm", "to_bf16", "memset", "gemm", "to_fp32", "silu", "attention", times=8)

    finding = ask(RULE, trace)[0]

    assert finding.severity == "high"
    assert finding.size_ns == 8 * 2 * 10_000
    assert "16 launches" in finding.evidence[0]
    assert any("before a product" in sentence for sentence in finding.evidence)


def test_to_fp32_and_back_counts_away_from_products() -> None:
    finding = ask(RULE, layers("gemm", "add", "to_fp32", "pow", "to_bf16", "mul", "attention", times=8))[0]

    assert finding.size_ns == 8 * 2 * 10_000
    assert "to fp32 and back" in finding.evidence[1]


def test_a_cast_among_other_kernels_does_not_count() -> None:
    assert not ask(RULE, layers("gemm", "add", "to_bf16", "mul", "attention", "silu", times=8))


def test_a_cast_that_a_pass_makes_once_does_not_count() -> None:
    layer = ("norm", "gemm", "attention", "gemm") * 4
    assert not ask(RULE, layers(*layer, "gemm", "to_fp32", "norm", times=8))


def test_logits_are_cast_before_they_are_sampled() -> None:
    assert not ask(RULE, layers("norm", "attention", "gemm", "to_fp32", "mul", "sample", times=8))


def test_bytes_of_copies_are_told_where_they_are_recorded() -> None:
    rows: list[dict[str, Any]] = []
    for n in range(8):
        start = n * 40_000
        rows.append({"kernel": "nvjet_tst_192x32_64x8_2x1_v_bz_TNT", "start_ns": start, "dur_ns": 10_000})
        copy = {"kind": "memcpy", "kernel": "Memcpy DtoD (Device -> Device)", "bytes": 1_000_000}
        rows.append(copy | {"start_ns": start + 12_000, "dur_ns": 10_000})

    finding = ask(RULE, trace_of(rows))[0]

    said = "Of them, 7 copies from device to device are known to move 7.000 MB."  # the last leads to no product
    assert finding.evidence[-1] == said


def test_bytes_are_those_of_the_copies_that_count() -> None:
    rows: list[dict[str, Any]] = []
    copy = {"kind": "memcpy", "kernel": "Memcpy DtoD (Device -> Device)", "dur_ns": 10_000}
    for n in range(8):
        start = n * 1_000_000
        rows.append({"kernel": "nvjet_tst_192x32_64x8_2x1_v_bz_TNT", "start_ns": start, "dur_ns": 10_000})
        rows.append(copy | {"start_ns": start + 12_000, "bytes": 1_000_000})
        rows.append(copy | {"start_ns": start + 500_000, "bytes": 5_000_000})  # after a pause: of something else
    assert "8 copies from device to device are known to move 8.000 MB" in ask(RULE, trace_of(rows))[0].evidence[-1]


@pytest.mark.parametrize(
    ("caller", "counts"),
    [
        ({"ops": "symm_mem::one_shot_all_reduce"}, False),
        ({"ops": "c10d::allreduce_"}, False),
        ({"frames": "vllm/distributed/device_communicators/custom_all_reduce.py(228): all_reduce"}, False),
        ({"ops": "torch.distributed.ddp.reducer::copy_bucket_to_grad"}, False),
        ({"frames": "vllm/distributed/all_reduce_tests.py(9): forward"}, True),
        ({"ops": "aten::copy_"}, True),
    ],
)
def test_copies_that_stage_an_exchange_belong_to_it(caller: dict[str, str], counts: bool) -> None:
    rows = []
    for n in range(8):
        rows.append(launched(100 * n, 100 * n + 10, 10, kernel=KERNELS["gemm"]))
        rows.append(launched(100 * n + 20, 100 * n + 30, 10, kernel=KERNELS["to_bf16"]))
    (table, name), *_ = caller.items()
    make = op if table == "ops" else frame
    around: dict[str, Any] = {table: [make(name, 100 * n + 15, 100 * n + 25) for n in range(8)]}
    assert bool(ask(RULE, trace_with(rows, **around))) == counts


@pytest.mark.parametrize(
    ("words", "explained"),
    [
        (("gemm", "add", "to_fp32", "pow", "to_bf16", "mul", "attention"), True),
        (("gemm", "add", "mul", "pow", "rsqrt", "attention", "to_bf16"), False),
    ],
)
def test_a_chain_explains_only_casts_that_are_in_it(words: tuple[str, ...], explained: bool) -> None:
    trace = layers(*words, times=8)
    ordered = explain([*ask(UNFUSED, trace), *ask(RULE, trace)])
    by_rule = {finding.rule: finding for finding in ordered}
    assert set(by_rule) == {"unfused_elementwise", "casts_and_copies"}
    assert by_rule["casts_and_copies"].explained_by == ("unfused_elementwise" if explained else None)


@pytest.mark.parametrize("options", HEALTHY)
def test_engines_that_keep_their_types_have_none(options: dict[str, Any], tmp_path: Path) -> None:
    assert not ask(RULE, generated(tmp_path, **options))


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_casts_around_a_projection_are_found_in_a_generated_run(mode: str, tmp_path: Path) -> None:
    finding = ask(RULE, generated(tmp_path, mode=mode, batch=64, fault="casts"))[0]

    assert finding.severity in ("low", "medium")


def test_hugging_face_casts_in_norms(shared_data: Path) -> None:
    finding = ask(RULE, inferometer.open(shared_data / "traces" / "kineto" / "h100_qwen1.5-0.5b.json.gz"))[0]

    assert finding.severity in ("medium", "high")
