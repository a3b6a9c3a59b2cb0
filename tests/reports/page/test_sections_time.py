"""The sections about time: steps, classes of kernels, the time line and counters say what the analyses say."""

import json
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.traces import trace_of

import inferometer
from inferometer.analyses.timeline.timeline import find_timeline
from inferometer.reports.base import cell
from inferometer.reports.page.blocks import MOST_POINTS, Block, Chart, Grid, Points, TimeLine, Words, find_time_lines
from inferometer.reports.page.look import RunData
from inferometer.reports.page.sections import (
    bounds,
    counters,
    groups,
    histogram,
    kernels,
    step_classes,
    steps,
    timeline,
)
from inferometer.trace.builder import TraceBuilder
from inferometer.trace.facts import Facts
from inferometer.trace.tables import ALL_TABLES
from inferometer.trace.trace import Trace

SAMPLES = Path(__file__).resolve().parents[3] / "samples"
EVERY = (steps, step_classes, kernels, bounds, histogram, timeline, groups, counters)
MS = 1_000_000
US = 1_000


def build(section: Any, trace: Trace) -> Block:
    block = section.SECTION.build(RunData(trace))
    assert isinstance(block, Block)
    return block


def charts(block: Block) -> dict[str, Chart]:
    return {part.title: part for part in block.parts if isinstance(part, Chart)}


def step(number: int, **others: object) -> dict[str, Any]:
    usual = {"phase": "decode", "decode_tokens": 1, "context_len": number, "gpu_busy_ns": 8 * MS, "dur_ns": 10 * MS}
    return {"step": number, "source": "recorded", "start_ns": 20 * MS * number, **usual, **others}


def growing(count: int) -> Trace:
    """Steps whose `attend` takes 1 ms and 10 μs more a position, next to a constant `mlp` in two layers."""
    rows = [
        {"section": 0, "step": i, "total_ns": ns, "kernel": kernel, "layer": layer}
        for i in range(count)
        for kernel, ns, layer in (
            ("attend", MS + 10 * US * (i + 1), None),
            ("mlp:L0", 2 * MS, "0"),
            ("mlp:L1", 3 * MS, "1"),
        )
    ]
    return trace_of(steps=[step(i) for i in range(count)], totals=rows)


def test_each_step_is_a_point_with_its_wall_busy_and_gap_time() -> None:
    trace = trace_of(steps=[step(i, gpu_busy_ns=(8 + i) * MS, dur_ns=(10 + 3 * i) * MS) for i in range(5)])
    wall, busy, gap = charts(build(steps, trace))["Time of each step"].data
    assert (wall["name"], wall["y"]) == ("wall", [10, 13, 16, 19, 22])
    assert (busy["name"], busy["y"]) == ("GPU busy", [8, 9, 10, 11, 12])
    assert (gap["name"], gap["y"]) == ("gap", [2, 4, 6, 8, 10])
    assert wall["x"] == [0, 1, 2, 3, 4]


def test_a_single_step_is_a_sentence() -> None:
    block = build(steps, trace_of(steps=[step(0, gpu_busy_ns=8 * MS, dur_ns=10 * MS)]))
    assert not charts(block)
    (sentence,) = [part.text for part in block.parts if isinstance(part, Words)]
    assert sentence.startswith("One step: wall 10.000 ms, GPU busy 8.000 ms, gap 2.000 ms, ")


def test_disturbed_steps_are_marked_with_the_reason() -> None:
    trace = inferometer.open(SAMPLES / "webgpu.log.gz")
    look = RunData(trace)
    assert look.steps is not None
    block = steps.SECTION.build(look)
    assert block is not None
    chart = charts(block)["Time of each step"]
    marked = chart.data[-1]
    assert marked["name"] == "disturbed"
    assert marked["x"] == look.steps.disturbed
    assert all("×" in why for why in marked["customdata"])
    assert "2 of 42 steps are disturbed" in chart.alt
    titles = [part.section.title for part in block.parts if isinstance(part, Grid)]
    assert titles == [
        *("Steps per phase", "Growth with context, decode", "Disturbed steps"),
        *("What was different in disturbed steps", "What clients wait for"),
    ]


def test_a_step_far_from_the_others_makes_the_axis_logarithmic() -> None:
    usual = [step(i) for i in range(9)]
    layouts = [
        charts(build(steps, trace_of(steps=rows)))["Time of each step"].layout
        for rows in (usual, [*usual, step(9, dur_ns=900 * MS)])
    ]
    assert [layout["yaxis"]["type"] for layout in layouts] == ["linear", "log"]


def test_the_distribution_has_the_medians_of_the_table() -> None:
    look = RunData(inferometer.open(SAMPLES / "webgpu.log.gz"))
    assert look.steps is not None
    block = steps.SECTION.build(look)
    assert block is not None
    wall, _ = charts(block)["Distribution of undisturbed steps"].data
    median = wall["x"][int(np.searchsorted(wall["y"], 0.5))]
    row = look.steps.phases.filter(pl.col("phase") == "decode").row(0, named=True)
    assert median == pytest.approx(row["wall_median_ns"] / MS, rel=0.03)
    assert wall["y"][-1] == 1
    assert len(wall["x"]) == row["used"]


def test_phases_with_one_step_have_no_curve_and_that_is_said() -> None:
    rows = [step(0, phase="prefill"), *(step(i) for i in range(1, 6))]
    totals = [{"section": 0, "step": i, "kernel": "op", "total_ns": MS} for i in range(6)]
    trace = trace_of(steps=rows, totals=totals)
    said = [part.text for part in build(steps, trace).parts if isinstance(part, Words)]
    assert any(text.startswith("Of prefill steps no distribution is drawn") for text in said)
    block = build(step_classes, trace)
    assert list(charts(block)) == ["Classes of kernels, decode steps"]
    (note,) = [part.text for part in block.parts if isinstance(part, Words)]
    assert "Of prefill there is one step: it is in the table alone." in note


def test_slopes_below_a_nanosecond_keep_their_digits() -> None:
    rows = [
        {"section": 0, "step": i, "kernel": "attend", "total_ns": 1_000 + 3 * i} for i in range(20)
    ]  # 3 ns each 10 positions
    trace = trace_of(steps=[step(i, context_len=10 * i) for i in range(20)], totals=rows)
    block = build(steps, trace)
    chart = charts(block)["Growth with context, decode"]
    assert "grows most: by 0.3 ns per token for each KV position more" in chart.alt
    (growth,) = [part.section for part in block.parts if isinstance(part, Grid) and "Growth" in part.section.title]
    assert cell(growth.fields[0], growth.frame["slope_ns"][0]) == "0.3 ns"


def test_growth_shows_the_growing_classes_with_the_fitted_line() -> None:
    chart = charts(build(steps, growing(20)))["Growth with context, decode"]
    points, line = chart.data
    assert points["name"] == "attend"
    assert points["y"][0] == pytest.approx(1_010)
    assert line["y"] == pytest.approx([1_010, 1_200])
    assert line["x"] == [points["x"][0], points["x"][-1]]
    assert "by 10.000 μs per token" in chart.alt


def test_without_contexts_it_says_why_growth_is_not_shown() -> None:
    block = build(steps, trace_of(steps=[step(i, context_len=None) for i in range(5)]))
    assert any("how long the context was" in part.text for part in block.parts if isinstance(part, Words))


def test_without_steps_it_says_how_to_record_them_once() -> None:
    empty = trace_of()
    assert "profiler.step()" in build(steps, empty).lacking
    assert step_classes.SECTION.build(RunData(empty)) is None
    assert "time of kernels in each step" in build(step_classes, trace_of(steps=[step(0)])).lacking


def test_classes_stand_on_each_other_up_to_all_kernel_time_of_a_step() -> None:
    rows = [
        {"section": 0, "step": i, "kernel": f"op{k}", "total_ns": (k + 1) * MS + i} for i in range(7) for k in range(12)
    ]
    chart = charts(build(step_classes, trace_of(steps=[step(i) for i in range(7)], totals=rows)))
    (stack,) = chart.values()
    assert [trace["name"] for trace in stack.data][:2] == ["op11", "op10"]
    assert stack.data[-1]["name"] == f"other {12 - step_classes.CLASSES} classes"
    sums = np.sum([trace["y"] for trace in stack.data], axis=0)
    assert sums.tolist() == pytest.approx([78.0] * 7, rel=1e-3)


def test_with_many_steps_a_bar_is_a_mean_and_the_total_stays() -> None:
    count = 1_000
    trace = growing(count)
    stack = charts(build(step_classes, trace))["Classes of kernels, decode steps"]
    bars = len(stack.data[0]["x"])
    assert bars == step_classes.COLUMNS
    total = sum(np.sum(trace["y"]) for trace in stack.data) * count / bars
    assert total == pytest.approx(trace.totals.select(pl.col("total_ns").sum()).collect().item() / MS, rel=2e-3)
    assert stack.data[0]["x"][0] == "0 to 5"


def test_layers_by_step_are_of_the_class_with_the_most_time() -> None:
    chart = charts(build(step_classes, growing(6)))["Layers by step: mlp"]
    (cells,) = chart.data
    assert cells["y"] == ["0", "1"]
    assert cells["z"] == [[2] * 6, [3] * 6]
    assert "layer 1 takes most, 3.000 ms per step" in chart.alt


def test_of_several_ranks_layers_are_of_the_run_that_is_shown() -> None:
    """Rank 0 printed two runs, of which the first has no steps: the section's number isn't the run's."""
    rows = [
        {"rank": rank, "section": section, "step": i, "kernel": f"mlp:L{layer}", "layer": str(layer), "total_ns": ns}
        for rank, section, ns in ((0, 0, 9 * MS), (0, 1, 3 * MS), (1, 2, 5 * MS))
        for i in range(4)
        for layer in range(2)
    ]
    made = [step(i, rank=rank, process=process) for rank, process in ((0, 1), (1, None)) for i in range(4)]
    block = build(step_classes, trace_of(steps=made, totals=rows))
    (cells,) = charts(block)["Layers by step: mlp"].data
    assert cells["z"] == [[3] * 4] * 2
    assert any("All of this is of run 0 of rank 0." in part.text for part in block.parts if isinstance(part, Words))


def test_the_time_line_has_every_launch_on_its_stream_and_the_longest_gaps() -> None:
    rows = [
        {"stream": 1, "start_ns": 0, "dur_ns": 150 * US},
        {"stream": 2, "start_ns": 0, "dur_ns": 300 * US},
        {"stream": 2, "start_ns": 450 * US, "dur_ns": 150 * US},
    ]
    (line,) = find_time_lines(build(timeline, trace_of(rows)).parts)
    assert [(lane.group, lane.name) for lane in line.lanes.lanes] == [("gpu:0", "stream 1"), ("gpu:0", "stream 2")]
    assert line.lanes.dur_ns.tolist() == [150 * US, 300 * US, 150 * US]
    assert [(mark.start_ns, mark.end_ns, mark.text) for mark in line.marks] == [
        (300 * US, 450 * US, "gpu:0 idle for 150.000 μs: no host call recorded")
    ]
    assert line.alt == "gpu:0 is busy for 75.0 % of 600.000 μs. 3 events in 600.000 μs: device work by stream."


def test_parts_of_a_device_add_up_to_its_window() -> None:
    trace = inferometer.open(SAMPLES / "nsys.sqlite.gz")
    block = build(timeline, trace)
    device = find_timeline(trace).devices.row(0, named=True)
    parts = charts(block)["Where each device's time went"].data
    assert sum(part["x"][0] for part in parts) == pytest.approx(device["window_ns"] / MS, rel=1e-3)
    idle = charts(block)["Why devices waited"].data
    assert sum(part["x"][0] for part in idle) == pytest.approx(device["idle_ns"] / MS, rel=1e-3)
    exposed = next(part for part in parts if part["name"] == "exposed communication")
    assert exposed["x"][0] == pytest.approx(device["exposed_communication_ns"] / MS, rel=1e-3)


def test_without_launches_the_time_line_has_what_the_host_did() -> None:
    ops = [{"op": "aten::mm", "process": 1, "thread": 2, "start_ns": 5, "dur_ns": 10}]
    (part,) = build(timeline, trace_of(ops=ops)).parts
    assert isinstance(part, TimeLine)
    assert part.alt == "1 event in 10 ns: ops."


def test_counters_are_lines_of_each_device() -> None:
    samples = [
        {"metric": "gpu_power", "device": f"gpu:{gpu}", "time_ns": t * 10**9, "value": 100.0 + gpu + t, "unit": "W"}
        for gpu in range(2)
        for t in range(5)
    ]
    (chart,) = charts(build(counters, trace_of(counters=samples))).values()
    assert chart.title == "gpu_power, W"
    assert [(line["name"], line["x"], line["y"]) for line in chart.data] == [
        ("gpu:0", [0, 1, 2, 3, 4], [100, 101, 102, 103, 104]),
        ("gpu:1", [0, 1, 2, 3, 4], [101, 102, 103, 104, 105]),
    ]
    assert "between 100 and 105 W" in chart.alt


def test_samples_of_one_tick_are_a_band_with_their_median() -> None:
    samples = [
        {"metric": "cpu_frequency", "time_ns": t * 10**9 + core * 1_000, "value": 1_000.0 * (core + 1), "unit": "MHz"}
        for t in range(4)
        for core in range(5)
    ]
    (chart,) = charts(build(counters, trace_of(counters=samples))).values()
    low, high, middle = chart.data
    assert (low["y"], high["y"], middle["y"]) == ([1_000] * 4, [5_000] * 4, [3_000] * 4)


def test_many_samples_keep_their_extremes() -> None:
    values = np.random.default_rng(0).normal(50, 1, 20_000)
    values[12_345] = 99.0
    samples = [{"metric": "m", "time_ns": i * 10**6, "value": float(v)} for i, v in enumerate(values)]
    (chart,) = charts(build(counters, trace_of(counters=samples))).values()
    assert sum(len(line["x"]) for line in chart.data) <= MOST_POINTS
    assert max(chart.data[1]["y"]) == 99


def test_constant_metrics_and_those_beyond_the_charts_are_named() -> None:
    samples = [
        {"metric": f"m{i:02}", "time_ns": t, "value": float(5 if i == 0 else i + t)}
        for i in range(15)
        for t in range(3)
    ]
    block = build(counters, trace_of(counters=samples))
    assert len(charts(block)) == counters.CHARTS
    (rest,) = [part for part in block.parts if isinstance(part, Words)]
    assert rest.text.startswith("3 more metrics: ")
    assert rest.text.endswith("m00 (5).")


@pytest.mark.parametrize("name", ["decode.json.gz", "nsys.sqlite.gz", "webgpu.log.gz", "slow/normal", "slow/abnormal"])
def test_every_chart_of_a_sample_is_plain_json_with_words(name: str) -> None:
    look = RunData(inferometer.open(SAMPLES / name))
    for section in EVERY:
        block = section.SECTION.build(look)
        assert block is None or bool(block.parts) != bool(block.lacking)
        for part in block.parts if block else ():
            if isinstance(part, Chart):
                json.dumps([part.data, part.layout], allow_nan=False)
                assert part.alt.endswith(".")
                assert not part.alt.endswith("..")
            if isinstance(part, Points):
                assert part.points


def large(launches: int) -> Trace:
    """Launches of 300 kernels on 4 GPUs with calls, 5,000 steps and 100,000 samples; made at random."""
    random = np.random.default_rng(7)
    out = TraceBuilder(ALL_TABLES)
    names = np.array([f"void team::kernel_{i}<float, {i}>(float*, int)" for i in range(300)])
    each, ranks = launches // 4, np.repeat(np.arange(4), launches // 4)
    durations = random.lognormal(9, 1, launches).astype(np.int64)
    begins = np.concatenate([np.cumsum(part + 900) for part in np.split(durations, 4)])
    keys = {"rank": ranks, "process": ranks, "correlation_id": np.tile(np.arange(1, each + 1), 4)}
    own = {name: values.tolist() for name, values in keys.items()}
    kinds = {"kind": ["kernel"] * launches, "kernel": names[random.zipf(1.3, launches) % 300].tolist()}
    where = {"device": [f"gpu:{rank}" for rank in ranks], "stream": random.integers(7, 30, launches).tolist()}
    times = {"start_ns": begins.tolist(), "dur_ns": durations.tolist()}
    out.add("launches", launches, kinds | where | own | times)
    called = {"start_ns": (begins - 20_000).tolist(), "dur_ns": [3_000] * launches, "thread": own["rank"]}
    out.add("calls", launches, {"api": ["cudaLaunchKernel"] * launches, **own, **called})
    marks = np.linspace(0, begins.max(), 5_001).astype(np.int64)
    rows = [
        step(i, rank=0, process=0, start_ns=int(marks[i]), dur_ns=int(marks[i + 1] - marks[i])) for i in range(5_000)
    ]
    out.add("steps", len(rows), {key: [row[key] for row in rows] for key in rows[0]})
    samples = 100_000
    counted = {
        "metric": [f"m{i % 20}" for i in range(samples)],
        "device": [f"gpu:{i // 20 % 4}" for i in range(samples)],
        "time_ns": np.sort(random.integers(0, begins.max(), samples)).tolist(),
        "value": random.random(samples).tolist(),
    }
    out.add("counters", samples, counted)
    return out.finish(Facts(format="by-hand", source="large"))


def test_a_large_trace_makes_a_small_page_quickly() -> None:
    """A tenth of a million launches; what is shown doesn't grow with them. Analyses have their own tests of speed."""
    look = RunData(large(100_000))
    assert look.timeline
    assert look.groups.launches == 100_000
    assert look.steps
    begin = process_time()
    blocks = [section.SECTION.build(look) for section in EVERY]
    assert process_time() - begin < 20
    figures = [part for block in blocks if block for part in block.parts if isinstance(part, Chart)]
    size = sum(len(json.dumps([one.data, one.layout], allow_nan=False).encode()) for one in figures)
    assert size < 3_000_000
    for figure in figures:
        points = sum(len(one.get("x", one.get("y", one.get("values", [])))) for one in figure.data)
        assert points <= MOST_POINTS
