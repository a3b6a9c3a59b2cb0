"""Steps are found in the order of launches alone, exactly, and none where nothing tells them."""

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.analyses.steps.found.made import DECODE, GEMM, NORM, PAUSE_NS, SAMPLE, TO_HOST, serve, traced
from tests.effort import examples
from tests.traces import trace_of

from inferometer.analyses.steps.found.finding import FoundSteps, find_steps

DECODES = ["decode"] * 8


def placed(found: FoundSteps, rows: list[dict[str, Any]]) -> list[int | None]:
    """The found step of each launch, by its start."""
    bounds = [(row["step"], row["start_ns"], row["start_ns"] + row["dur_ns"]) for row in found.steps.to_dicts()]
    return [next((step for step, a, b in bounds if a <= row["start_ns"] < b), None) for row in rows]


def test_steps_have_exactly_their_launches() -> None:
    rows, steps = serve(DECODES)
    found = find_steps(traced(rows))
    assert placed(found, rows) == steps
    assert found.steps["step"].to_list() == list(range(8))
    first = found.steps.row(0, named=True)
    assert (first["launches"], first["kernels"], first["layers"]) == (26, 24, 3)
    assert (first["phase"], first["is_partial"], first["is_warm_up"]) == ("decode", False, False)
    assert found.anchor == "sampling kernels, every 3 attentions"
    assert found.confidence == pytest.approx(0.97, abs=0.02)
    (note,) = found.notes
    assert note.startswith("Steps were found in the order of kernels (sampling kernels, every 3 attentions; confidence")


@pytest.mark.parametrize("layers", [1, 2, 7])
def test_prefills_among_decodes_are_steps_of_their_own(layers: int) -> None:
    phases = ["prefill", *["decode"] * 5, "prefill", "mixed", *["decode"] * 3, "mixed"]
    rows, steps = serve(phases, layers=layers)
    found = find_steps(traced(rows))
    assert placed(found, rows) == steps
    assert found.steps["phase"].to_list() == phases
    assert set(found.steps["layers"]) == {layers}


def test_without_pauses_a_step_ends_with_its_tokens() -> None:
    rows, steps = serve(DECODES, pause_ns=0)
    assert placed(find_steps(traced(rows)), rows) == steps


def test_one_long_pause_elsewhere_moves_no_boundary() -> None:
    rows, steps = serve(DECODES)
    for row in rows[24 + 26 * 4 :]:  # before the sampler of a step
        row["start_ns"] += 100 * PAUSE_NS
    assert placed(find_steps(traced(rows)), rows) == steps


def test_steps_that_the_recording_cuts_are_marked() -> None:
    rows, steps = serve(DECODES)
    found = find_steps(traced(rows[12:-9]))
    assert placed(found, rows[12:-9]) == steps[12:-9]
    assert found.steps["is_partial"].to_list() == [True, *[False] * 6, True]


def test_steps_of_which_no_layer_was_recorded_are_marked_too() -> None:
    rows, steps = serve(DECODES)
    found = find_steps(traced(rows[22:-23]))
    assert placed(found, rows[22:-23]) == steps[22:-23]
    assert found.steps["is_partial"].to_list() == [True, *[False] * 6, True]
    assert found.devices["outside"].to_list() == [0]


def test_kernels_before_the_first_step_and_behind_the_last_are_in_no_step() -> None:
    rows, steps = serve(DECODES)
    other = [{"kernel": f"init_{k}_kernel", "start_ns": 1_000 * k, "dur_ns": 500} for k in range(5)]
    behind = [{**row, "start_ns": 10**9 + k} for k, row in enumerate(other)]
    found = find_steps(traced([*other, *rows, *behind]))
    assert placed(found, [*other, *rows, *behind]) == [None] * 5 + steps + [None] * 5
    assert not found.steps["is_partial"].any()
    assert found.devices["outside"].to_list() == [10]


def test_first_steps_that_are_slower_are_warm_up() -> None:
    rows, steps = serve(["prefill", *DECODES])
    late = 0
    for row, step in zip(rows, steps, strict=True):
        row["start_ns"] += late
        if step in (1, 2):
            late += 6 * row["dur_ns"]
            row["dur_ns"] *= 7
    found = find_steps(traced(rows))
    assert found.steps["is_warm_up"].to_list() == [False, True, True, *[False] * 6]
    rows, _ = serve(DECODES)
    tried = [
        {"kernel": f"autotune_{'abc'[k]}", "start_ns": rows[9]["start_ns"] + 3_100 + k, "dur_ns": 1} for k in range(3)
    ]
    found = find_steps(traced([*rows, *tried]))
    assert found.steps["is_warm_up"].to_list() == [True, *[False] * 7]


def test_attention_that_does_both_is_decode_only_where_matrix_products_tell() -> None:
    phases = ["prefill", *DECODES]
    rows, _ = serve(phases)
    for row in rows:
        row["kernel"] = row["kernel"].replace(DECODE, "kernel_unified_attention_2d")
    assert find_steps(traced(rows)).steps["phase"].to_list() == [None, *DECODES]
    same = [row for row in rows if row["dur_ns"] == 3_000]
    assert find_steps(traced(same)).steps["phase"].to_list() == [None] * 8


def test_work_beside_the_main_stream_tells_no_steps_but_is_counted() -> None:
    rows, steps = serve(DECODES)
    beside = [
        {"kernel": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(x)", "stream": 9, "start_ns": row["start_ns"], "dur_ns": 9}
        for row in rows
        if row["kernel"] == NORM
    ]
    found = find_steps(traced([*rows, *beside]))
    assert placed(found, rows) == steps
    assert found.devices["streams"].to_list() == [[7]]
    assert found.steps["kernels"].to_list() == [24 + 7] * 8


def test_launches_right_before_the_first_step_are_its_warm_up() -> None:
    rows, steps = serve(DECODES)
    tried = [{"kernel": "tuning_kernel", "start_ns": 990_000 + 1_000 * k, "dur_ns": 900} for k in range(10)]
    found = find_steps(traced([*tried, *rows]))
    assert placed(found, [*tried, *rows]) == [0] * 10 + steps
    assert found.steps["is_warm_up"].to_list() == [True, *[False] * 7]
    assert not found.steps["is_partial"].any()


def test_streams_that_take_turns_are_one_sequence() -> None:
    phases = ["prefill", "decode", "decode"] * 4
    rows, steps = serve(phases, layers=6)
    for row, step in zip(rows, steps, strict=True):
        row["stream"] = 7 if phases[step] == "decode" else 13
    found = find_steps(traced(rows))
    assert found.devices["streams"].to_list() == [[7, 13]]
    assert placed(found, rows) == steps
    for k, row in enumerate(rows):
        row["stream"] = 7 if k % 5 else 13
    found = find_steps(traced(rows))
    assert found.devices["streams"].to_list() == [[7, 13]]
    assert placed(found, rows) == steps


def test_each_device_and_rank_is_found_alone() -> None:
    rows, _ = serve(DECODES, rank=0)
    other, _ = serve(DECODES[:5], rank=1)
    lone = [{"kernel": GEMM, "rank": 2, "start_ns": 9_000 * k, "dur_ns": 7} for k in range(9)]
    found = find_steps(traced([*rows, *other, *lone]))
    assert found.steps.group_by("rank", maintain_order=True).len().rows() == [(0, 8), (1, 5)]
    assert found.devices["steps"].to_list() == [8, 5, 0]
    assert found.notes[-1].startswith("No steps were found in the order of kernels on 1 of 3 devices: no kernel comes")


def test_unknown_names_are_enough_where_order_is_regular() -> None:
    names: dict[str, str] = {}
    rows, steps = serve(DECODES, layers=4)
    for row in rows:
        row["kernel"] = names.setdefault(row["kernel"], f"{chr(ord('q') + len(names))}_unit")
        row["kind"] = "kernel"
    found = find_steps(traced(rows))
    assert placed(found, rows) == steps
    assert found.confidence is not None
    assert found.confidence < 0.9
    assert found.steps["phase"].to_list() == [None] * 8


@pytest.mark.parametrize(
    ("kernels", "why"),
    [
        ([GEMM] * 50, "no kernel comes at regular distances"),
        ([DECODE, GEMM, NORM] * 20, "no kernel comes at regular distances"),
        ([*[DECODE, GEMM, NORM] * 20, SAMPLE, TO_HOST], "no kernel comes at regular distances"),
    ],
)
def test_without_anything_that_repeats_around_layers_there_are_none(kernels: list[str], why: str) -> None:
    rows = [{"kernel": name, "start_ns": 5_000 * k, "dur_ns": 900} for k, name in enumerate(kernels)]
    found = find_steps(traced(rows))
    assert found.steps.is_empty()
    assert (found.anchor, found.confidence) == (None, None)
    assert found.notes[0].startswith(f"No steps were found in the order of kernels: {why}")


def test_a_trace_without_launches_has_none() -> None:
    found = find_steps(trace_of())
    assert found.steps.is_empty()
    assert found.notes == ("There are no launches of kernels to find steps in.",)


@examples(20)
@given(
    phases=st.lists(st.sampled_from(["prefill", "decode", "mixed"]), min_size=4, max_size=12),
    layers=st.integers(1, 5),
    seed=st.integers(0, 2**32),
)
def test_the_order_of_rows_changes_nothing(phases: list[str], layers: int, seed: int) -> None:
    rows, _ = serve(phases, layers=layers)
    shuffled = pl.Series(range(len(rows))).shuffle(seed).to_list()
    found, again = find_steps(traced(rows)), find_steps(traced([rows[i] for i in shuffled]))
    assert found.steps.equals(again.steps)
    assert found.notes == again.notes


@examples(20)
@given(
    phases=st.lists(st.sampled_from(["prefill", "decode"]), min_size=3, max_size=10),
    cut=st.tuples(st.integers(0, 40), st.integers(0, 40)),
)
def test_each_launch_is_in_one_step_or_in_none(phases: list[str], cut: tuple[int, int]) -> None:
    rows, _ = serve(phases)
    rows = rows[cut[0] : len(rows) - cut[1]]
    found = find_steps(traced(rows))
    ends = found.steps["start_ns"] + found.steps["dur_ns"]
    assert (found.steps["start_ns"].slice(1) >= ends.head(max(0, len(ends) - 1))).all()
    inside = sum(step is not None for step in placed(found, rows))
    assert inside == found.steps["launches"].sum()
    assert inside + found.devices["outside"].sum() == len(rows)


def test_graphs_recorded_as_one_launch_are_the_work_of_a_step() -> None:
    rows, steps = serve(["prefill", *["decode"] * 4, "prefill", *["decode"] * 4])
    kept = [k for k in range(len(rows)) if steps[k] in (0, 5) or not 5 <= k - 26 * steps[k] < 22]
    for k in kept:
        if steps[k] not in (0, 5) and k - 26 * steps[k] == 4:
            rows[k]["kernel"], rows[k]["kind"] = f"[CUDA graph {steps[k] % 2}]", "graph"
    rows, steps = [rows[k] for k in kept], [steps[k] for k in kept]
    found = find_steps(traced(rows))
    assert placed(found, rows) == steps
    assert found.anchor == "sampling kernels, every 1 graph"
    assert found.steps["layers"].null_count() == 10


LAUNCHES = st.fixed_dictionaries(
    {
        "kernel": st.sampled_from([GEMM, DECODE, NORM, SAMPLE, TO_HOST, "[CUDA graph 3]", "some_unit", "other_unit"]),
        "kind": st.sampled_from(["kernel", "memcpy", "graph"]),
        "start_ns": st.integers(0, 400),
        "dur_ns": st.integers(0, 30),
        "stream": st.sampled_from([7, 7, 7, 9, None]),
        "device": st.sampled_from(["gpu:0", "gpu:0", "gpu:1", None]),
        "rank": st.sampled_from([None, 0, 1]),
        "correlation_id": st.none() | st.integers(1, 9),
    }
)


@examples(60)
@given(rows=st.lists(LAUNCHES, max_size=60), copies=st.integers(1, 6))
def test_any_launches_have_steps_in_order_or_none(rows: list[dict[str, Any]], copies: int) -> None:
    repeated = [row | {"start_ns": row["start_ns"] + 1_000 * copy} for copy in range(copies) for row in rows]
    found = find_steps(traced(repeated))
    assert found.devices["launches"].sum() <= len(repeated)
    assert found.devices["steps"].sum() == found.steps.height
    for _, steps in found.steps.group_by("rank", "device"):
        assert steps["start_ns"].is_sorted()
        assert (steps["launches"] > 0).all()
    assert found.steps["confidence"].is_between(0, 1).all()
    assert len(found.notes) >= 1
