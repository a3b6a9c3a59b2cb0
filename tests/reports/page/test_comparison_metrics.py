"""The page on two runs, in metrics: who is a cause, an effect or context, and counters over time."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.analyses.compare.run_traces import kernel_run, timed_run
from tests.reports.page.comparisons import chart, look, parts, words
from tests.traces import trace_of

import inferometer
from inferometer import Trace
from inferometer.reports.page.blocks import MOST_POINTS, Chart, Grid
from inferometer.reports.page.look import PageData
from inferometer.reports.page.sections import causes, compared_counters, contributions
from inferometer.reports.page.sections._counter_curves import MOST_CAUSES, MOST_SAMPLES
from inferometer.reports.page.sections.compared_counters import MOST_METRICS
from inferometer.units import format_sample

SLOW = Path(__file__).resolve().parents[3] / "samples" / "slow"
ROLES = ["cause, named", "cause, possible", "cause, not for the worse", "effect", "context"]
SCORES = "Scores of metrics that changed for the worse"
_S = 1_000_000_000


def slow_pair() -> tuple[Trace, Trace]:
    return inferometer.open(SLOW / "normal"), inferometer.open(SLOW / "abnormal")


def samples(metric: str, values: list[float], *, start_ns: int = 0, **more: Any) -> list[dict[str, Any]]:
    return [
        {"metric": metric, "time_ns": start_ns + i * _S, "value": value, "unit": "%"} | more
        for i, value in enumerate(values)
    ]


def test_a_page_about_one_run_ranks_and_draws_nothing() -> None:
    assert causes.build(PageData(kernel_run())) is None
    assert compared_counters.build(PageData(kernel_run())) is None


def test_the_claimed_cause_stands_first_with_its_score_and_what_makes_it() -> None:
    page, found = look(*slow_pair())
    (grid,) = parts(causes.build(page), Grid)
    first, claimed = grid.section.frame.row(0, named=True), found.judged.claimed
    assert claimed is not None
    assert (first["role"], first["metric"], first["device"]) == ("cause, named", "cpu_frequency", "host")
    numbers = (round(claimed.score, 3), round(claimed.severity, 3), claimed.agreement)
    assert (first["score"], first["severity"], first["agreement"]) == numbers


def test_every_metric_of_both_runs_has_one_line_and_a_role() -> None:
    page, found = look(*slow_pair())
    (grid,) = parts(causes.build(page), Grid)
    frame = grid.section.frame
    assert frame.select("metric", "device").is_unique().all()
    roles = dict(frame.select("metric", "role").iter_rows())
    assert (roles["process_cpu_usage"], roles["disk_usage"]) == ("effect", "context")
    assert frame["role"].str.starts_with("cause").sum() == len(found.causes)
    assert frame["role"].unique(maintain_order=True).to_list() == ROLES
    assert frame.filter(frame["role"] == "effect")["score"].null_count() == (frame["role"] == "effect").sum()


def test_bars_are_scores_and_the_line_is_the_level_of_false_alarms() -> None:
    page, found = look(*slow_pair())
    drawn = chart(causes.build(page), SCORES)
    scored = [cause for cause in found.causes if cause.severity > 0]
    assert drawn.data[0]["x"] == pytest.approx([cause.score for cause in scored], rel=5e-4)
    assert drawn.layout["shapes"][0]["x0"] == pytest.approx(found.calibration.level, rel=5e-4)
    assert drawn.data[0]["marker"]["color"][0] == "var(--bad)"
    assert f"{scored[0].score:.3f}" in drawn.alt


def test_too_few_samples_claim_nothing() -> None:
    clock, slow_clock = ([row | {"unit": "MHz"} for row in samples("cpu_frequency", [mhz] * 3)] for mhz in (3e3, 1e3))
    page, found = look(trace_of(counters=clock), trace_of(counters=slow_clock))
    assert found.verdict == "too few samples"
    block = causes.build(page)
    said = "cpu_frequency on host is the likeliest cause, not claimed: 3,000 to 1,000 MHz"
    assert words(block, "plain") == [f"{said}, score {found.causes[0].score:.3f}."]
    (grid,) = parts(block, Grid)
    assert grid.section.frame["role"].to_list() == ["cause, likeliest"]


def test_runs_without_counters_say_what_they_lack() -> None:
    page, _ = look(kernel_run(), kernel_run(seed=1))
    for section in (causes, compared_counters):
        block = section.build(page)
        assert block is not None
        assert "in both runs" in block.lacking or "both runs have" in block.lacking


def test_runs_that_cannot_be_compared_have_no_causes_but_counters() -> None:
    other = kernel_run([("another_kernel", 5_000), ("third_kernel", 4_000)])
    rows = samples("host_cpu_usage", [10.0, 20.0, 30.0])
    base, candidate = (
        trace_of(run.launches.collect().to_dicts(), counters=rows, spans=run.spans.collect().to_dicts())
        for run in (kernel_run(), other)
    )
    page, found = look(base, candidate)
    assert found.comparable.stops
    block = causes.build(page)
    assert block is not None
    assert block.lacking
    assert [one.title for one in parts(compared_counters.build(page), Chart)] == ["host_cpu_usage on host, %"]


def test_counters_begin_at_each_runs_own_start_and_hold_what_the_comparison_judged() -> None:
    base = samples("others_metric", [1.0, 2.0, 4.0], start_ns=70 * _S)
    candidate = samples("others_metric", [5.0, 7.0, 9.0], start_ns=900 * _S)
    page, _ = look(trace_of(counters=base), trace_of(counters=candidate))
    (drawn,) = parts(compared_counters.build(page), Chart)
    first, median, second, _ = drawn.data
    assert (first["x"], first["y"]) == ([0, 1, 2], [1, 2, 4])
    assert (second["x"], second["y"]) == ([0, 1, 2], [5, 7, 9])
    assert median["y"] == [2, 2]


def test_ranked_causes_have_their_curves_next_to_their_scores_and_the_others_are_listed() -> None:
    page, found = look(*slow_pair())
    block = causes.build(page)
    scores, *curves = parts(block, Chart)
    assert scores.title == SCORES
    worse = [cause for cause in found.causes if cause.severity > 0][:MOST_CAUSES]
    units = [f", {cause.unit}" if cause.unit else "" for cause in worse]
    assert [one.title for one in curves] == [
        f"{rank}. {cause.metric} on {cause.device}{unit}"
        for rank, (cause, unit) in enumerate(zip(worse, units, strict=True), start=1)
    ]
    for cause, drawn in zip(worse, curves, strict=True):
        assert drawn.data[1]["y"] == pytest.approx([cause.base] * 2, rel=1e-4)
        assert drawn.data[3]["y"] == pytest.approx([cause.candidate] * 2, rel=1e-4)
    first, cause = curves[0], worse[0]
    for side, ticks, median in zip((0, 1), cause.ticks, (cause.base, cause.candidate), strict=True):
        seconds = first.data[2 * side]["x"]
        assert len(seconds) == ticks
        first_s, last_s = (format_sample(round(at, 2)) for at in (min(seconds), max(seconds)))
        when = f"({ticks} ticks, {first_s} to {last_s} s)"
        assert f"{format_sample(median)} MHz in the {('base', 'candidate')[side]} {when}" in first.alt
    others = compared_counters.build(page)
    charts = parts(others, Chart)
    assert len(charts) <= MOST_METRICS
    listed = " ".join(words(others, "note"))
    drawn_there = {one.title.split(",")[0] for one in charts} | {one.title.split(",")[0][3:] for one in curves}
    told = {f"{one.metric} on {one.device}" for one in found.causes}
    assert all(name in drawn_there or name in listed for name in told)
    assert not {one.title for one in charts} & {one.title[3:] for one in curves}, "each is drawn once"


def test_the_curves_say_when_the_compared_steps_begin() -> None:
    base, candidate = slow_pair()
    page, _ = look(base, candidate)
    (note,) = [text for text in words(causes.build(page), "note") if text.startswith("Times count")]
    windows = []
    for run, side in ((base, "base"), (candidate, "candidate")):
        starts = run.steps.collect()["start_ns"].to_list()
        origin = min([*starts, *run.counters.collect()["time_ns"].to_list()])
        begins = [(ns - origin) / 1e9 for ns in starts]
        windows.append((side, begins))
    for side, begins in windows:
        (first, last) = re.findall(rf"([\d.]+) and ([\d.]+) s of the {side}", note)[0]
        assert min(begins) <= float(first) + 0.01
        assert float(last) <= max(begins) + 0.01
        rounded = {format_sample(round(begin, 2)) for begin in begins}
        assert {first, last} <= rounded


def test_load_by_others_is_drawn_though_it_is_derived() -> None:
    page, found = look(*slow_pair())
    every = [*parts(causes.build(page), Chart), *parts(compared_counters.build(page), Chart)]
    load = next(one for one in every if "others_cpu_usage" in one.title)
    cause = next(one for one in found.causes if one.metric == "others_cpu_usage")
    assert np.median(load.data[0]["y"]) == pytest.approx(cause.base, rel=1e-3)
    assert load.data[0]["mode"] == "lines+markers"


def test_many_samples_are_thinned_and_keep_their_extremes() -> None:
    rng = np.random.default_rng(1)
    values = rng.random(20_000).round(6).tolist()
    values[7_777] = 99.0
    run = trace_of(counters=samples("some_metric", values))
    other = trace_of(counters=samples("some_metric", values[::-1]))
    (drawn,) = parts(compared_counters.build(look(run, other)[0]), Chart)
    assert sum(len(one["x"]) for one in drawn.data) <= min(MOST_POINTS, 2 * MOST_SAMPLES + 4)
    assert max(drawn.data[0]["y"]) == 99
    assert min(drawn.data[0]["y"]) == pytest.approx(min(values), rel=1e-3)


def test_samples_of_several_cores_are_one_point_a_tick_as_the_comparison_judges_them() -> None:
    rows = samples("cpu_frequency", [3.0, 3.2] * 16, unit="MHz")
    cores = [row | {"time_ns": i // 4 * _S + i % 4} for i, row in enumerate(rows)]
    slower = [row | {"value": row["value"] / 2} for row in cores]
    page, _ = look(trace_of(counters=cores), trace_of(counters=slower))
    _, drawn = parts(causes.build(page), Chart)
    assert compared_counters.build(page) is None, "it is drawn with the causes"
    assert drawn.data[0]["x"] == list(range(8))
    assert drawn.data[0]["y"] == [3.1] * 8
    assert drawn.data[2]["y"] == [1.55] * 8


def test_values_of_cycles_are_drawn_where_the_cycles_began_and_listed_without_times() -> None:
    metrics = [
        {
            "cycle": cycle,
            "process": 1,
            "function": "f",
            "metric": "gpu_frequency",
            "device": "gpu:0",
            "mu": 900.0 + cycle,
        }
        for cycle in range(3)
    ]
    steps = [{"step": cycle, "process": 1, "start_ns": (7 + 2 * cycle) * _S, "dur_ns": _S} for cycle in range(3)]
    timed = trace_of(function_metrics=metrics, steps=steps)
    (drawn,) = parts(compared_counters.build(look(timed, timed)[0]), Chart)
    assert (drawn.data[0]["x"], drawn.data[0]["y"]) == ([0, 2, 4], [900, 901, 902])
    moving = samples("moving", [1.0, 2.0, 3.0])
    runs = (
        trace_of(function_metrics=metrics, steps=steps, counters=moving),
        trace_of(function_metrics=metrics, counters=moving),
    )
    listed = words(compared_counters.build(look(*runs)[0]), "note")
    assert "Without times in one of the runs: gpu_frequency on gpu:0." in listed


def test_a_flat_metric_is_listed_and_not_drawn() -> None:
    flat, moving = samples("flat", [5.0] * 4), samples("moving", [1.0, 2.0, 3.0, 4.0])
    run = trace_of(counters=[*flat, *moving])
    block = compared_counters.build(look(run, run)[0])
    assert [one.title for one in parts(block, Chart)] == ["moving on host, %"]
    assert any(text == "One value all the time, the same in both runs: flat on host." for text in words(block, "note"))


def test_hostile_names_stay_out_of_layouts_and_templates() -> None:
    evil = "<img src=x onerror=alert(1)>"
    run = trace_of(counters=samples(evil, [1.0, 2.0, 3.0], unit="<b>"))
    (drawn,) = parts(compared_counters.build(look(run, run)[0]), Chart)
    runs = timed_run({evil: ("gpu:0", 3, 9_000)}), timed_run({evil: ("gpu:0", 3, 30_000)})
    for part in [drawn, *parts(contributions.build(look(*runs)[0]), Chart)]:
        assert "<img" not in str(part.layout)
        assert all("<img" not in str(one.get("hovertemplate")) for one in part.data)
