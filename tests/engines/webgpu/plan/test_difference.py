"""What was planned against what ran."""

from collections.abc import Sequence

import msgspec
from tests.engines.webgpu.plan_cases import adapter

from inferometer.engines.webgpu.plan.difference import PlanDifference, diff_plan
from inferometer.engines.webgpu.plan.planner import plan_model
from inferometer.engines.webgpu.plan.selection import FUSED, Candidate, TuneKey
from inferometer.engines.webgpu.program import Pass
from inferometer.engines.webgpu.run.executor import LoadedModel
from inferometer.engines.webgpu.weights.checkpoint import open_checkpoint

PASSES = [Pass(("prefill",), 16, 0), Pass(("prefill", "head"), 3, 16), Pass(("decode", "head"), 1, 19)]
EVERYTHING = ("shader-f16", "subgroups")


def plan(*features: str, binding_bytes: int = 2**27) -> LoadedModel:
    small = adapter(*features, binding_bytes=binding_bytes)
    return plan_model(open_checkpoint("tiny-llama"), small, capacity=64, most_rows=16)


def test_what_runs_as_planned_has_no_difference() -> None:
    found = diff_plan(plan(*EVERYTHING), PASSES)

    assert (found.rows, found.passes) == ((), 3)


def test_a_kernel_that_the_adapter_cannot_run_is_a_row_with_its_reason() -> None:
    rows = diff_plan(plan("shader-f16"), PASSES).rows

    assert rows[0] == PlanDifference(
        phase="decode",
        op="linear",
        role="qkv_proj",
        planned="linear_subgroups",
        executed="linear_f16",
        planned_count=3,
        executed_count=3,
        reason="f16: the adapter has shader-f16; linear_subgroups refused: the adapter lacks subgroups",
    )
    assert [(row.phase, row.role) for row in rows][1:] == [
        ("decode", "o_proj"),
        ("decode", "ffn_gate_up"),
        ("decode", "ffn_down"),
        ("head", "lm_head"),
    ]


def test_counts_are_of_all_passes() -> None:
    rows = diff_plan(plan("shader-f16"), PASSES * 2).rows

    assert [(row.planned_count, row.executed_count) for row in rows] == [(6, 6), (6, 6), (6, 6), (6, 6), (4, 4)]


def test_a_matrix_in_parts_is_told_by_its_count() -> None:
    rows = diff_plan(plan(*EVERYTHING, binding_bytes=20_480), PASSES).rows

    embedding = next(row for row in rows if (row.phase, row.op) == ("decode", "gather"))
    assert (embedding.planned, embedding.executed) == ("gather", "gather")
    assert (embedding.planned_count, embedding.executed_count) == (1, 3)
    assert embedding.reason.startswith("cut into parts")


def test_a_phase_that_did_not_run_has_no_row() -> None:
    found = diff_plan(plan(binding_bytes=20_480), [Pass(("prefill",), 16, 0)])

    assert {row.phase for row in found.rows} == {"prefill"}


def test_what_nobody_planned_is_a_row() -> None:
    loaded = plan(*EVERYTHING)
    loaded.planned = [each for each in loaded.planned if each.op != "rope"]

    rows = diff_plan(loaded, PASSES[2:]).rows

    assert [(row.planned, row.executed, row.planned_count, row.executed_count) for row in rows] == [
        (None, "rope", 0, 3)
    ]


def test_a_difference_is_plain_data() -> None:
    found = diff_plan(plan(), PASSES)

    assert msgspec.json.decode(msgspec.json.encode(found))["passes"] == 3


def test_a_fused_form_is_what_ran_instead_of_what_was_planned() -> None:
    def tuned(key: TuneKey, candidates: Sequence[Candidate]) -> tuple[Candidate, str] | None:
        return (FUSED, "1.2 x as fast as separate") if FUSED in candidates else None

    loaded = plan_model(open_checkpoint("tiny-llama"), adapter(*EVERYTHING), capacity=64, tuned=tuned)

    rows = diff_plan(loaded, PASSES).rows

    assert {row.phase for row in rows} == {"decode"}
    assert {(row.op, row.role, row.planned, row.executed) for row in rows} == {
        ("rms_norm", "input_norm", "rms_norm", None),
        ("rms_norm", "final_norm", None, "rms_norm"),
        ("linear", "qkv_proj", "linear_subgroups", None),
        ("linear", "o_proj", "linear_subgroups", None),
        ("linear", "ffn_down", "linear_subgroups", None),
        ("gate_up", "ffn_gate_up", "gate_up_subgroups", None),
        ("add_rms_norm", "pre_ffn_norm", "add_rms_norm", None),
        ("add_rms_norm", "ffn_residual", "add_rms_norm", None),
        ("add_rms_norm", "final_norm", "add_rms_norm", None),
        ("norm_linear", "qkv_proj", None, "norm_linear_thread"),
        ("norm_gate_up", "ffn_gate_up", None, "norm_gate_up_thread"),
        ("linear_add", "o_proj", None, "linear_subgroups"),
        ("linear_add", "ffn_down", None, "linear_subgroups"),
    }
    assert all(row.reason.startswith("fused form of decode, tuned: 1.2 x as fast as separate") for row in rows)
