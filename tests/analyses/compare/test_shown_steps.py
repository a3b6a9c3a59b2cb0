"""Steps of two runs to set side by side: which are taken, what ran in them, and what corresponds."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.analyses.compare.run_traces import GEMM, LAYER, kernel_run, some, timed_run
from tests.traces import trace_of

import inferometer
from inferometer import Trace
from inferometer.analyses.compare import shown_steps as module
from inferometer.analyses.compare.comparison import compare
from inferometer.analyses.compare.shown_steps import ShownSteps, corresponding, merge_short, shown_steps

SAMPLES = Path(__file__).parents[3] / "samples"
RUN = kernel_run()


def shown(base: Trace, candidate: Trace) -> ShownSteps:
    return some(shown_steps(base, candidate, compare(base, candidate)))


def median_pairs(found: ShownSteps) -> list[tuple[int, int]]:
    base, candidate = (run.steps[run.median] for run in (found.base, found.candidate))
    return corresponding(base, candidate, found.groups)


def test_steps_are_those_of_the_comparison_with_all_their_launches() -> None:
    slow = kernel_run([(name, dur * 2 if name == GEMM else dur) for name, dur in LAYER], seed=1)
    found = shown(RUN, slow)
    times = compare(RUN, slow).changes.step_times
    for run, trace, own in zip((found.base, found.candidate), (RUN, slow), times, strict=True):
        assert [step.dur_ns for step in run.steps] == own.tolist()
        assert (run.of, len(run.steps)) == (10, 10)
        assert sum(step.boxes["summed_ns"].sum() for step in run.steps) == trace.launches.collect()["dur_ns"].sum()
        ranked = sorted(step.dur_ns for step in run.steps)
        chosen = [run.steps[place].dur_ns for place in (run.fastest, run.median, run.slowest)]
        assert chosen == [ranked[0], ranked[4], ranked[-1]]


@pytest.mark.parametrize(
    "pair", [("decode.json.gz", "decode_fixed.json.gz"), ("h200/kineto_eager.json.gz", "h200/kineto_graph.json.gz")]
)
def test_boxes_lie_where_the_launches_of_the_file_do(pair: tuple[str, str]) -> None:
    traces = [inferometer.open(SAMPLES / name) for name in pair]
    found = shown(*traces)
    for run, trace in zip((found.base, found.candidate), traces, strict=True):
        recorded = set(trace.launches.select(pl.col("kernel").cast(pl.String), "start_ns", "dur_ns").collect().rows())
        ends: list[int] = []
        for step in run.steps:
            rows = step.boxes.select("kernel", pl.col("start_ns") + step.start_ns, "dur_ns").rows()
            assert set(rows) <= recorded
            begins, stops = [start for _, start, _ in rows], [start + dur for _, start, dur in rows]
            assert max(stops) == step.start_ns + step.dur_ns
            busy = union(sorted(zip(begins, stops, strict=True)))
            assert step.idle_ns == step.dur_ns - busy, "one stream: what isn't busy is idle"
            ends.append(max(stops))
        for before, step in zip(ends, run.steps[1:], strict=False):
            assert step.start_ns == before, "a step begins where the one before ends"


def test_steps_of_two_real_ranks_hold_the_launches_that_their_marks_called_for(shared_data: Path) -> None:
    names = (shared_data / "traces" / "kineto" / f"rank{rank}_sampled.json.gz" for rank in (0, 1))
    traces = [*map(inferometer.open, names)]
    found = shown(*traces)
    for run, trace in zip((found.base, found.candidate), traces, strict=True):
        calls = dict(trace.calls.select("correlation_id", "start_ns").collect().drop_nulls().rows())
        spans = trace.spans.select(pl.col("span").cast(pl.String), "stream", "start_ns", "dur_ns").collect().rows()
        steps = [row for row in spans if row[0].startswith("ProfilerStep#") and row[1] is None]
        marks = [(start, start + dur) for _, _, start, dur in steps]
        launches = trace.launches.select("stream", "correlation_id", "start_ns", "dur_ns").collect().rows()
        assert len(marks) == len(run.steps) == 2
        for step, (begin, end) in zip(run.steps, marks, strict=True):
            own = [row for row in launches if begin <= calls.get(row[1], -1) < end]
            drawn = step.boxes.select("stream", pl.col("start_ns") + step.start_ns, "dur_ns").rows()
            assert sorted(drawn) == sorted((str(stream), start, dur) for stream, _, start, dur in own)
            assert step.start_ns + step.dur_ns == max(start + dur for _, _, start, dur in own)


def union(spans: list[tuple[int, int]]) -> int:
    total, until = 0, spans[0][0]
    for start, end in spans:
        total += max(0, end - max(start, until))
        until = max(until, end)
    return total


def test_the_kth_launch_corresponds_to_the_kth_where_both_have_as_many() -> None:
    found = shown(RUN, kernel_run([*LAYER[:4], ("silu", 1_000)], seed=1))
    boxes = [run.steps[run.median].boxes for run in (found.base, found.candidate)]
    pairs = median_pairs(found)
    names = [(boxes[0]["kernel"][left], boxes[1]["kernel"][right]) for left, right in pairs]
    assert {left for left, _ in names} == {"qkv_kernel", "flash_kernel", GEMM, "softmax_kernel"}, "silu is called more"
    assert all(left == right for left, right in names)
    of_gemm = [pair for pair in pairs if boxes[0]["kernel"][pair[0]] == GEMM]
    starts = [(boxes[0]["start_ns"][left], boxes[1]["start_ns"][right]) for left, right in of_gemm]
    assert len(starts) == 4
    assert starts == sorted(starts)
    assert sorted(start for _, start in starts) == [start for _, start in starts]


def test_a_renamed_kernel_corresponds_and_a_run_to_itself_wholly() -> None:
    other = kernel_run([("flash_kernel_v2" if name == "flash_kernel" else name, dur) for name, dur in LAYER], seed=1)
    found = shown(RUN, other)
    step = found.base.steps[found.base.median]
    assert len(median_pairs(found)) == step.launches
    assert median_pairs(shown(RUN, RUN)) == [(row, row) for row in range(step.launches)]


def test_of_runs_that_cannot_be_compared_nothing_corresponds() -> None:
    other = kernel_run([(f"other_{name}_{i}", dur) for i, (name, dur) in enumerate([*LAYER, *LAYER])], [], marked=False)
    found = compare(kernel_run(marked=False), other)
    assert found.comparable.stops
    both = some(shown_steps(kernel_run(marked=False), other, found))
    assert not any(both.groups)
    assert median_pairs(both) == []


def test_of_many_steps_some_are_taken_at_even_distances(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_STEPS", 5)
    run = shown(kernel_run(steps=100), RUN).base
    assert (run.of, len(run.steps)) == (100, 5)
    numbers = [step.number for step in run.steps]
    assert numbers == sorted(numbers)
    assert {0} < set(numbers)
    monkeypatch.setattr(module, "MOST_BOXES_OF_RUN", 1)
    few = shown(kernel_run(steps=100), RUN).base
    assert {few.steps[place].number for place in (few.median, few.slowest, few.fastest)} == {
        s.number for s in few.steps
    }


def launches(rows: list[tuple[str, int, int]]) -> pl.DataFrame:
    columns: list[dict[str, Any]] = [
        {"stream": stream, "start_ns": start, "dur_ns": dur, "kernel": f"k{i}", "launches": 1, "summed_ns": dur}
        for i, (stream, start, dur) in enumerate(rows)
    ]
    return pl.DataFrame(columns, schema=module.BOXES)


def test_short_neighbours_become_one_box_that_keeps_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BOXES", 4)
    merged = merge_short(
        launches([("7", 0, 5), ("7", 6, 5), ("7", 20, 90), ("7", 110, 4), ("8", 0, 80), ("7", 120, 3)])
    )
    assert merged.rows() == [
        ("7", 0, 11, None, 2, 10),
        ("7", 20, 90, "k2", 1, 90),
        ("7", 110, 13, None, 2, 7),
        ("8", 0, 80, "k4", 1, 80),
    ]
    assert merge_short(launches([("7", 0, 5)])).rows() == [("7", 0, 5, "k0", 1, 5)]


def test_a_step_with_very_many_launches_keeps_their_number_and_time() -> None:
    rows = [("7", 10 * i, 1 + (i * 7919) % 9) for i in range(20_000)]
    merged = merge_short(launches(rows))
    assert merged.height <= module.MOST_BOXES
    assert (merged["launches"].sum(), merged["summed_ns"].sum()) == (20_000, sum(dur for _, _, dur in rows))


def test_without_launches_or_steps_there_is_nothing_to_show() -> None:
    timed = timed_run({"gemm": ("gpu:0", 4, 100_000)})
    assert shown_steps(timed, timed, compare(timed, timed)) is None
    sums = trace_of(totals=[{"kernel": "gemm", "count": 10, "total_ns": 1_000_000, "section": 0}])
    assert shown_steps(sums, sums, compare(sums, sums)) is None
    assert shown_steps(RUN, sums, compare(RUN, sums)) is None


def test_a_run_without_marks_is_one_recording() -> None:
    found = shown(kernel_run(marked=False, steps=1, layers=1), kernel_run(marked=False, steps=1, layers=1, seed=1))
    assert found.per == "recording"
    assert (found.base.of, found.base.median, found.base.slowest) == (1, 0, 0)
    assert len(median_pairs(found)) == len(LAYER) + 1
