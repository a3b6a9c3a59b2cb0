"""Steps: statistics by phase, growth with context, and which were disturbed, from every kind of source."""

import json
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples
from tests.kineto_files import call, event, kernel, write_file
from tests.traces import trace_of
from tests.webgpu_log_files import write_log
from tools.kineto_maker import Options, make_trace

import inferometer
from inferometer.analyses.steps.disturbances import FEWEST, find_disturbed
from inferometer.analyses.steps.sources import read_steps
from inferometer.analyses.steps.table import StepTable, step_table
from inferometer.errors import InputError, UnknownName
from inferometer.names.engine_labels import class_of_label
from inferometer.reports.views.view import remarks_of, sections_of
from inferometer.trace.builder import TraceBuilder
from inferometer.trace.facts import Facts
from inferometer.trace.trace import Trace

SEED = "004_b259a8c8aedd2a44.txt"
MS = 1_000_000
ROOT = Path(__file__).resolve().parents[3]


def step(number: int, **others: object) -> dict[str, Any]:
    """A decode step of four tokens: 100 ms on the GPU, 10 ms besides."""
    usual = {"phase": "decode", "decode_tokens": 4, "context_len": 8 + 4 * number, "gpu_busy_ns": 100 * MS}
    times = {"start_ns": 200 * MS * number, "dur_ns": 110 * MS}
    return {"step": number, "source": "recorded", **usual, **times, **others}


def totals(number: int, classes: dict[str, int], **others: object) -> list[dict[str, Any]]:
    """The printed rows of a step, ns each."""
    usual = {"section": 0, "step": number, **others}
    return [{**usual, "kernel": name, "total_ns": time_ns} for name, time_ns in classes.items()]


def steps_of(steps: Sequence[dict[str, Any]], classes: Callable[[int], dict[str, int]] = lambda number: {}) -> Trace:
    rows = [row for one in steps for row in totals(one["step"], classes(one["step"]))]
    return trace_of(steps=steps, totals=rows)


def why(table: StepTable) -> dict[int, str]:
    return dict(table.steps.filter("disturbed").select("step", "why").rows())


@pytest.mark.parametrize(
    ("label", "found"),
    [
        ("matmul_rmsnorm_fused:L0.ffn_down", "matmul_rmsnorm_fused:ffn_down"),
        ("matmul_rmsnorm_fused:ffn_down:L25", "matmul_rmsnorm_fused:ffn_down"),
        ("attention:L7", "attention"),
        ("matmul:lm_head", "matmul:lm_head"),
        ("attention", "attention"),
        ("gemv:layer_3.wq", "gemv:wq"),
        ("a:L0:b:L1.c", "a:b:c"),
        ("void at::native::L1::kernel<float>(float*)", "void at::native::L1::kernel<float>(float*)"),
        ("", ""),
        ("L0", "L0"),
        (":L0", ""),
    ],
)
def test_a_class_is_the_label_without_its_layer(label: str, found: str) -> None:
    assert class_of_label(label) == found


def test_statistics_are_exact_and_by_phase() -> None:
    times = [100, 104, 101, 109, 106]
    steps = [step(0, phase="prefill", decode_tokens=None, prefill_tokens=8, context_len=0)]
    steps += [step(k, gpu_busy_ns=t * MS, dur_ns=(t + 10) * MS) for k, t in enumerate(times, 1)]
    table = step_table(trace_of(steps=steps))
    prefill, decode = table.phases.to_dicts()
    assert (prefill["phase"], prefill["steps"], prefill["tokens"], prefill["wall_per_token_ns"]) == (
        *("prefill", 1, 8),
        110 * MS / 8,
    )
    assert {name: value for name, value in decode.items() if name != "phase"} == {
        "steps": 5,
        "used": 5,
        "tokens": 20,
        "wall_median_ns": 114 * MS,
        "wall_p95_ns": pytest.approx(118.4 * MS),
        "wall_mad_ns": 3 * MS,
        "gpu_median_ns": 104 * MS,
        "gpu_p95_ns": pytest.approx(108.4 * MS),
        "gpu_mad_ns": 3 * MS,
        "window_median_ns": 114 * MS,
        "gap_median_ns": 10 * MS,
        "wall_per_token_ns": 28.5 * MS,
        "gpu_per_token_ns": 26 * MS,
        "launches_median": None,
        "launch_bound_share": None,
    }


def test_each_step_says_its_gap_and_the_positions_its_tokens_attend_to() -> None:
    batch = step(1, batch=2, decode_tokens=8, context_len=20)  # four tokens of each of two sequences of 10
    table = step_table(trace_of(steps=[step(0), batch]))
    assert table.steps.select("step", "tokens", "context_len", "mean_kv", "gap_ns").rows() == [
        (0, 4, 8, 10.5, 10 * MS),
        (1, 8, 20, 12.5, 10 * MS),
    ]


def test_times_of_classes_are_conserved_and_say_how_many_layers_they_have() -> None:
    rows = [
        {"section": 0, "step": 0, "kernel": "matmul:wq:L0", "layer": "0", "total_ns": 30},
        {"section": 0, "step": 0, "kernel": "matmul:wq:L1", "layer": "1", "total_ns": 50},
        {"section": 0, "step": 0, "kernel": "attention", "total_ns": 20},
        {"section": 0, "step": 1, "kernel": "attention", "total_ns": 60},
        {"section": 0, "step": 9, "kernel": "attention", "total_ns": 999},  # of no step
    ]
    table = step_table(trace_of(steps=[step(0), step(1)], totals=rows))
    columns = ["class", "layers", "steps", "total_ns", "share", "per_token_median_ns", "per_layer_median_ns"]
    assert table.classes.select(*columns, "first_ns", "last_ns").rows() == [
        ("attention", 0, 2, 80, 0.5, 10.0, None, 20, 60),
        ("matmul:wq", 2, 1, 80, 0.5, 20.0, 40.0, 80, None),
    ]
    assert table.classes["share"].sum() == 1
    assert table.class_steps["total_ns"].sum() == 160


@given(st.lists(st.integers(1, 10**9), min_size=3, max_size=30), st.integers(1, 8))
@examples(60)
def test_any_times_of_classes_add_up(times: list[int], tokens: int) -> None:
    steps = [step(k, decode_tokens=tokens, gpu_busy_ns=t) for k, t in enumerate(times)]
    table = step_table(steps_of(steps, lambda k: {"a": times[k] // 2, "b:L0": times[k] - times[k] // 2}))
    assert table.class_steps["total_ns"].sum() == sum(times)
    assert table.classes["total_ns"].sum() == sum(times)
    assert table.classes["share"].sum() == pytest.approx(1)
    [phase] = table.phases.to_dicts()
    assert phase["steps"] == len(times)
    assert phase["used"] == len(times) - len(table.disturbed)
    assert min(times) <= phase["gpu_median_ns"] <= phase["gpu_p95_ns"] <= max(times)


def test_growth_is_the_least_squares_line_with_its_interval() -> None:
    noise = [3, -5, 1, 4, -2, -6, 5, 0]

    def classes(k: int) -> dict[str, int]:
        return {"attention": 4 * (1_000 + 70 * (8 + 4 * k) + noise[k] * 10), "matmul:L0": 4 * 500}

    steps = [step(k, gpu_busy_ns=sum(classes(k).values())) for k in range(8)]
    attention, matmul, whole = step_table(steps_of(steps, classes)).growth.to_dicts()
    x = np.array([8 + 4 * k + 2.5 for k in range(8)])
    y = np.array([classes(k)["attention"] / 4 for k in range(8)])
    slope, intercept = np.polyfit(x, y, 1)
    assert (attention["class"], matmul["class"], whole["class"]) == ("attention", "matmul", "(all)")
    assert attention["steps"] == 8
    assert attention["slope_ns"] == pytest.approx(slope)
    assert attention["intercept_ns"] == pytest.approx(intercept)
    assert attention["r2"] == pytest.approx(np.corrcoef(x, y)[0, 1] ** 2)
    left = y - intercept - slope * x
    error = math.sqrt(left @ left / 6 / ((x - x.mean()) @ (x - x.mean())))
    t = 2.446912  # 97.5 % point of Student's t with 6 degrees of freedom, from a printed table
    assert attention["high_ns"] - slope == pytest.approx(t * error, rel=1e-6)
    assert slope - attention["low_ns"] == pytest.approx(t * error, rel=1e-6)
    assert whole["slope_ns"] == pytest.approx(slope)
    assert (matmul["slope_ns"], matmul["r2"]) == (0, None)
    assert attention["first_share"] == classes(0)["attention"] / steps[0]["gpu_busy_ns"]
    assert attention["last_share"] == classes(7)["attention"] / steps[7]["gpu_busy_ns"]


def test_fewer_than_three_contexts_tell_no_growth_and_none_no_rows() -> None:
    same = step_table(steps_of([step(k, context_len=8) for k in range(9)], lambda k: {"attention": 50 * MS}))
    assert same.growth.select("class", "slope_ns", "r2").rows() == [("attention", None, None), ("(all)", None, None)]
    assert any("fewer than 3 different contexts" in remark for remark in remarks_of(same))
    none = step_table(steps_of([step(k, context_len=None) for k in range(9)], lambda k: {"attention": 50 * MS}))
    assert none.growth.is_empty()
    assert any("how they grow with it can't be known" in remark for remark in remarks_of(none))


def test_a_tail_is_compared_per_token_and_is_no_disturbance() -> None:
    tail = step(12, decode_tokens=3, gpu_busy_ns=75 * MS, dur_ns=84 * MS)
    table = step_table(trace_of(steps=[*(step(k) for k in range(12)), tail]))
    assert table.disturbed == []
    assert table.steps["excess_ns"].to_list() == [0] * 13
    assert any("Step 12 has 3 tokens, others 4" in remark for remark in remarks_of(table))
    slow = step_table(trace_of(steps=[*(step(k) for k in range(12)), tail | {"gpu_busy_ns": 130 * MS}]))
    assert slow.disturbed == [12]


def test_a_cost_that_is_fixed_per_step_makes_no_tail_a_disturbance() -> None:
    tail = step(12, decode_tokens=1, gpu_busy_ns=98 * MS, dur_ns=108 * MS)
    assert step_table(trace_of(steps=[*(step(k) for k in range(12)), tail])).disturbed == []


def jitter(k: int) -> int:
    return (k * 7919 % 11 - 5) * MS // 10


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"gpu_busy_ns": 130 * MS, "dur_ns": 140 * MS}, "GPU busy 1.30×"),
        ({"dur_ns": 140 * MS}, "host gap +"),
        ({"gpu_busy_ns": 130 * MS, "dur_ns": 180 * MS}, "GPU busy 1.30×; host gap +"),
    ],
)
def test_a_step_out_of_line_is_disturbed_and_left_out_of_the_medians(changed: dict[str, int], reason: str) -> None:
    steps = [step(k, gpu_busy_ns=100 * MS + jitter(k), dur_ns=110 * MS + jitter(k + 3)) for k in range(20)]
    table = step_table(trace_of(steps=[one | changed if one["step"] == 7 else one for one in steps]))
    assert table.disturbed == [7]
    assert why(table)[7].startswith(reason)
    assert table.phases["used"].to_list() == [19]
    kept = step_table(trace_of(steps=[step(k) | (changed if k == 7 else {}) for k in range(20)]), keep_disturbed=True)
    assert (kept.disturbed, kept.phases["used"].to_list()) == ([7], [20])


@pytest.mark.parametrize(
    ("classes", "reason"), [({}, "GPU busy +30.000 ms"), ({"sort": 25 * MS, "fill": 1}, "sort +25.000 ms")]
)
def test_where_no_time_is_usual_the_reason_is_by_how_much_it_was_more(classes: dict[str, int], reason: str) -> None:
    """No ratio of 0 ns: all steps but one have an idle GPU, and kernels of 0 ns."""
    steps = [step(k, gpu_busy_ns=30 * MS if k == 7 else 0, dur_ns=110 * MS) for k in range(12)]
    trace = steps_of(steps, lambda number: classes if number == 7 else dict.fromkeys(classes, 0))
    assert why(step_table(trace)) == {7: reason}


def test_every_size_of_batch_has_a_usual_time_of_its_own() -> None:
    times = {1: 60 * MS, 8: 70 * MS, 32: 100 * MS}
    steps = []
    for k in range(36):
        tokens = [1, 8, 32][k % 3]
        busy = times[tokens] + jitter(k)
        steps.append(step(k, decode_tokens=tokens, context_len=None, gpu_busy_ns=busy, dur_ns=busy + 10 * MS))
    assert step_table(trace_of(steps=steps)).disturbed == []
    for slow in (13, 20):  # of 8 and of 32 tokens
        steps[slow]["gpu_busy_ns"] += 20 * MS
        steps[slow]["dur_ns"] += 20 * MS
    table = step_table(trace_of(steps=steps))
    assert table.disturbed == [13, 20]
    assert table.steps.filter("disturbed")["excess_ns"].to_list() == pytest.approx([20 * MS, 20 * MS], abs=MS)


def test_steps_that_are_cut_or_warm_up_teach_nothing_and_are_not_judged() -> None:
    run = read_steps(trace_of(steps=[step(k, gpu_busy_ns=(300 if k in (0, 13) else 100) * MS) for k in range(14)]))
    flags = (pl.col("step") == 0).alias("is_warm_up"), (pl.col("step") == 13).alias("is_partial")
    found = find_disturbed(run.steps.with_columns(flags), run.class_steps)
    assert not found["disturbed"].any()
    assert found.filter(~pl.col("judged"))["step"].to_list() == [0, 13]
    assert find_disturbed(run.steps, run.class_steps).filter("disturbed")["step"].to_list() == [0, 13]


def test_steps_that_nothing_marks_are_shown_with_what_is_known_of_them(read: Callable[..., Trace]) -> None:
    text = make_trace(Options(steps=12, layers=3, prefill_every=0, marks="none", stack=False, shapes=False))
    trace = json.loads(text)
    first = sorted(float(each["ts"]) for each in trace["traceEvents"] if each.get("cat") == "kernel")
    trace["traceEvents"] = [each for each in trace["traceEvents"] if float(each.get("ts", first[-1])) > first[25]]
    table = step_table(read(json.dumps(trace)))
    assert table.anchor == "the order of kernels"
    assert table.steps["is_partial"].to_list() == [True] + [False] * 11
    used = table.steps.height - table.steps.filter(pl.col("is_partial") | pl.col("is_warm_up")).height
    assert table.phases["used"].sum() == used - len(table.disturbed)
    assert any("Step 0 is at an end of the recording, perhaps cut, and left out" in said for said in remarks_of(table))
    [rows] = [section for section in sections_of(table) if section.title == "Steps"]
    assert rows.frame["state"][0] == "partial"
    assert (table.steps["confidence"] > 0.5).all()


def test_what_grows_with_context_is_no_disturbance() -> None:
    steps = [step(k, gpu_busy_ns=(100 + 5 * k) * MS, dur_ns=(110 + 5 * k) * MS) for k in range(60)]
    assert step_table(trace_of(steps=steps)).disturbed == []
    steps[40]["gpu_busy_ns"] += 40 * MS
    assert step_table(trace_of(steps=steps)).disturbed == [40]
    assert step_table(trace_of(steps=[one | {"context_len": None} for one in steps])).disturbed == [40]


CLASSES = {"matmul:wq:L0": 42 * MS, "matmul:wo:L0": 2 * MS, "rmsnorm": 2 * MS, "rope": 2 * MS, "lm_head": 52 * MS}


def with_slow(slow: dict[str, float], at: int = 9) -> StepTable:
    def classes(k: int) -> dict[str, int]:
        return {name: int(t * (slow.get(name, 1) if k == at else 1)) for name, t in CLASSES.items()}

    steps = [step(k, gpu_busy_ns=sum(classes(k).values())) for k in range(20)]
    return step_table(steps_of([one | {"dur_ns": one["gpu_busy_ns"] + 10 * MS} for one in steps], classes))


def test_classes_that_are_slow_together_disturb_a_step_where_one_alone_does_not() -> None:
    together = with_slow({"rmsnorm": 1.6, "rope": 1.8, "matmul:wo:L0": 1.55})  # 4 % of the step
    assert why(together) == {9: "rope 1.8×, rmsnorm 1.6×, matmul:wo 1.6×"}
    assert with_slow({"rmsnorm": 3}).disturbed == []
    assert why(with_slow({"lm_head": 1.2})) == {9: "lm_head 1.20×"}


def test_a_disturbance_lasts_until_a_step_is_as_usual_again() -> None:
    steps = [step(k, dur_ns=110 * MS + jitter(k)) for k in range(30)]
    steps[10]["gpu_busy_ns"] += 50 * MS
    steps[10]["dur_ns"] += 50 * MS
    for late in (3, 11, 20):  # 5 ms: too little by itself, but not behind a disturbed step
        steps[late]["dur_ns"] += 5 * MS
    assert step_table(trace_of(steps=steps)).disturbed == [10, 11]


def test_the_first_step_may_wait_for_the_host_but_not_for_the_gpu() -> None:
    warm = [step(0, dur_ns=160 * MS), *(step(k) for k in range(1, 12))]
    table = step_table(trace_of(steps=warm))
    assert table.disturbed == []
    assert any("first decode step, 0, is 50.000 ms longer than usual: warm-up" in said for said in remarks_of(table))
    cold = [step(0, gpu_busy_ns=160 * MS, dur_ns=170 * MS), *(step(k) for k in range(1, 12))]
    assert step_table(trace_of(steps=cold)).disturbed == [0]


def test_too_few_steps_are_not_judged() -> None:
    steps = [step(k, gpu_busy_ns=(900 if k == 2 else 100) * MS) for k in range(FEWEST - 1)]
    table = step_table(trace_of(steps=steps))
    assert table.disturbed == []
    assert table.steps["excess_ns"].null_count() == FEWEST - 1
    assert any("can't be known" in remark for remark in remarks_of(table))


def test_null_times_are_no_zeros() -> None:
    unknown = {"dur_ns": None, "start_ns": None}
    table = step_table(trace_of(steps=[step(0) | unknown, *(step(k) for k in range(1, 12)), step(12) | unknown]))
    assert table.steps["step"].to_list() == list(range(13))
    assert table.steps["gap_ns"].to_list() == [None, *([10 * MS] * 11), None]
    assert table.phases.select("wall_median_ns", "gap_median_ns").rows() == [(110 * MS, 10 * MS)]
    assert any("wall time of 2 of 13 steps isn't known" in remark for remark in remarks_of(table))
    no_walls = step_table(trace_of(steps=[step(k) | unknown for k in range(12)]))
    assert no_walls.phases.select("wall_median_ns", "gpu_median_ns", "gap_median_ns").rows() == [(None, 100 * MS, None)]
    nothing = step_table(trace_of(steps=[step(k) | unknown | {"gpu_busy_ns": None} for k in range(12)]))
    assert (nothing.disturbed, nothing.phases["gpu_median_ns"].to_list()) == ([], [None])


def test_one_step_is_an_answer() -> None:
    table = step_table(steps_of([step(0)], lambda k: {"attention": 100 * MS}))
    assert table.phases.select("steps", "used", "wall_mad_ns").rows() == [(1, 1, 0)]
    assert table.growth["slope_ns"].null_count() == 2


def test_a_phase_and_a_run_can_be_chosen_and_must_be_there() -> None:
    steps = [step(0, phase=None, process=0), step(1, process=0), step(0, process=1)]
    rows = totals(1, {"a": 7}) + totals(0, {"b": 8}, section=1)
    trace = trace_of(steps=steps, totals=rows)
    table = step_table(trace)
    assert (table.run, table.runs, table.class_steps["class"].to_list()) == (0, {0: 2, 1: 1}, ["a"])
    assert any("--run shows the others: 1" in remark for remark in remarks_of(table))
    assert step_table(trace, run=1).class_steps.select("class", "total_ns").rows() == [("b", 8)]
    assert step_table(trace, phase="unknown").steps["step"].to_list() == [0]
    assert step_table(trace, phase="decode").steps["step"].to_list() == [1]
    with pytest.raises(UnknownName, match='unknown run "2"'):
        step_table(trace, run=2)
    with pytest.raises(UnknownName, match='unknown phase "mixed"'):
        step_table(trace, phase="mixed")


def test_a_trace_without_steps_says_what_to_do() -> None:
    with pytest.raises(InputError, match=r"expected steps of an engine, found none recorded\n  In PyTorch, call"):
        step_table(trace_of([{}]))


def test_a_hundred_thousand_steps_take_seconds() -> None:
    numbers = pl.int_range(100_000, eager=True)
    steps = trace_of(steps=[step(0)]).steps.collect()
    steps = steps.select(pl.exclude("step", "context_len")).join(pl.DataFrame({"step": numbers}), how="cross")
    steps = steps.with_columns(
        (8 + 4 * pl.col("step")).alias("context_len"),
        (100 * MS + pl.col("step") * 40 + pl.col("step") * 7919 % 1_000_003).alias("gpu_busy_ns"),
        (pl.col("step") * 200 * MS).alias("start_ns"),
    )
    rows = steps.select("step", pl.lit(0).alias("section"), pl.col("gpu_busy_ns").alias("total_ns"))
    names = pl.DataFrame({"kernel": [f"op{i}:L{i}" for i in range(10)]})
    rows = rows.with_columns(pl.col("total_ns") // 10).join(names, how="cross")
    out = TraceBuilder()
    for name, frame in (("steps", steps), ("totals", rows)):
        out.add(name, frame.height, {column: frame[column] for column in frame.columns})
    trace = out.finish(Facts(format="by-hand", source="by hand"))
    begin = process_time()
    table = step_table(trace)
    assert process_time() - begin < 20
    assert table.steps.height == 100_000
    assert table.growth["slope_ns"][-1] == pytest.approx(40 / 16, rel=0.1)


MARKS = [
    event("user_annotation", "ProfilerStep#3", "100", "50"),
    event("user_annotation", "ProfilerStep#4", "200", "50"),
    call(ts="110", correlation=1),
    call(ts="140", correlation=2),
    call(ts="210", correlation=3),
    kernel("gemm", "120", "20", correlation=1),
    kernel("gemm", "205", "30", correlation=2),  # queued in step 3, runs in step 4
    kernel("copy", "225", "10", correlation=3, stream=9),
    kernel("gemm", "300", "10", correlation=4),
]


def test_launches_belong_to_the_marked_step_that_queued_them(read: Callable[..., Trace]) -> None:
    table = step_table(read(write_file(MARKS)))
    times = ("wall_ns", "window_ns", "gpu_busy_ns", "gap_ns")
    assert table.steps.select("step", "phase", *times).rows() == [
        (3, None, 50_000, 135_000, 50_000, 85_000),  # until its work ended at 235: the device ran from 120, 205 and 225
        (4, None, 50_000, 15_000, 10_000, 15_000),  # from there until its mark ends
    ]
    assert table.class_steps.select("step", "class", "total_ns").rows() == [(3, "gemm", 50_000), (4, "copy", 10_000)]
    assert table.anchor == "ProfilerStep"
    outside = "1 of 4 launches are in no step and are left out, since their host calls are not in the file."
    assert outside in remarks_of(table)


def test_launches_without_calls_are_in_no_step() -> None:
    spans = [{"span": f"ProfilerStep#{k}", "start_ns": 100 * k, "dur_ns": 50} for k in (1, 2)]
    launches = [{"start_ns": 110, "dur_ns": 20}, {"start_ns": 120, "dur_ns": 20, "stream": 9}, {"start_ns": 149}]
    table = step_table(trace_of(launches, spans=spans))
    columns = ("step", "launches", "gpu_busy_ns", "window_ns", "gap_ns")
    assert table.steps.select(columns).rows() == [(1, None, None, 40, 9), (2, None, None, 50, 50)]
    untold = "No host call of the 3 launches is in the file: which step they are of can't be known."
    assert untold in remarks_of(table)


def test_work_that_was_queued_before_the_first_mark_is_none_of_its_own() -> None:
    spans = [{"span": f"ProfilerStep#{k}", "start_ns": 100 * k, "dur_ns": 100} for k in (1, 2)]
    calls = [{"api": "cudaLaunchKernel", "start_ns": at, "dur_ns": 1, "correlation_id": at} for at in (60, 110, 210)]
    late = {"start_ns": 90, "dur_ns": 30, "correlation_id": 7}  # its call is not in the file
    early = {"start_ns": 120, "dur_ns": 20, "correlation_id": 60}  # called before the first mark
    own = [
        {"start_ns": 150, "dur_ns": 60, "correlation_id": 110},
        {"start_ns": 215, "dur_ns": 5, "correlation_id": 210},
    ]
    table = step_table(trace_of([late, early, *own], calls=calls, spans=spans))
    columns = ("step", "launches", "wall_ns", "window_ns", "gpu_busy_ns", "gap_ns")
    assert table.steps.select(columns).rows() == [
        (1, 1, 100, 70, 60, 10),  # from 140, when what was queued before has ended, to 210
        (2, 1, 100, 90, 5, 85),  # from 210 to 300
    ]
    said = "2 of 4 launches are in no step and are left out, 1 of them since their host calls are not in the file."
    assert said in remarks_of(table)


@pytest.mark.parametrize(("late_ns", "window"), [(500_000, (900_000, 800_000)), (500_001, (299_999, 199_999))])
def test_what_came_before_a_first_launch_that_had_to_wait_is_not_known(late_ns: int, window: tuple[int, int]) -> None:
    span = {"span": "ProfilerStep#1", "start_ns": 100_000, "dur_ns": 900_000}
    queued = {"api": "cudaLaunchKernel", "start_ns": 200_000, "dur_ns": 9, "correlation_id": 1}
    launch = {"start_ns": 200_000 + late_ns, "dur_ns": 100_000, "correlation_id": 1}
    table = step_table(trace_of([launch], calls=[queued], spans=[span]))
    assert table.steps.select("window_ns", "gap_ns").rows() == [window]


def test_launches_of_another_process_are_said() -> None:
    span = {"span": "ProfilerStep#1", "start_ns": 0, "dur_ns": 50, "process": 1}
    table = step_table(trace_of([{"start_ns": 10, "process": 2}], spans=[span]))
    assert "The one launch in the file is not of the process whose steps these are." in remarks_of(table)
    assert table.steps.select("launches", "gpu_busy_ns", "gap_ns").rows() == [(None, None, None)]


@given(st.lists(st.tuples(*[st.integers(0, 60)] * 3, st.booleans()), min_size=1, max_size=12), st.integers(1, 4))
@examples(100)
def test_windows_do_not_overlap_and_hold_as_much_idle_time_as_a_slow_count_finds(
    rows: list[tuple[int, int, int, bool]], length: int
) -> None:
    spans = [{"span": f"ProfilerStep#{k}", "start_ns": 20 * k, "dur_ns": 20} for k in range(length)]
    calls = [
        {"api": "cudaLaunchKernel", "start_ns": at, "dur_ns": 1, "correlation_id": i} for i, (at, *_) in enumerate(rows)
    ]
    launches = [
        {"start_ns": at + lag, "dur_ns": dur, "correlation_id": i if known else 99}
        for i, (at, lag, dur, known) in enumerate(rows)
    ]
    found = read_steps(trace_of(launches, calls=calls, spans=spans)).steps
    running = {t for one in launches for t in range(one["start_ns"], one["start_ns"] + one["dur_ns"])}
    ended = 0
    for start, window, gap in found.select("window_start_ns", "window_ns", "gap_ns").iter_rows():
        assert start >= ended
        ended = start + window
        assert gap == window - sum(start <= t < ended for t in running)
    by_step = [
        [one for one, (at, *_, known) in zip(launches, rows, strict=True) if known and at // 20 == k]
        for k in range(length)
    ]
    busy = [len({t for one in own for t in range(one["start_ns"], one["start_ns"] + one["dur_ns"])}) for own in by_step]
    assert found["gpu_busy_ns"].to_list() == (busy if any(known for *_, known in rows) else [None] * length)


@pytest.mark.parametrize(
    ("name", "phase", "tokens"),
    [
        ("execute_context_2(300)_generation_0(0)", "prefill", 300),
        ("execute_context_0(0)_generation_64(64) step 1", "decode", 64),
        ("execute_context_1(16)_generation_3(3)", "mixed", 19),
        ("step[DECODE bs=16]", "decode", 16),
        ("step[EXTEND bs=2 toks=500]", "prefill", 500),
        ("step[IDLE bs=0]", None, None),
        ("[Executor] _forward_step 0: 0 ctx reqs, 8 gen reqs", "decode", None),
    ],
)
def test_marks_of_engines_tell_phase_and_tokens(name: str, phase: str | None, tokens: int | None) -> None:
    marks = [{"span": name, "start_ns": 0, "dur_ns": 9}, {"span": "ProfilerStep#1", "start_ns": 0, "dur_ns": 99}]
    on_device = {"span": name, "device": "gpu:0", "stream": 7, "start_ns": 0, "dur_ns": 9}
    table = step_table(trace_of(spans=[*marks, on_device]))
    assert table.steps.select("step", "phase", "tokens", "wall_ns", "gpu_busy_ns").rows() == [
        (0, phase, tokens, 9, None)
    ]


def test_of_marks_around_one_step_those_that_tell_more_count() -> None:
    outer = "execute_2_context_0(sq0sk0sqsq0sqsk0)_generation_2(sq2sk30sqsq2sqsk30)"
    spans = [{"span": outer, "start_ns": 0, "dur_ns": 99}, {"span": "step[DECODE bs=2]", "start_ns": 10, "dur_ns": 50}]
    table = step_table(trace_of(spans=spans))
    columns = ("phase", "batch", "tokens", "context_len", "mean_kv", "wall_ns")
    assert table.steps.select(columns).rows() == [("decode", 2, 2, 28, 15.0, 99)]


def test_a_host_that_runs_ahead_has_no_gap_to_judge() -> None:
    steps = [step(k, dur_ns=(5 if k != 9 else 80) * MS) for k in range(20)]
    table = step_table(trace_of(steps=steps))
    assert table.disturbed == []
    assert table.steps["gap_ns"].null_count() == 20
    ahead = "The host runs ahead: 20 decode steps last 175.000 ms there, and keep the device busy for 2.000 s."
    assert ahead in remarks_of(table)


def test_steps_of_other_work_are_not_judged() -> None:
    spans = [{"span": f"ProfilerStep#{k}", "start_ns": 1_000 * k, "dur_ns": 1_000} for k in range(1, 13)]
    starts = [1_000 * k + 50 * i for k in range(1, 13) for i in range(20 if k == 5 else 10)]
    calls = [{"api": "cudaLaunchKernel", "start_ns": at, "dur_ns": 9, "correlation_id": at} for at in starts]
    launches = [{"start_ns": at, "dur_ns": 40, "correlation_id": at} for at in starts]
    table = step_table(trace_of(launches, calls=calls, spans=spans))
    assert table.disturbed == []
    assert table.steps.filter(pl.col("excess_ns").is_null())["step"].to_list() == [5]


def test_cycles_of_a_serving_process_are_steps_with_their_functions() -> None:
    table = step_table(inferometer.open(ROOT / "samples" / "slow" / "normal"))
    assert (table.steps.height, table.anchor, table.phases["phase"].to_list()) == (14, "Scheduler.run_batch", [None])
    assert table.steps["gpu_busy_ns"].null_count() == 14
    assert why(table) == {10: "wall 2.23×"}
    assert not table.classes.filter(pl.col("class") == "oncpu").height
    assert table.classes["share"].sum() == pytest.approx(1)


@pytest.mark.parametrize(("sample", "steps"), [("decode.json.gz", 6), ("nsys.sqlite.gz", 7)])
def test_the_samples_have_marked_decode_steps(sample: str, steps: int) -> None:
    trace = inferometer.open(ROOT / "samples" / sample)
    table = step_table(trace)
    assert table.phases.select("phase", "steps").rows() == [("decode", steps)]
    assert (table.steps["gap_ns"] > 0).all()
    assert table.class_steps["total_ns"].sum() == trace.launches.select(pl.col("dur_ns").sum()).collect().item()


def test_a_healthy_log_has_no_disturbed_steps_and_planted_ones_are_found(read: Callable[..., Trace]) -> None:
    for seed, noise in ((1, 0.002), (2, 0.02), (3, 0.1)):
        log = write_log(seed=seed, noise=noise, batches=20, tail=3, warmup_ms=30.0)
        assert step_table(read(log, name="healthy.log")).disturbed == []
    small = {"rmsnorm": 3.0, "rope": 3.0, "matmul:q_proj:L*": 2.5, "matmul:o_proj:L*": 2.0}
    log = write_log(
        batches=24, noise=0.01, disturbed={4: {"*": 1.3}, 9: small}, gaps_ms={17: 25.0}, words={"rope": "rot"}
    )
    found = why(step_table(read(log, name="slow.log")))
    assert list(found) == [5, 10, 18]
    assert "rmsnorm 3.0×" in found[10]
    assert re.fullmatch(r"host gap \+2[34]\.\d{3} ms", found[18])


@pytest.fixture(scope="module")
def seed_table(seeds: Path) -> StepTable:
    return step_table(inferometer.open(seeds / SEED))


def test_the_seed_was_disturbed_in_three_episodes(seed_table: StepTable) -> None:
    assert seed_table.disturbed == [27, 28, 29, 39, 54, 55, 56]
    excess = seed_table.steps.filter("disturbed")["excess_ns"] / MS
    assert excess.to_list() == pytest.approx([68, 108, 17, 68, 151, 64, 0], abs=4)
    reasons = why(seed_table)
    assert "matmul:o_proj 8.9×" in reasons[54]
    assert reasons[56].startswith("host gap")


def test_attention_of_the_seed_grows_by_440_us_a_position(seed_table: StepTable) -> None:
    attention, whole = seed_table.growth.row(0, named=True), seed_table.growth.row(-1, named=True)
    assert attention["class"] == "attention"
    assert attention["slope_ns"] / MS == pytest.approx(0.4403, abs=5e-4)
    assert attention["intercept_ns"] / MS == pytest.approx(0.174, abs=1e-3)
    assert attention["r2"] == pytest.approx(0.99985, abs=2e-5)
    assert attention["low_ns"] < 0.4403 * MS < attention["high_ns"]
    assert (attention["first_share"], attention["last_share"]) == pytest.approx((0.060, 0.580), abs=5e-4)
    assert (whole["slope_ns"] / MS, whole["intercept_ns"] / MS) == pytest.approx((0.4396, 83.35), abs=0.03)
    flat = seed_table.growth.filter(~pl.col("class").is_in(["attention", "(all)"]))
    assert ((flat["low_ns"] < 0) & (flat["high_ns"] > 0)).all()


def test_the_seed_s_steps_are_its_reports(seed_table: StepTable) -> None:
    prefill, decode = seed_table.phases.to_dicts()
    assert (prefill["steps"], decode["steps"], decode["used"], decode["tokens"]) == (1, 64, 57, 255)
    assert prefill["gpu_median_ns"] == 114_270_000
    assert seed_table.steps["gpu_busy_ns"].sum() == 37_206_470_000
    assert decode["gap_median_ns"] / MS == pytest.approx(48.1, abs=0.2)
    sums = seed_table.class_steps.group_by("step").agg(pl.col("total_ns").sum()).join(seed_table.steps, on="step")
    assert ((sums["total_ns"] - sums["gpu_busy_ns"]).abs() <= 190_000).all()
    down = seed_table.classes.filter(pl.col("class") == "matmul_rmsnorm_fused:ffn_down").row(0, named=True)
    assert down["layers"] == 26
    assert down["per_layer_median_ns"] / MS == pytest.approx(9.36, abs=0.05)
    assert down["per_token_median_ns"] / MS == pytest.approx(60.82, abs=0.2)


def test_a_seed_cut_before_its_metrics_is_disturbed_all_the_same(seeds: Path, read: Callable[..., Trace]) -> None:
    text = (seeds / SEED).read_bytes()
    table = step_table(read(text[: text.rindex(b"[Perf]")], name="cut.log"))
    assert table.disturbed == [27, 28, 29, 39, 54, 55, 56]
    assert table.growth.is_empty()  # prompt tokens aren't known
