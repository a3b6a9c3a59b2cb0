"""The page on two runs, in times: the verdict, step times, the waterfall and its tables, growth with context.

Numbers in charts are held against the comparison itself.
"""

import io
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.analyses.compare.run_traces import GEMM, LAYER, kernel_run, timed_run
from tests.reports.page.comparisons import chart, look, parts, words
from tests.traces import trace_of
from tools.make_webgpu_log import Options, write_log

import inferometer
from inferometer import Trace
from inferometer.analyses.steps.growth import ALL
from inferometer.reports.page.blocks import MOST_POINTS, Block, Chart, Facts, Grid, Tabs
from inferometer.reports.page.look import PageData
from inferometer.reports.page.sections import compared_kernels, compared_steps, contributions, step_times, verdict
from inferometer.reports.page.sections.contributions import MOST_BARS, Bar, axis_range, waterfall_bars
from inferometer.units import format_duration

SAMPLES = Path(__file__).resolve().parents[3] / "samples"
RUN = kernel_run()
SLOW_GEMM = kernel_run([(name, dur * 2 if name == GEMM else dur) for name, dur in LAYER], seed=1)


def log(tmp_path: Path, name: str, faults: Sequence[str] = (), **options: Any) -> Trace:
    page = io.StringIO()
    write_log(Options(faults=tuple(faults), **options), page)
    (tmp_path / name).write_text(page.getvalue())
    return inferometer.open(tmp_path / name)


SECTIONS = [verdict, step_times, contributions, compared_kernels, compared_steps]


@pytest.mark.parametrize("section", SECTIONS)
def test_a_page_about_one_run_compares_nothing(section: Any) -> None:
    assert section.build(PageData(RUN)) is None


def test_the_verdict_stands_first_with_the_steps_and_their_interval() -> None:
    page, found = look(RUN, SLOW_GEMM)
    block = verdict.build(page)
    assert words(block, "verdict") == [f"Software change. {found.judged.why}"]
    lines = {label: texts for label, *texts in parts(block, Facts)[0].lines}
    interval = found.changes.step_ratio_interval
    assert interval is not None
    assert lines["Of the base's step"][1] == (
        f"{found.changes.step_ratio:.3f} times (95 %: {interval[0]:.3f} to {interval[1]:.3f})"
    )
    assert lines["Steps compared"] == ["10", "10"]
    assert "Comparable as recorded: Same functions, called as often in a step." in words(block, "plain")
    assert any("gpu_clock" in text for text in words(block, "note"))


def test_a_repair_is_said_with_the_verdict() -> None:
    assert words(verdict.build(look(RUN, RUN)[0]), "warning") == []
    page, found = look(kernel_run(marked=False), kernel_run(marked=False, steps=25, seed=3))
    assert found.comparable.repair is not None
    assert words(verdict.build(page), "warning") == [
        f"Not comparable as recorded: {found.comparable.why} Repaired: {found.comparable.repair}."
    ]


def test_the_distribution_and_the_strip_hold_every_step_of_both_runs() -> None:
    page, found = look(RUN, SLOW_GEMM)
    block = step_times.build(page)
    strip, (shares, counts) = chart(block, "Step times over the run"), distributions(block)
    edges = np.array(counts.data[0]["x"]) * 1e3
    for side, times in enumerate(found.changes.step_times):
        assert np.allclose(np.array(strip.data[side]["y"]) * 1e3, times, rtol=5e-4)  # in μs
        curve, median = shares.data[2 * side : 2 * side + 2]
        assert np.allclose(np.array(curve["x"]) * 1e3, np.sort(times), rtol=5e-4)
        assert curve["y"][-1] == 1
        assert (median["x"][0] * 1e3, median["y"]) == (pytest.approx(np.median(times), rel=5e-4), [0.5])
        assert counts.data[side]["x"] == counts.data[0]["x"], "the same bins"
        own = [float(((times >= low) & (times < high)).mean()) for low, high in pairwise([*edges[:-1], np.inf])]
        assert np.allclose(counts.data[side]["y"][:-1], own, atol=1.01 / len(times)), "rounded edges may move one step"
        assert sum(counts.data[side]["y"][:-1]) == pytest.approx(1, abs=1e-3)
    assert [one["name"] for one in strip.data] == ["base", "candidate"]
    assert "μs" in strip.layout["yaxis"]["title"]["text"]


def distributions(block: Block | None) -> tuple[Chart, Chart]:
    (tabs,) = parts(block, Tabs)
    shares, counts = (part for tab in tabs.tabs for part in tab.parts if isinstance(part, Chart))
    return shares, counts


def test_steps_in_numbers_are_those_of_the_comparison() -> None:
    page, found = look(RUN, SLOW_GEMM)
    changes = found.changes
    lines = {line[0]: line[1:] for line in parts(step_times.build(page), Facts)[0].lines}
    assert list(lines) == ["Mean", "Fastest", "Median", "Slowest"]
    assert changes.step_delta_interval_ns is not None
    low, high = changes.step_delta_interval_ns
    assert low < changes.step_delta_ns < high
    base, candidate = (ns / 1e3 for ns in (changes.base_step_ns, changes.candidate_step_ns))
    within = f"(95 %: +{low / 1e3:.3f} μs to +{high / 1e3:.3f} μs)"
    assert lines["Mean"] == (f"{base:.3f} μs", f"{candidate:.3f} μs", f"+{changes.step_delta_ns / 1e3:.3f} μs {within}")
    before, after = (float(np.median(times)) for times in changes.step_times)
    assert lines["Median"] == (*map(format_duration, (before, after)), f"+{format_duration(after - before)}")


def test_equal_steps_have_no_change_and_a_longer_run_its_95th_percentile() -> None:
    (facts,) = parts(step_times.build(look(kernel_run(steps=30), kernel_run(steps=30))[0]), Facts)
    assert "95th percentile" in [line[0] for line in facts.lines]
    assert {line[3] for line in facts.lines} == {"0 ns", "0 ns (95 %: 0 ns to 0 ns)"}


def test_steps_of_one_length_have_one_bin() -> None:
    run = timed_run({"k": ("gpu:0", 3, 10_000)}, noise=0)
    _, counts = distributions(step_times.build(look(run, run)[0]))
    assert [trace["y"] for trace in counts.data] == [[1, 1], [1, 1]]


def test_a_long_run_keeps_its_extremes_and_says_what_a_point_is() -> None:
    run = timed_run({"k": ("gpu:0", 3, 10_000)}, cycles=3_000)
    page, found = look(run, run)
    block = step_times.build(page)
    strip = chart(block, "Step times over the run")
    assert sum(len(one["x"]) for one in strip.data) <= MOST_POINTS
    times = found.changes.step_times[0] / 1e3
    assert np.allclose([min(strip.data[0]["y"]), max(strip.data[0]["y"])], [times.min(), times.max()], rtol=5e-4)
    assert "is a mean of 6 steps" in words(block, "note")[0]


def test_runs_without_single_steps_say_so() -> None:
    window = kernel_run(marked=False)
    both, one = (step_times.build(look(base, window)[0]) for base in (window, RUN))
    assert both is not None
    assert one is not None
    for block in (both, one):  # where one has none, both are compared as a whole
        assert block.lacking.startswith("Single steps in both runs: they are known only as a whole")


def test_the_waterfall_leads_from_the_one_step_to_the_other_to_the_nanosecond() -> None:
    names = [f"kernel_{i}" for i in range(30)]
    base = kernel_run([(name, 5_000 + 700 * i) for i, name in enumerate(names)], gap_ns=900)
    candidate = kernel_run([(name, 7_000 + 1_300 * i) for i, name in enumerate(names)], gap_ns=2_500, seed=1)
    page, found = look(base, candidate)
    bars = waterfall_bars(found.changes)
    between = sum(bar.ns for bar in bars[1:-1])
    assert bars[0].ns + between == bars[-1].ns == found.changes.candidate_step_ns
    assert {"idle", "overlap"} <= {bar.label for bar in bars}
    assert f"{31 - MOST_BARS - 1} more that changed" in [bar.label for bar in bars]
    drawn = chart(contributions.build(page), "From the base's step to the candidate's").data[0]
    unit_ns = 1e3 if bars[-1].ns < 2e6 else 1e6
    assert [round(x * unit_ns) for x in drawn["x"]] == [bar.ns for bar in bars]
    assert drawn["measure"] == ["absolute", *["relative"] * (len(bars) - 2), "total"]
    assert len(set(drawn["y"])) == len(bars)


def test_bars_of_one_label_stay_two_bars_and_hovering_names_them_whole() -> None:
    long = "void cutlass::Kernel2<cutlass_80_tensorop_f16_s16816gemm_relu_f16_{}_64x1_tn_align8>(Params)"
    layer = [(long.format(tile), 9_000) for tile in ("64x64", "64x128")]
    page, _ = look(kernel_run(layer), kernel_run([(name, 2 * dur) for name, dur in layer], seed=1))
    drawn = chart(contributions.build(page), "From the base's step to the candidate's").data[0]
    assert len(set(drawn["y"])) == len(drawn["y"])
    for name, _ in layer:
        assert any(str(about).startswith(name) for about in drawn["customdata"])


def test_the_axis_looks_closely_at_small_changes_and_begins_at_0_for_large_ones() -> None:
    small = [Bar("base", 1_000_000, "", "absolute"), Bar("k", 5_000, ""), Bar("candidate", 1_005_000, "", "total")]
    low, high = axis_range(small)
    assert 980_000 < low < 1_000_000
    assert 1_005_000 < high < 1_020_000
    large = [small[0], Bar("k", 500_000, ""), Bar("candidate", 1_500_000, "", "total")]
    assert axis_range(large)[0] == 0
    same = [small[0], Bar("candidate", 1_000_000, "", "total")]
    low, high = axis_range(same)
    assert low < 1_000_000 < high


def test_the_tables_hold_every_line_once_and_add_up_only_what_adds_up() -> None:
    page, found = look(inferometer.open(SAMPLES / "slow" / "normal"), inferometer.open(SAMPLES / "slow" / "abnormal"))
    grids = parts(contributions.build(page), Grid)
    assert sum(grid.section.frame.height for grid in grids) == len(found.changes.contributions)
    of_step, of_host = grids
    assert of_step.section.frame["delta_ns"].sum() + found.changes.unexplained_ns == found.changes.step_delta_ns
    assert (of_step.group, of_host.sums) == ("class", ())
    assert set(of_host.section.frame["class"]) == {"host"}


def test_calls_are_compared_by_class_with_their_intervals() -> None:
    page, found = look(RUN, SLOW_GEMM)
    drawn = chart(contributions.build(page), "How calls changed, by class of functions").data[0]
    first = found.changes.domain.classes[0]
    assert first.interval is not None
    assert drawn["x"][0] == pytest.approx(first.ratio, rel=5e-4)
    assert drawn["x"][0] + drawn["error_x"]["array"][0] == pytest.approx(first.interval[1], rel=1e-3)
    assert drawn["x"][0] - drawn["error_x"]["arrayminus"][0] == pytest.approx(first.interval[0], rel=1e-3)


def test_runs_that_cannot_be_compared_show_families_and_no_change() -> None:
    other = kernel_run([("another_kernel", 5_000), ("third_kernel", 4_000)])
    page, found = look(RUN, other)
    assert found.verdict == "not comparable"
    block = contributions.build(page)
    drawn = chart(block, "Kernel time by family, as recorded")
    assert [trace["xaxis"] for trace in drawn.data] == ["x", "x2"]  # no common axis
    (grid,) = parts(block, Grid)
    assert "delta_ns" not in [field.column for field in grid.section.fields]
    assert any("No change of time is given" in text for text in words(verdict.build(page), "warning"))
    assert parts(verdict.build(page), Facts) == []
    strip = step_times.build(page)
    assert strip is not None
    assert strip.lacking


def test_a_run_of_counters_alone_has_no_contributions() -> None:
    counters = [{"metric": "cpu_frequency", "time_ns": i, "value": 3_000.0, "unit": "MHz"} for i in range(9)]
    page, _ = look(trace_of(counters=counters), trace_of(counters=counters))
    block = contributions.build(page)
    assert block is not None
    assert "has only counters" in block.lacking


def test_printed_sums_have_a_waterfall_and_no_steps() -> None:
    sums = [{"section": 0, "kernel": name, "total_ns": ns, "count": 10} for name, ns in LAYER]
    slower = [row | {"total_ns": 3 * int(str(row["total_ns"]))} if row["kernel"] == GEMM else row for row in sums]
    page, found = look(trace_of(totals=sums), trace_of(totals=slower))
    bars = waterfall_bars(found.changes)
    assert bars[0].ns + sum(bar.ns for bar in bars[1:-1]) == bars[-1].ns
    assert (bars[1].ns, bars[-1].label) == (40_000, "candidate: a step")
    block = step_times.build(page)
    assert block is not None
    assert block.lacking


def test_growth_shows_the_class_that_changed_of_both_runs_of_an_engine(tmp_path: Path) -> None:
    page, _ = look(log(tmp_path, "base.log"), log(tmp_path, "slow.log", ["attention", "neighbour"]))
    block = compared_steps.build(page)
    assert [one.title for one in parts(block, Chart)] == ["GPU time of a decoded token", "attend"]
    assert page.base.steps is not None
    points = chart(block, "attend").data[0]
    own = page.base.steps.class_steps.filter(pl.col("class") == "attend", pl.col("phase") == "decode").join(
        page.base.steps.steps.select("step", "tokens", "mean_kv"), on="step"
    )
    token_ns = (own["total_ns"] / own["tokens"]).to_numpy()
    assert np.allclose(np.array(points["y"]) * 1e6, token_ns, rtol=1e-3)  # ms: the candidate's are long
    assert points["x"] == own["mean_kv"].to_list()


def test_disturbed_steps_are_hollow_and_the_line_is_the_growths_own(tmp_path: Path) -> None:
    page, _ = look(log(tmp_path, "base.log"), log(tmp_path, "slow.log", ["attention", "neighbour"]))
    block = compared_steps.build(page)
    base, base_line, candidate, candidate_line = chart(block, "GPU time of a decoded token").data
    assert set(base["marker"]["symbol"]) == {"circle"}
    symbols = zip(candidate["customdata"], candidate["marker"]["symbol"], strict=True)
    assert [step for step, symbol in symbols if "open" in symbol] == [18, 19]
    assert page.base.steps is not None
    fit = page.base.steps.growth.row(by_predicate=pl.col("class") == ALL, named=True)
    slope = (base_line["y"][1] - base_line["y"][0]) / (base_line["x"][1] - base_line["x"][0]) * 1e6
    assert slope == pytest.approx(fit["slope_ns"], rel=0.1)  # the chart's four digits
    assert candidate_line["y"][1] > 2 * candidate_line["y"][0]
    (grid,) = parts(block, Grid)
    row = grid.section.frame.row(by_predicate=pl.col("class") == ALL, named=True)
    assert row["base_slope_ns"] == fit["slope_ns"]


def test_runs_without_context_have_no_growth() -> None:
    block = compared_steps.build(look(RUN, SLOW_GEMM)[0])
    assert block is not None
    assert "contexts are known" in block.lacking


def test_what_did_not_slow_is_not_said_to_have_slowed_most() -> None:
    title = "How calls changed, by class of functions"
    slower, same = (chart(contributions.build(look(RUN, other)[0]), title).alt for other in (SLOW_GEMM, RUN))
    assert slower.startswith("Calls of compute functions slowed most: they take 1.")
    assert same.startswith("Calls of no class of functions slowed beyond noise")
