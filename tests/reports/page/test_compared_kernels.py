"""Kernels of two runs on the page: times of a step and of the whole runs, and how the difference adds up."""

from collections import Counter, defaultdict
from pathlib import Path

import pytest
from tests.analyses.compare.run_traces import GEMM, LAYER, kernel_run
from tests.reports.page.comparisons import look, parts, words

import inferometer
from inferometer import Trace
from inferometer.reports.page.blocks import Block, Grid, Tabs
from inferometer.reports.page.document import render_page
from inferometer.reports.page.look import PageData
from inferometer.reports.page.sections import compared_kernels

SAMPLES = Path(__file__).parents[3] / "samples"
RUN = kernel_run()
SLOW_GEMM = kernel_run([(name, dur * 2 if name == GEMM else dur) for name, dur in LAYER], seed=1)


def tables(base: Trace, candidate: Trace) -> tuple[Block, list[Grid]]:
    """In a step, of the whole runs, and how the change adds up."""
    block = compared_kernels.build(look(base, candidate)[0])
    assert block is not None
    (tabs,) = parts(block, Tabs)
    grids = [part for tab in tabs.tabs for part in tab.parts if isinstance(part, Grid)]
    return block, [*grids, *parts(block, Grid)]


def raw_steps(trace: Trace, mark: str) -> dict[str, float]:
    """Kernel time per step in a Kineto file, by name: of launches whose call begins within a step's mark."""
    spans = trace.spans.collect().select("span", "stream", "start_ns", "dur_ns").rows()
    marks = [(start, dur) for span, stream, start, dur in spans if span.startswith(mark) and stream is None]
    assert marks
    calls = dict(trace.calls.collect().select("correlation_id", "start_ns").drop_nulls().rows())
    sums: dict[str, float] = defaultdict(float)
    for kernel, correlation, dur_ns in trace.launches.collect().select("kernel", "correlation_id", "dur_ns").rows():
        called = calls.get(correlation)
        if called is not None and any(start <= called < start + dur for start, dur in marks):
            sums[kernel] += dur_ns / len(marks)
    return sums


def test_times_of_a_step_are_those_of_the_file() -> None:
    names = "decode.json.gz", "decode_fixed.json.gz"
    base, candidate = (inferometer.open(SAMPLES / name) for name in names)
    _, (in_step, _, account) = tables(base, candidate)
    sums = [raw_steps(trace, "step[") for trace in (base, candidate)]
    for side, own in zip(("base", "candidate"), sums, strict=True):
        times = Counter(dict.fromkeys(map(round, own.values()), 1))
        assert in_step.section.frame[f"{side}_ns"].sum() == pytest.approx(sum(own.values()), abs=len(own) / 2)
        assert {round(ns) for ns in in_step.section.frame[f"{side}_ns"] if ns} == set(times)
        kernels = account.section.frame.row(0, named=True)
        assert kernels[f"{side}_ns"] == in_step.section.frame[f"{side}_ns"].sum()


def test_times_of_two_real_ranks_are_those_of_their_files(shared_data: Path) -> None:
    names = (shared_data / "traces" / "kineto" / f"rank{rank}_sampled.json.gz" for rank in (0, 1))
    base, candidate = map(inferometer.open, names)
    _, (in_step, whole, account) = tables(base, candidate)
    for side, trace in (("base", base), ("candidate", candidate)):
        own = raw_steps(trace, "ProfilerStep#")
        assert in_step.section.frame[f"{side}_ns"].sum() == pytest.approx(sum(own.values()), abs=len(own) / 2)
        assert whole.section.frame[f"{side}_total_ns"].sum() == trace.launches.collect()["dur_ns"].sum()
    *rows, step = account.section.frame.iter_rows(named=True)
    assert sum(row["delta_ns"] for row in rows) == step["delta_ns"]


def test_the_difference_of_the_step_is_kept_to_the_nanosecond() -> None:
    for base, candidate in ((RUN, SLOW_GEMM), (SLOW_GEMM, RUN), (RUN, RUN)):
        _, found = look(base, candidate)
        _, (in_step, _, account) = tables(base, candidate)
        *rows, whole = account.section.frame.iter_rows(named=True)
        for column in ("base_ns", "candidate_ns", "delta_ns"):
            assert sum(row[column] for row in rows) == whole[column]
        assert whole["base_ns"] == found.changes.base_step_ns
        assert whole["delta_ns"] == found.changes.step_delta_ns
        assert rows[0]["delta_ns"] == in_step.section.frame["delta_ns"].sum()


def test_totals_are_those_of_the_runs_and_not_called_a_change_of_speed() -> None:
    longer = kernel_run(seed=1, steps=20)
    _, (_, whole, _) = tables(RUN, longer)
    for side, trace in (("base", RUN), ("candidate", longer)):
        launches = trace.launches.select("dur_ns").collect()
        assert whole.section.frame[f"{side}_total_ns"].sum() == launches["dur_ns"].sum()
        assert whole.section.frame[f"{side}_launches"].sum() == launches.height
    (note,) = whole.section.notes
    assert note.endswith("(10 and 20 compared steps): these changes are no change of speed.")
    changes = whole.section.frame["delta_total_ns"]
    sums = [sum(trace.launches.collect()["dur_ns"].to_list()) for trace in (RUN, longer)]
    assert changes.sum() == sums[1] - sums[0]
    assert changes.abs().is_sorted(descending=True)


def test_kernels_of_one_run_alone_and_renamed_ones_are_told() -> None:
    layer = [("flash_kernel_v2" if name == "flash_kernel" else name, dur) for name, dur in LAYER[:-1]]
    block, (in_step, _, _) = tables(RUN, kernel_run(layer, seed=1))
    (told,) = words(block, "plain")
    kinds = Counter(in_step.section.frame["kind"].to_list())
    assert told.startswith(f"{in_step.section.frame.height} kernels: ")
    for kind, count in kinds.items():
        assert f"{count} {kind}" in told or (kind == "same" and f"{count} the same within noise" in told)
    rows = {row["label"]: row for row in in_step.section.frame.iter_rows(named=True)}
    gone = next(row for label, row in rows.items() if label.startswith("mul"))
    assert (gone["kind"], gone["candidate_ns"], gone["calls"], gone["names"]) == ("gone", 0, "4 → 0", None)
    (renamed,) = [row for row in rows.values() if row["names"]]
    assert (renamed["kind"], renamed["names"]) == ("renamed", "flash_kernel → flash_kernel_v2")


def test_a_bar_is_as_long_as_its_change_of_the_largest() -> None:
    page = render_page([tables(RUN, SLOW_GEMM)[0]], title="t").html
    frame = tables(RUN, SLOW_GEMM)[1][0].section.frame
    largest = max(map(abs, frame["delta_ns"]))
    for delta_ns in frame["delta_ns"]:
        assert f'style="--bar: {round(delta_ns / largest, 4)}"' in page


def test_equal_runs_have_bars_of_no_length() -> None:
    block, (in_step, _, _) = tables(RUN, RUN)
    assert set(in_step.section.frame["delta_ns"]) == {0}
    assert words(block, "plain") == [f"{in_step.section.frame.height} kernels: 6 the same within noise."]
    assert "--bar: 0.0" in render_page([block], title="t").html


def test_without_steps_times_are_of_the_recordings() -> None:
    base, candidate = (kernel_run(marked=False, steps=1, layers=1, seed=seed) for seed in (0, 1))
    block, (of_recording, whole, account) = tables(base, candidate)
    assert look(base, candidate)[1].kernels.per == "recording"
    assert block.title == "Kernels side by side, of a device's whole recording"
    assert of_recording.section.title == "Kernels of a device's whole recording"
    assert "compared steps" not in "".join(whole.section.notes)
    assert account.section.frame["part"][-1] == "a device's whole recording"


def test_a_page_about_one_run_compares_no_kernels() -> None:
    assert compared_kernels.build(PageData(RUN)) is None
