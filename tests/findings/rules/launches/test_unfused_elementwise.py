"""Chains of kernels that could be one: found where they repeat, and nowhere else."""

from pathlib import Path
from typing import Any

import pytest
from tests.findings.kernel_traces import HEALTHY, KERNELS, ask, generated, launches, layers
from tests.findings.rule_traces import launched, op, trace_with
from tests.traces import trace_of

import inferometer
from inferometer.findings.rules.launches.unfused_elementwise import RULE

NORM = ("to_fp32", "pow", "mul", "rsqrt", "to_bf16")


def test_a_norm_in_pieces_is_a_chain() -> None:
    trace = layers("gemm", *NORM, "attention", times=6)

    finding = ask(RULE, trace)[0]

    assert finding.severity == "high"
    assert finding.size_ns == 6 * 5 * 10_000
    assert finding.share == pytest.approx(5 / 7)
    assert "6 chains of 5 launches in a row, 30 launches in all, take 300.000 μs" in finding.evidence[0]
    assert "240.000 μs would be saved" in finding.evidence[-1]  # all but the longest of each


def test_a_chain_of_long_kernels_is_not_called_small() -> None:
    long = [(word, {"dur_ns": 800_000}) for word in NORM]
    finding = ask(RULE, layers("gemm", *long, "attention", times=6))[0]
    assert finding.title.startswith("chains of unfused kernels (element-wise, norms, copies) take 99.5 %")


def test_a_place_has_its_share_of_all_chains_of_a_kind() -> None:
    rows, ops = [], []
    for n in range(8):
        rows += [launched(100 * n + 2 * k, 100 * n + 10 * k, 10, kernel=KERNELS[word]) for k, word in enumerate(NORM)]
        rows.append(launched(100 * n + 20, 100 * n + 60, 10, kernel=KERNELS["gemm"]))
        ops.append(op("norm" if n < 6 else "other", 100 * n - 1, 100 * n + 15))
    finding = ask(RULE, trace_with(rows, ops=ops))[0]
    assert finding.evidence[1].endswith("; 75.0 % of it in norm.")
    assert finding.next.endswith(": look at norm first.")


def test_two_in_a_row_are_no_chain() -> None:
    assert not ask(RULE, layers("gemm", "add", "norm", "attention", times=20))


def test_a_pause_ends_a_chain() -> None:
    rows = [
        launches("gemm", "add", "norm", start_ns=n * 2_000_000) + launches("mul", start_ns=n * 2_000_000 + 900_000)
        for n in range(10)
    ]
    assert not ask(RULE, trace_of([row for part in rows for row in part]))


def test_what_occurs_once_is_no_pattern() -> None:
    assert not ask(RULE, trace_of(launches("gemm", *NORM, "attention")))


def test_chains_on_two_streams_do_not_mix() -> None:
    first = launches(*("gemm", "add") * 10)
    second = [
        row | {"stream": 8, "start_ns": row["start_ns"] + 500}
        for row in launches(*("mul", "norm") * 10, gap_ns=300_000)
    ]
    assert not ask(RULE, trace_of(first + second))


@pytest.mark.parametrize("options", HEALTHY)
def test_fused_engines_have_none(options: dict[str, Any], tmp_path: Path) -> None:
    assert not ask(RULE, generated(tmp_path, **options))


def test_an_unfused_norm_is_found_in_a_generated_run(tmp_path: Path) -> None:
    finding = ask(RULE, generated(tmp_path, mode="eager", fault="unfused-norm"))[0]

    assert finding.severity in ("low", "medium", "high")
    assert "RMSNorm" in finding.evidence[1] or "norm" in finding.evidence[1]
    assert "per step" in finding.evidence[0]


def test_hugging_face_runs_norms_in_pieces(shared_data: Path) -> None:
    finding = ask(RULE, inferometer.open(shared_data / "traces" / "kineto" / "h100_qwen1.5-0.5b.json.gz"))[0]

    assert finding.severity == "high"
    assert any("rsqrt" in sentence for sentence in finding.evidence)


def test_a_long_loop_is_no_chain() -> None:
    assert not ask(RULE, layers("gemm", *("pow", "mul") * 64, "attention", times=6))
