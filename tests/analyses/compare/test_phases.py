"""Runs compared in the steps that `steps` shows: marked by engines or ranges, or found, by phase where known."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.analyses.compare.run_traces import LAYER, kernel_run, some
from tests.generated_traces import generated_trace
from tests.traces import trace_of
from tools.kineto_maker import Options, Truth

import inferometer
from inferometer import Trace
from inferometer.analyses.compare.activity.step_marks import find_marks
from inferometer.analyses.compare.comparison import NEEDED, Comparison, compare
from inferometer.analyses.compare.phases import PhaseChanges
from inferometer.analyses.comparison_limits import RELIABLE_STEPS
from inferometer.analyses.steps.table import step_table
from inferometer.reports.views.view import facts_of, remarks_of, sections_of

BARE = Options(steps=24, layers=2, prefill_every=6, marks="none", lean=True, stack=False, shapes=False)
OTHER = replace(BARE, seed=11)
SILU = "silu"
OF_PREFILL = ("nvjet_tst_320x128", 2.0)  # a matrix product that only prefill steps have


def made(folder: Path, options: Options, name: str) -> tuple[Trace, Truth]:
    path = folder / f"{name}.json"
    text, truth = generated_trace(options)
    path.write_bytes(text)
    return inferometer.open(path), truth


def compared(folder: Path, base: Options, candidate: Options) -> tuple[Comparison, Truth, Truth]:
    (first, truth), (second, other) = made(folder, base, "base"), made(folder, candidate, "candidate")
    return compare(first, second), truth, other


def time_of(truth: Truth, phase: str, kernel: str, *, first: int = 1) -> float:
    """The time of the kernels of such a name in a whole step of the phase, on the mean over steps from `first` on, ns.

    A step that was found lacks the gap before it if it is the first of the recording, and is left out.
    """
    steps = [step.step for step in truth.steps if step.phase == phase and step.step >= first]
    launches = some(truth.by_launch).launches
    return sum(one.dur_ns for one in launches if kernel in one.kernel and one.step in steps) / len(steps)


def busy_of(truth: Truth, phase: str, *, first: int = 1) -> float:
    return mean(step.kernel_ns for step in truth.steps if step.phase == phase and step.step >= first)


def of_phase(found: Comparison, phase: str) -> PhaseChanges:
    return next(one for one in found.phases if one.pair.phase == phase)


def silu(one: PhaseChanges) -> Any:
    return next(line for line in one.changes.contributions if SILU in line.name)


@pytest.mark.parametrize("marks", ["none", "vllm", "sglang"])
@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_a_kernel_made_slower_is_found_in_each_phase_with_the_times_of_the_truth(
    tmp_path: Path, marks: Any, mode: Any
) -> None:
    base, first = replace(BARE, marks=marks, mode=mode), int(marks == "none")
    found, truth, other = compared(tmp_path, base, replace(base, seed=11, slow=(SILU, 3.0)))
    assert {one.pair.phase for one in found.phases} == {"prefill", "decode"}
    for phase in ("prefill", "decode"):
        one = of_phase(found, phase)
        line = silu(one)
        assert line.kind == "slower"
        assert line == max(one.changes.changed, key=lambda line: abs(line.delta_ns))
        assert line.base_ns == pytest.approx(time_of(truth, phase, SILU, first=first), abs=1)
        assert line.candidate_ns == pytest.approx(time_of(other, phase, SILU, first=first), abs=1)
    decode = of_phase(found, "decode").changes
    assert (decode.base_steps, decode.candidate_steps) == (20, 20)
    kernels = sum(line.base_ns for line in decode.contributions if line.added and line.cls == "compute")
    assert kernels == pytest.approx(busy_of(truth, "decode", first=first), abs=len(decode.contributions))
    assert found.verdict == "software change"
    assert "silu" in found.judged.why


def test_steps_are_those_that_steps_shows(tmp_path: Path) -> None:
    for marks in ("none", "vllm", "sglang", "profiler"):
        trace, _ = made(tmp_path, replace(BARE, marks=marks), marks)
        shown, used = step_table(trace), find_marks(trace)
        columns = ["start_ns", "end_ns", "phase"]
        end = (pl.col("start_ns") + pl.col("wall_ns")).alias("end_ns")
        assert used.steps.select(columns).rows() == shown.steps.with_columns(end).select(columns).rows()
        assert used.looked_for == (marks == "none")
        assert used.anchor is not None


def test_steps_that_warm_up_are_left_out(tmp_path: Path) -> None:
    found, _, _ = compared(tmp_path, replace(BARE, prefill_every=0), replace(OTHER, prefill_every=0, fault="warm-up"))
    marks = some(found.sides.marks[1])
    assert marks.steps.filter("left_out")["cycle"].to_list() == [0]
    assert "Candidate: 1 of 24 steps is warm-up, and left out." in remarks_of(found)
    assert found.verdict == "no difference"


def test_ranges_of_an_engine_in_an_export_of_nsight_systems_are_steps() -> None:
    sample = Path(__file__).resolve().parents[3] / "samples" / "nsys.sqlite.gz"
    found = compare(inferometer.open(sample), inferometer.open(sample))
    assert (found.leading.pair.phase, found.changes.base_steps, found.changes.step_delta_ns) == ("decode", 6, 0)
    shown = step_table(inferometer.open(sample))  # the recording ends in the last
    assert shown.steps.height == find_marks(inferometer.open(sample)).steps.height == 7


def test_found_steps_are_said_with_their_confidence(tmp_path: Path) -> None:
    found, _, _ = compared(tmp_path, BARE, OTHER)
    (said,) = (text for label, text in facts_of(found) if label == "Steps")
    assert said.startswith("base by the order of kernels (sampling kernels, every 2 attentions), confidence 0.9")
    assert sum("Steps were found in the order of kernels" in remark for remark in remarks_of(found)) == 2
    steps = found.as_json()["steps"]
    assert steps["base"]["used"]
    assert RELIABLE_STEPS < steps["base"]["confidence"] <= 1
    assert found.verdict == "no difference"


def test_marked_steps_are_compared_with_found_ones(tmp_path: Path) -> None:
    found, truth, other = compared(tmp_path, replace(BARE, marks="vllm"), replace(OTHER, slow=(SILU, 3.0)))
    line = silu(of_phase(found, "decode"))
    assert line.base_ns == pytest.approx(time_of(truth, "decode", SILU), abs=1)
    assert line.candidate_ns == pytest.approx(time_of(other, "decode", SILU), abs=1)
    assert found.as_json()["steps"]["base"] == {"anchor": "the engine's marks", "confidence": None, "used": True}
    same, _, _ = compared(tmp_path, replace(BARE, marks="vllm"), OTHER)
    assert same.verdict == "no difference"


def test_a_run_without_prefill_is_compared_by_its_decode_steps(tmp_path: Path) -> None:
    decode = replace(OTHER, prefill_every=0)
    found, _, _ = compared(tmp_path, BARE, decode)
    assert [one.pair.phase for one in found.phases] == ["decode"]
    assert found.verdict == "no difference"
    assert found.judged.why.startswith("In decode steps: ")
    assert "Base: 4 prefill steps have too few of that phase to be set against, and are left out." in remarks_of(found)


def test_where_one_run_tells_no_phases_all_steps_are_compared_and_that_is_said(tmp_path: Path) -> None:
    found, _, _ = compared(tmp_path, replace(BARE, marks="profiler"), OTHER)
    assert found.phases == ()
    assert (
        "Only the candidate tells phases (20 decode, 4 prefill): all steps are compared, however they are mixed."
        in remarks_of(found)
    )


def test_a_verdict_rests_on_the_phase_that_slowed_where_its_tokens_are_the_same(tmp_path: Path) -> None:
    vllm = replace(BARE, marks="vllm", prefill_every=3)
    found, _, _ = compared(tmp_path, vllm, replace(vllm, seed=11, slow=OF_PREFILL))
    assert found.leading.pair.phase == "prefill"
    assert (found.verdict, found.as_json()["phase"]) == ("software change", "prefill")
    assert found.judged.why.startswith("In prefill steps: The step is slower")
    assert of_phase(found, "decode").slowdown.speed == "same"


def test_prefill_of_unknown_tokens_is_shown_and_not_judged(tmp_path: Path) -> None:
    often = replace(BARE, prefill_every=3)
    found, _, _ = compared(tmp_path, often, replace(often, seed=11, slow=OF_PREFILL))
    assert found.leading.pair.phase == "decode"
    assert found.verdict == "no difference"
    assert "Prefill steps are slower, too" in found.judged.why
    assert "which may be their tokens" in found.judged.why
    (section,) = (section for section in sections_of(found) if section.title == "Phases, a step")
    assert section.frame["phase"].to_list() == ["decode", "prefill"]


def test_found_steps_stand_against_times_by_cycle(tmp_path: Path) -> None:
    run = made(tmp_path, BARE, "run")[0]
    times = [{"cycle": k, "function": "silu", "device": "gpu:0", "dur_ns": 9, "calls": 2} for k in range(9)]
    found = compare(run, trace_of(function_times=[row | {"cycle_dur_ns": 20} for row in times]))
    assert found.changes.base_steps > 20
    assert "candidate by what the source recorded" in found.sides.describe_found()
    assert found.as_json()["steps"]["candidate"] is None


def test_other_batches_are_other_work(tmp_path: Path) -> None:
    found, _, _ = compared(tmp_path, replace(BARE, marks="vllm"), replace(OTHER, marks="vllm", batch=64))
    decode = of_phase(found, "decode")
    assert not decode.pair.does_same_work
    only = replace(BARE, marks="vllm", prefill_every=0)
    found, _, _ = compared(tmp_path, only, replace(only, batch=64))
    assert (found.verdict, found.comparable.why) == (
        "not comparable",
        "A step does other work: batch of 32.0 against 64.0 on average.",
    )


def test_runs_of_different_phases_are_not_compared(tmp_path: Path) -> None:
    vllm = replace(BARE, marks="vllm", steps=6)
    found, _, _ = compared(tmp_path, replace(vllm, prefill_every=1), replace(vllm, prefill_every=0))
    assert found.verdict == "not comparable"
    assert found.comparable.why == "The runs are of different phases: prefill against decode."


def uneven(odd: int, *, seed: int = 0, attention_ns: int = 7_000) -> Trace:
    """Steps that end with a sampler, with so many kernels in each that hardly another step has."""
    rng, now, rows = np.random.default_rng(seed), 0, []
    for _ in range(20):
        kernels: list[tuple[str, int]] = [(name, attention_ns if "flash" in name else ns) for name, ns in LAYER] * 4
        for first, second in rng.integers(97, 123, (odd, 2)).tolist():
            kernels.insert(int(rng.integers(len(kernels))), (f"{chr(first) * 3}{chr(second) * 2}_kernel", 3_000))
        for name, ns in (*kernels, ("topk_sampling_kernel", 5_000)):
            took = round(ns * (1 + 0.01 * rng.standard_normal()))
            rows.append({"kernel": name, "start_ns": now, "dur_ns": took})
            now += took + 1_000
        now += 20_000
    return trace_of(rows)


@pytest.mark.parametrize("odd", [8, 16])
def test_steps_of_low_confidence_are_not_compared(odd: int) -> None:
    found = compare(uneven(0), uneven(odd, seed=1))
    assert found.phases == ()
    assert [len(times) for times in found.changes.step_times] == [0, 0]
    remarks = " ".join(remarks_of(found))
    assert "the whole recording is compared" in remarks
    assert ("too little to rest a comparison on" in remarks) == (odd == 8)
    assert not found.as_json()["steps"]["base"]["used"]
    assert [label for label, _ in facts_of(found)] == ["Verdict", "Base", "Candidate"]


def test_the_same_steps_are_compared_where_they_are_alike() -> None:
    found = compare(uneven(0), uneven(0, seed=1, attention_ns=14_000))
    assert [len(times) for times in found.changes.step_times] == [19, 19]
    first = found.changes.contributions[0]
    assert (first.name, first.kind) == ("flash_kernel", "slower")
    assert first.delta_ns == pytest.approx(4 * 7_000, rel=0.01)


def test_marks_of_the_one_are_no_measure_where_steps_of_the_other_cannot_be_told() -> None:
    marked = kernel_run()
    found = compare(marked, uneven(12))
    assert found.sides.marks[0] is not None
    assert found.sides.marks[0].anchor == "ProfilerStep"
    assert found.sides.marks[0].steps.is_empty()
    assert len(found.changes.step_times[0]) == 0


def steps_of(ranges: Sequence[str]) -> Trace:
    """Launches called in ranges of these names that follow each other, four layers each."""
    rows: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    spans: list[dict[str, Any]] = []
    now = 0
    for name in ranges:
        begin = now
        for kernel, ns in [*LAYER] * 4:
            at = len(rows)
            calls.append({"api": "cudaLaunchKernel", "start_ns": now, "dur_ns": 500, "correlation_id": at})
            rows.append({"kernel": kernel, "start_ns": now + 2_000, "dur_ns": ns, "correlation_id": at})
            now += ns + 1_000
        spans.append({"span": name, "start_ns": begin, "dur_ns": now - begin})
    return trace_of(rows, calls=calls, spans=spans)


def test_ranges_that_a_user_named_are_steps() -> None:
    numbered, other = (steps_of([f"forward {number}" for number in range(n)]) for n in (12, 9))
    found = compare(numbered, other)
    assert (found.changes.base_steps, found.changes.candidate_steps) == (12, 9)
    assert found.as_json()["steps"]["base"]["anchor"] == "ranges named `forward N`"
    assert found.verdict == "no difference"


def test_marks_with_numbers_that_come_again_are_counted_anew() -> None:
    spans = [{"span": f"ProfilerStep#{k % 3}", "start_ns": 100 * k, "dur_ns": 90} for k in range(6)]
    run = trace_of([{"start_ns": 100 * k + 10} for k in range(6)], spans=spans)
    assert find_marks(run).steps["cycle"].to_list() == [0, 1, 2, 3, 4, 5]


def test_all_tables_that_compare_needs_are_enough_for_its_steps(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(generated_trace(BARE)[0])
    found = compare(inferometer.open(path, NEEDED), inferometer.open(path, NEEDED))
    assert {one.pair.phase for one in found.phases} == {"prefill", "decode"}
    assert all(one.changes.step_delta_ns == 0 and not one.changes.changed for one in found.phases)
