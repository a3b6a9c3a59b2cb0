"""Kernels of an engine's log against what the model must do: bytes, FLOPs, bounds, S."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.traces import trace_of

import inferometer
from inferometer import Trace
from inferometer.analyses.model.bounds import BRACKET, ModelBounds, model_bounds
from inferometer.analyses.model.pass_work import Sizes
from inferometer.architectures import Model, find_model, step_calls
from inferometer.errors import InputError, UnknownName
from inferometer.hardware import find_device
from inferometer.reports.views.view import facts_of, remarks_of, table_of

MS = 1_000_000


def model_of(name: str = "gemma-3-1b") -> Model:
    found = find_model(name)
    assert found is not None
    return found


def log(steps: Sequence[tuple[int, int | None]], **facts: Any) -> Trace:
    """A prefill of 9 tokens, then decode steps of so many tokens after so much context."""
    totals: list[dict[str, Any]] = [{"step": 0, "kernel": "matmul:ffn_down:L3", "layer": "3", "total_ns": 4 * MS}]
    rows: list[dict[str, Any]] = [{"step": 0, "phase": "prefill", "prefill_tokens": 9, "context_len": 0}]
    for number, (tokens, context) in enumerate(steps, 1):
        kernels = {"attention": 2 * MS, "matmul:ffn_down:L0": 3 * MS, "matmul:ffn_down:L1": 5 * MS, "lm_head": 7 * MS}
        totals += [
            {"step": number, "kernel": kernel, "total_ns": ns * tokens, "layer": kernel.partition(":L")[2] or None}
            for kernel, ns in kernels.items()
        ]
        rows.append({"step": number, "phase": "decode", "decode_tokens": tokens, "context_len": context})
    return trace_of(
        totals=[row | {"section": 0} for row in totals],
        steps=[row | {"source": "recorded"} for row in rows],
        facts=facts,
    )


def row_of(found: ModelBounds, phase: str, kernel: str) -> dict[str, Any]:
    (row,) = [row for row in found.rows.to_dicts() if (row["phase"], row["kernel"]) == (phase, kernel)]
    return row


def bound_of(found: ModelBounds, phase: str, kernel: str) -> dict[str, Any]:
    (row,) = [row for row in found.bounds.to_dicts() if (row["phase"], row["kernel"]) == (phase, kernel)]
    return row


def test_measured_time_and_modelled_bytes_are_of_one_token() -> None:
    found = model_bounds(log([(4, 9), (3, 13)]), model_of(), bandwidths=(100e9,))
    row = row_of(found, "decode", "lm_head")
    assert (row["unit"], row["units"], row["steps"], row["measured_ns"]) == ("token", 7, 2, 7 * MS)
    assert row["weight_bytes"] == 2 * 262_144 * 1152
    bound = bound_of(found, "decode", "lm_head")
    assert bound["memory_bound_ns"] == pytest.approx(row["moved_bytes"] / 100)
    assert (bound["bound"], bound["compute_bound_ns"]) == ("memory", None)
    assert bound["sol_fraction"] == pytest.approx(bound["bound_ns"] / (7 * MS))


@pytest.mark.parametrize("steps", [[(4, 0)], [(4, 9), (3, 13)], [(4, 505), (4, 509), (4, 513)], [(1, 510), (2, 3000)]])
def test_attention_over_steps_is_the_sum_of_its_calls_through_windows_too(steps: list[tuple[int, int]]) -> None:
    model = model_of()
    row = row_of(model_bounds(log(steps), model), "decode", "attention")
    contexts = [context + i for tokens, context in steps for i in range(tokens)]
    calls = [call for context in contexts for call in step_calls(model, tokens=1, context=context)]
    own = [call for call in calls if call.op == "attention"]
    assert row["flops"] * len(contexts) == pytest.approx(sum(call.flops for call in own), rel=1e-12)
    moved = sum(call.read_bytes + call.written_bytes for call in own)
    assert row["moved_bytes"] * len(contexts) == pytest.approx(moved, rel=1e-12)


def test_what_grows_with_an_unknown_context_has_no_bound() -> None:
    found = model_bounds(log([(4, None), (4, 13)]), model_of(), bandwidths=(100e9,))
    assert row_of(found, "decode", "attention")["moved_bytes"] is None
    assert bound_of(found, "decode", "attention")["sol_fraction"] is None
    assert row_of(found, "decode", "lm_head")["moved_bytes"] is not None
    assert "How long the context was" in " ".join(remarks_of(found))


def test_a_device_gives_its_bandwidth_and_a_compute_bound() -> None:
    device = find_device("H100 SXM")
    found = model_bounds(log([(4, 9)]), model_of(), device=device)
    assert found.bandwidths == (3.35e12,)
    bound, row = bound_of(found, "decode", "lm_head"), row_of(found, "decode", "lm_head")
    assert bound["compute_bound_ns"] == pytest.approx(row["flops"] / 989.4e12 * 1e9)
    assert bound["bound"] == "memory"


def test_without_a_device_bounds_are_a_bracket() -> None:
    found = model_bounds(log([(4, 9)]), model_of())
    assert found.bandwidths == BRACKET
    assert found.bounds.height == 3 * found.rows.height


def test_a_device_that_the_trace_describes_is_taken() -> None:
    device = inferometer.trace.facts.Device(device="webgpu:0", name="Apple M3")
    found = model_bounds(log([(4, 9)], devices=(device,)), model_of())
    assert found.device is not None
    assert found.device.name == "Apple M3"


def test_by_layer_every_label_has_its_layers_share() -> None:
    found = model_bounds(log([(4, 9)]), model_of(), by_layer=True)
    one, two = (row_of(found, "decode", f"matmul:ffn_down:L{layer}") for layer in (0, 1))
    assert (one["measured_ns"], two["measured_ns"]) == (3 * MS, 5 * MS)
    assert one["weight_bytes"] == two["weight_bytes"] == 2 * 6912 * 1152


def test_smaller_numbers_make_smaller_bounds() -> None:
    whole, half = (model_bounds(log([(4, 9)]), model_of(), sizes=Sizes(weight=size)) for size in (2, 1))
    wide, narrow = (row_of(each, "decode", "lm_head")["weight_bytes"] for each in (whole, half))
    assert narrow == wide / 2
    assert "weights 8 bits" in dict(facts_of(half))["Model"]


def test_a_fraction_above_one_is_flagged_not_clipped() -> None:
    found = model_bounds(log([(4, 9)]), model_of(), bandwidths=(1e9,))
    assert bound_of(found, "decode", "lm_head")["sol_fraction"] > 1
    assert "S above 1 means" in remarks_of(found)[-1]
    assert "lm_head" in remarks_of(found)[-1]


def test_another_model_than_the_files_is_told() -> None:
    trace = log([(4, 9)], engine_metrics={"layers": 26, "hidden": 1152})
    assert "hidden" not in " ".join(remarks_of(model_bounds(trace, model_of())))
    assert "The file's model has 26 layers, Llama-3.1-8B has 32" in " ".join(
        remarks_of(model_bounds(trace, model_of("Llama-3.1-8B")))
    )


def test_time_is_conserved_in_every_phase() -> None:
    trace = log([(4, 9), (3, 13)])
    found = model_bounds(trace, model_of())
    assert found.rows["total_ns"].sum() == trace.totals.collect()["total_ns"].sum()
    assert found.rows.group_by("phase").agg(pl.col("share").sum())["share"].to_list() == pytest.approx([1, 1])


def test_a_source_without_sums_by_step_is_refused() -> None:
    with pytest.raises(InputError, match="expected sums by kernel and step"):
        model_bounds(trace_of([{}]), model_of())
    with pytest.raises(UnknownName, match="unknown run"):
        model_bounds(log([(4, 9)]), model_of(), run=7)


def test_json_holds_each_bound_beside_its_row() -> None:
    found = model_bounds(log([(4, 9)]), model_of(), top=1).as_json()
    assert (found["model"], len(found["rows"]), len(found["rows"][0]["bounds"])) == ("gemma-3-1b", 4, 3)
    assert "kv_write" in found["unclaimed"]["decode"]


# What the subject's analysis of the seed's log found, at 100 GB/s: ms per token, MB a token, S in percent.
SEED = {
    "matmul_rmsnorm_fused:ffn_down": (60.82, 414.06, 6.8),
    "fused_ffn": (10.04, 828.11, 82.5),
    "matmul:lm_head": (7.71, 603.98, 78.4),
    "matmul:o_proj": (0.985, 61.34, 62),
    "matmul:q_proj": (0.863, 61.34, 71),
    "matmul:k_proj": (0.305, 15.34, 50),
    "matmul:v_proj": (0.298, 15.34, 51.5),
}


def test_the_seeds_kernels_are_as_far_from_their_bounds_as_was_worked_out(seeds: Path) -> None:
    trace = inferometer.open(next(seeds.glob("004_*")))
    found = model_bounds(trace, model_of(), bandwidths=(100e9,))
    for kernel, (ms, megabytes, percent) in SEED.items():
        row, bound = row_of(found, "decode", kernel), bound_of(found, "decode", kernel)
        assert row["measured_ns"] / MS == pytest.approx(ms, rel=0.07), kernel  # a mean here, a median there
        assert row["weight_bytes"] / 1e6 == pytest.approx(megabytes, rel=0.001), kernel
        assert bound["sol_fraction"] * 100 == pytest.approx(percent, rel=0.07), kernel
    decode = found.rows.filter(phase="decode")
    assert sum(decode["weight_bytes"].drop_nulls().to_list()) / 1e6 == pytest.approx(1999.5, rel=0.001)


def test_prefill_steps_of_unknown_tokens_keep_their_weights_and_have_no_bound() -> None:
    trace = trace_of(
        totals=[{"section": 0, "step": 0, "kernel": "matmul:ffn_down:L0", "layer": "0", "total_ns": MS}],
        steps=[{"step": 0, "phase": "prefill", "source": "recorded"}],
    )
    found = model_bounds(trace, model_of())
    row = row_of(found, "prefill", "matmul:ffn_down")
    assert row["weight_bytes"] == 26 * 1152 * 6912 * 2
    assert (row["flops"], row["moved_bytes"]) == (None, None)
    assert any("isn't known how many tokens" in note for note in found.notes)


def test_as_one_table_all_phases_have_their_rows() -> None:
    found = model_bounds(log([(4, 9), (4, 13)]), model_of(), bandwidths=[100e9])
    section = table_of(found)
    shown = section.frame.select("phase", "unit", "kernel").rows()
    assert shown[0] == ("prefill", "step", "matmul:ffn_down")
    assert ("decode", "token", "attention") in shown
    assert len(shown) == found.rows.height
    assert [field.title for field in section.fields[:2]] == ["Phase", "Each"]
