"""A benchmark next to the steps: parts add up, traps of both sides are dealt with, and other runs are distinguished."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples
from tests.traces import trace_of
from tests.webgpu_log_files import write_log
from tools.make_serving import Options, make_result

import inferometer
from inferometer.analyses.steps.serving.engine_facts import ENGINE_LOG
from inferometer.analyses.steps.serving.latency import ServingLatency, find_serving_latency, serving_of
from inferometer.analyses.steps.table import StepTable, step_table
from inferometer.formats.serving_results import read_serving
from inferometer.formats.serving_results.serving import Latency, Serving
from inferometer.reports.views.steps.serving import latency_remarks, latency_section

MS = 1_000_000
BASE = Serving(source="run.json", tool="vllm bench serve", itl_of="chunk")
PARTS = ("busy", "host", "others", "between", "outside")


def latency(mean_ms: float | None = None, median_ms: float | None = None) -> Latency:
    mean_ns, median_ns = (None if value is None else value * MS for value in (mean_ms, median_ms))
    return Latency(mean_ns=mean_ns, median_ns=median_ns)


def serving(**fields: Any) -> Serving:
    """Of latencies given in ms: `itl=10` or `itl=(10, 9)`, mean and median."""
    named = {name: fields.pop(name) for name in ("ttft", "tpot", "itl", "e2e") if name in fields}
    for name, value in named.items():
        fields[name] = latency(*value) if isinstance(value, tuple) else latency(value)
    return msgspec.structs.replace(BASE, **fields)


def step(number: int, start_ms: float | None, **others: object) -> dict[str, Any]:
    """A decode step of 16 sequences: 6 ms, 4 of them on the GPU."""
    usual = {"phase": "decode", "decode_tokens": 16, "prefill_tokens": 0, "batch": 16}
    times = {"start_ns": start_ms and round(start_ms * MS), "dur_ns": 6 * MS, "gpu_busy_ns": 4 * MS}
    return {"step": number, "source": "recorded", **usual, **times, **others}


def prefill(number: int, start_ms: float, wall_ms: float = 20, tokens: int = 512) -> dict[str, Any]:
    usual = {"phase": "prefill", "decode_tokens": 0, "prefill_tokens": tokens, "batch": 1}
    return step(number, start_ms, **usual, dur_ns=round(wall_ms * MS), gpu_busy_ns=round(wall_ms * MS))


def table(steps: Sequence[dict[str, Any]]) -> StepTable:
    return step_table(trace_of(steps=steps), keep_disturbed=True)


def every(gap_ms: float, count: int = 9, **others: object) -> StepTable:
    return table([step(k, 1 + k * gap_ms, **others) for k in range(count)])


def set_beside(benchmark: Serving, steps: StepTable) -> ServingLatency:
    return find_serving_latency(benchmark, steps.steps, steps.model)


def parts(beside: ServingLatency, statistic: str = "mean") -> dict[str, float]:
    """What is known, in ms."""
    found = {name: beside.part(name, statistic) for name in PARTS}
    return {name: round(value / MS, 6) for name, value in found.items() if value is not None}


def said(beside: ServingLatency) -> str:
    return " ".join(latency_remarks(beside))


def test_the_wait_for_a_token_is_parted_and_adds_up() -> None:
    beside = set_beside(serving(itl=(10, 9), tpot=10), every(8))
    assert beside.can_be_same_run
    assert parts(beside) == {"busy": 4, "host": 2, "others": 0, "between": 2, "outside": 2}
    assert parts(beside, "median") == {"busy": 4, "host": 2, "others": 0, "between": 2, "outside": 1}
    shares = beside.rows.filter(pl.col("about") == "token")["mean_share"].to_list()
    assert shares[:6] == [1.0, 0.4, 0.2, 0.0, 0.2, 0.2]
    text = said(beside)
    assert "Of 10.000 ms from one step of a sequence to the next (mean inter-token latency), 6.000 ms (60.0 %)" in text
    assert "4.000 ms (40.0 %) the GPU's work in it; 2.000 ms (20.0 %) lies in no step: scheduling." in text
    assert "2.000 ms (20.0 %) passes beyond the recorded steps" in text
    assert "No prefill was recorded" in text


def test_prefills_between_decode_steps_are_a_part_of_the_mean() -> None:
    steps = [step(k, 1 + 8 * k) for k in range(8)] + [prefill(8, 64.5)]
    steps += [step(9 + k, 85 + 8 * k) for k in range(8)]
    beside = set_beside(serving(itl=(12, 8.5)), table(steps))
    assert parts(beside) == {"busy": 4, "host": 2, "others": 1.333333, "between": 2, "outside": 2.666667}
    assert parts(beside, "median") == {"busy": 4, "host": 2, "others": 0, "between": 2, "outside": 0.5}
    assert "1.333 ms (11.1 %) is steps in between that make no tokens (prefills)" in said(beside)
    assert "No prefill was recorded" not in said(beside)


@given(
    gaps=st.lists(st.tuples(st.integers(1, 40), st.integers(1, 12), st.booleans()), min_size=3, max_size=30),
    wait_ms=st.floats(50, 500),
)
@examples(40)
def test_parts_add_up_to_the_latency(gaps: list[tuple[int, int, bool]], wait_ms: float) -> None:
    steps, at = [], 1
    for number, (gap, wall, reads) in enumerate(gaps):
        made = prefill(number, at, wall) if reads else step(number, at, dur_ns=wall * MS, gpu_busy_ns=min(4, wall) * MS)
        steps.append(made)
        at += wall + gap
    beside = set_beside(serving(itl=(wait_ms, wait_ms * 0.9)), table(steps))
    for statistic, share in (("mean", 1.0), ("median", 0.9)):
        known = [beside.part(name, statistic) for name in PARTS]
        if any(value is not None for value in known):
            assert sum(value or 0 for value in known) == pytest.approx(wait_ms * share * MS)


def test_tokens_that_come_faster_than_steps_are_another_run() -> None:
    beside = set_beside(serving(itl=(5, 5), ttft=50), every(8))
    assert (beside.can_be_same_run, parts(beside), beside.steps_tokens_per_s) == (False, {}, None)
    assert "every 8.000 ms, and the benchmark's inter-token latency is 5.000 ms per step: they can't be" in said(beside)
    assert beside.rows["what"].to_list() == ["inter-token latency", "step to step", "step, wall", "time to first token"]


def test_a_little_faster_is_within_noise() -> None:
    beside = set_beside(serving(itl=(7.9, 7.9)), every(8))
    assert parts(beside)["outside"] == -0.1
    assert "The recorded steps take all of it, and a little more" in said(beside)


def test_more_sequences_than_requests_are_another_run() -> None:
    beside = set_beside(serving(itl=10, max_concurrency=8), every(8))
    assert (beside.can_be_same_run, parts(beside)) == (False, {})
    assert "has 16 sequences" in said(beside)
    assert "at most 8 requests under way" in said(beside)
    assert set_beside(serving(itl=10, max_concurrency=16), every(8)).can_be_same_run
    assert not set_beside(serving(itl=10, peak_concurrency=8), every(8)).can_be_same_run
    assert set_beside(serving(itl=10, peak_concurrency=8, failed=3), every(8)).can_be_same_run


def test_a_step_with_drafts_gives_several_tokens() -> None:
    chunks = set_beside(serving(itl=10, tpot=4, accept_length=2.5), every(8))
    assert parts(chunks)["outside"] == 2
    assert "A step gives a sequence 2.5 tokens on average, so a token takes 4.000 ms." in said(chunks)
    tokens = set_beside(serving(itl=4, tpot=4, accept_length=2.5, itl_of="token"), every(8))
    assert parts(tokens) == parts(chunks)
    assert parts(set_beside(serving(tpot=4, accept_length=2.5), every(8))) == parts(chunks)


def test_drafts_without_word_of_what_was_accepted_are_set_beside_nothing() -> None:
    found = every(8, decode_tokens=64)
    with_batch = replace(found, steps=found.steps.with_columns(batch=pl.lit(16)))
    beside = set_beside(serving(itl=10, tpot=4, max_concurrency=16), with_batch)
    assert (beside.step_latency, beside.can_be_same_run) == (None, True)
    assert "Steps have more tokens than sequences: they check drafts" in said(beside)
    accepted = set_beside(serving(itl=10, tpot=4, max_concurrency=16, accept_length=2.5), with_batch)
    assert (parts(accepted)["outside"], accepted.steps_tokens_per_s) == (2, 16 * 2.5 / 8e-3)


def test_chunks_of_several_steps_are_replaced_by_the_time_per_token() -> None:
    beside = set_beside(serving(itl=(80, 80), tpot=(10, 9.5)), every(8))
    assert parts(beside)["outside"] == 2
    assert "A chunk of the stream holds 8.0 tokens on average and a step makes 1 of a sequence" in said(beside)


def test_marks_of_a_host_that_runs_ahead_tell_only_their_starts() -> None:
    beside = set_beside(serving(itl=10), every(8, dur_ns=1 * MS, gpu_busy_ns=7 * MS))
    assert parts(beside) == {"busy": 7, "host": 1, "others": 0, "outside": 2}
    assert "The host runs ahead of the GPU" in said(beside)


def test_a_step_without_gpu_times_is_a_whole() -> None:
    beside = set_beside(serving(itl=10), every(8, gpu_busy_ns=None))
    assert parts(beside) == {"host": 6, "others": 0, "between": 2, "outside": 2}


def test_pauses_are_left_out_and_said() -> None:
    steps = [step(k, 1 + 8 * k) for k in range(6)] + [step(6 + k, 2_000 + 8 * k) for k in range(6)]
    beside = set_beside(serving(itl=10), table(steps))
    assert (beside.intervals.pauses, parts(beside)["between"]) == (1, 2)
    assert "1 pause between steps is left out" in said(beside)


def test_partial_and_warm_up_steps_begin_no_interval() -> None:
    found = every(8, count=8)
    odd = found.steps.with_columns(
        is_warm_up=pl.col("step") == 1,
        is_partial=pl.col("step").is_in([0, 7]),
        wall_ns=pl.when(pl.col("step").is_in([0, 1, 7])).then(7 * MS).otherwise("wall_ns"),
    )
    beside = set_beside(serving(itl=10), replace(found, steps=odd))
    assert (beside.intervals.frame.height, len(beside.intervals.walls_ns)) == (5, 5)
    assert parts(beside)["host"] == 2


def test_steps_without_starts_have_their_length_alone() -> None:
    beside = set_beside(serving(itl=10), table([step(k, None) for k in range(5)]))
    assert parts(beside) == {"busy": 4, "host": 2, "outside": 4}
    assert "From step to step isn't known" in said(beside)
    assert not set_beside(serving(itl=5), table([step(k, None) for k in range(5)])).can_be_same_run


def test_overlapping_steps_are_not_parted() -> None:
    beside = set_beside(serving(itl=10), every(5))
    assert (parts(beside), beside.can_be_same_run) == ({}, True)
    assert "Steps overlap" in said(beside)


def test_steps_of_unknown_phase_are_set_beside_nothing() -> None:
    beside = set_beside(serving(itl=10, ttft=5), every(8, phase=None))
    assert beside.rows["what"].to_list() == ["inter-token latency", "time to first token"]
    assert "No step is known to make tokens" in said(beside)


@pytest.mark.parametrize(
    ("ttft_ms", "prompt", "chunks", "steps_ms", "rest_ms", "words"),
    [
        (50, 512, (512, 300), 20, 30, "20.000 ms (40.0 %) is one prefill step, and 30.000 ms (60.0 %) the rest"),
        (50, 1024, (512, 512), 40, 10, "40.000 ms (80.0 %) is 2 prefill steps"),
        (50, 1024, (512, 300), None, None, "How many prefill steps a prompt needs isn't known; with one of 20.000 ms"),
        (50, None, (512, 512), None, None, "at most 30.000 ms (60.0 %) is queueing and the rest"),
        (15, 512, (512, 512), None, None, "they can't be of the same prompts"),
        (30, 1024, (512, 512), None, None, "less than 2 of the recorded prefill steps"),
        (50, 512, (), None, None, "no prefill step was recorded"),
    ],
)
def test_the_first_token_is_prefill_steps_and_a_rest(
    ttft_ms: float,
    prompt: int | None,
    chunks: tuple[int, ...],
    steps_ms: float | None,
    rest_ms: float | None,
    words: str,
) -> None:
    steps = [step(k, 1 + 8 * k) for k in range(4)]
    steps += [prefill(4 + k, 40 + 25 * k, 20, tokens) for k, tokens in enumerate(chunks)]
    counts = {"completed": 10, "input_tokens": None if prompt is None else 10 * prompt}
    beside = set_beside(serving(ttft=ttft_ms, **counts), table(steps))
    found = [beside.first_token(part) for part in ("steps", "rest")]
    assert found == [None if value is None else value * MS for value in (steps_ms, rest_ms)]
    assert words in said(beside)


def test_each_prompts_length_counts() -> None:
    steps = [prefill(0, 1), prefill(1, 25), *(step(2 + k, 50 + 8 * k) for k in range(3))]
    requests = pl.DataFrame({"input_tokens": [100, 1500, 9_999], "ttft_ns": [1e8, 1e8, None]})
    beside = set_beside(serving(ttft=100, completed=2, input_tokens=1600, requests=requests), table(steps))
    assert (beside.prefill_steps, beside.first_token("steps")) == (2.0, 40 * MS)


def test_throughput_of_the_steps_beside_the_benchmarks() -> None:
    beside = set_beside(serving(itl=10, tpot=10, output_tokens_per_s=1500.0), every(8))
    assert beside.steps_tokens_per_s == 2000
    assert "is 75.0 % of the 2,000 tokens/s that the recorded steps give: it counts the start" in said(beside)
    replicas = set_beside(serving(itl=10, tpot=10, output_tokens_per_s=4000.0), every(8))
    assert "200.0 % of the 2,000 tokens/s that the recorded steps give: the server has several replicas" in said(
        replicas
    )
    assert "about 40.0 requests of the benchmark decode at a time" in said(replicas)
    log = msgspec.structs.replace(replicas, serving=msgspec.structs.replace(replicas.serving, tool=ENGINE_LOG))
    assert (
        "The log's output is 200.0 % of the 2,000 tokens/s that the recorded steps give: its rate leaves out"
        in said(log)
    )


def test_another_model_is_said() -> None:
    trace = trace_of(steps=[step(k, 1 + 8 * k) for k in range(4)], facts={"model": "Llama-3.1-8B"})
    same, other = (set_beside(serving(itl=10, model=name), step_table(trace)) for name in ("x/llama-3.1-8b", "gemma"))
    assert "The benchmark is of the model" not in said(same)
    assert 'The benchmark is of the model "gemma", the trace of "Llama-3.1-8B".' in said(other)


def test_a_batch_without_a_server_has_a_median_alone() -> None:
    one = serving(ttft=30, tpot=(None, 8.5), prompts_together=True, input_tokens=1024, completed=2, max_concurrency=16)
    steps = [prefill(0, 1, 28, 1024), *(step(1 + k, 30 + 8 * k) for k in range(6))]
    beside = set_beside(one, table(steps))
    assert (parts(beside), parts(beside, "median")["outside"]) == ({}, 0.5)
    assert (beside.first_token("steps"), beside.first_token("rest")) == (28 * MS, 2 * MS)
    assert "(median time per output token)" in said(beside)


def test_an_engines_log_tells_its_own_latencies(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_text(write_log(batches=12), "utf-8")
    trace = inferometer.open(path)
    own = serving_of(trace)
    assert own is not None
    metrics = trace.facts.engine_metrics
    assert (own.ttft.mean_ns, own.max_concurrency, own.model) == (metrics["ttft_ns"], 1, trace.facts.model)
    beside = set_beside(own, step_table(trace))
    assert beside.can_be_same_run
    assert beside.step_latency is not None
    assert beside.step_latency.tokens == pytest.approx(4, abs=0.3)
    assert abs(parts(beside)["outside"]) < 0.1 * own.tpot.mean_ns * 4 / MS  # type: ignore[operator]
    assert beside.throughput_ratio == pytest.approx(1, abs=0.15)


@pytest.mark.parametrize(
    "metrics",
    [{}, {"runs": []}, {"runs": [1, 2]}, {"ttft_ns": "x"}, {"ttft_ns": True}, {"a": {"ttft_ns": 5}}, {"perf": 3}],
)
def test_a_trace_without_such_facts_has_none(metrics: dict[str, Any]) -> None:
    assert serving_of(trace_of(facts={"engine_metrics": metrics})) is None


def test_each_run_of_a_log_has_its_own() -> None:
    runs = [{"ttft_ns": 10, "model": "a"}, {"ttft_ns": 20, "decode_ns": 100, "decode_tokens": 5, "model": "b"}]
    trace = trace_of(facts={"engine_metrics": {"runs": runs}})
    first, second = serving_of(trace), serving_of(trace, 1)
    assert first is not None
    assert second is not None
    assert (first.ttft.mean_ns, first.model, first.runs) == (10, "a", 2)
    assert (second.tpot.mean_ns, second.model, second.run) == (20, "b", 1)
    assert serving_of(trace, 2) is None


def test_a_made_up_engine_is_found_again(tmp_path: Path) -> None:
    """The benchmark of `make_serving` next to the steps that it was made with: 6.5 ms each, and prefills of 24 ms."""
    result = tmp_path / "run.json"
    result.write_text(json.dumps(make_result(Options(requests=48, output=48))), "utf-8")
    steps: list[dict[str, Any]] = []
    at = 1.0
    for _ in range(3):
        for _ in range(16):
            steps.append(prefill(len(steps), at, 24))
            at += 24
        for _ in range(47):
            steps.append(step(len(steps), at))
            at += 6.5
    beside = set_beside(read_serving(result), table(steps))
    assert beside.can_be_same_run
    median = parts(beside, "median")
    assert median["busy"] + median["host"] == 6
    assert median["between"] == pytest.approx(0.5, abs=0.01)
    assert abs(median["outside"]) < 0.05
    assert beside.first_token("steps") == 24 * MS
    assert beside.prefill_steps == 1
    assert beside.throughput_ratio == pytest.approx(0.6, abs=0.4)


def test_the_section_and_json_hold_all(tmp_path: Path) -> None:
    beside = set_beside(serving(itl=(10, 9), ttft=50, completed=1, input_tokens=512), every(8))
    section = latency_section(beside)
    assert {field.column for field in section.fields} <= set(section.frame.columns)
    data = beside.as_json()
    assert json.loads(json.dumps(data)) == data
    assert [row["what"] for row in data["rows"]][:2] == ["inter-token latency", "GPU's work in the step"]
    assert data["can_be_same_run"] is True
