"""Kernels of two runs side by side: their totals are the runs', their times those of the steps, and who is who."""

from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from tests.analyses.compare.run_traces import GEMM, HEAD, LAYER, kernel_run, timed_run
from tests.traces import trace_of

import inferometer
from inferometer import Trace
from inferometer.analyses.compare.comparison import compare
from inferometer.analyses.compare.kernels import ComparedKernel, ComparedKernels

RECORDED = Path(__file__).resolve().parents[3] / "samples" / "recorded"


def side_by_side(base: Trace, candidate: Trace) -> ComparedKernels:
    return compare(base, candidate).kernels


def row(found: ComparedKernels, name: str) -> ComparedKernel:
    return next(one for one in found.rows if one.name == name)


def by_kernel(trace: Trace) -> tuple[Counter[str], Counter[str]]:
    """Time and launches of each kernel, added up one launch after the other."""
    times, launches = Counter[str](), Counter[str]()
    for kernel, dur_ns in trace.launches.select("kernel", "dur_ns").collect().iter_rows():
        times[kernel] += dur_ns
        launches[kernel] += 1
    return times, launches


def check_totals(base: Trace, candidate: Trace) -> None:
    found = side_by_side(base, candidate)
    before, after = by_kernel(base), by_kernel(candidate)
    assert (found.base_total_ns, found.candidate_total_ns) == (before[0].total(), after[0].total())
    assert sum(one.base.launches for one in found.rows) == before[1].total()
    assert sum(one.candidate.launches for one in found.rows) == after[1].total()
    for one in found.rows:
        for side, (times, launches) in ((one.base, before), (one.candidate, after)):
            if side.names:
                assert side.total_ns == sum(times[name] for name in side.names)
                assert side.launches == sum(launches[name] for name in side.names)
    named = [name for one in found.rows for name in one.base.names]
    assert len(named) == len(set(named)), "each kernel has one row"


@pytest.mark.parametrize("fault", sorted(folder.name for folder in RECORDED.iterdir() if folder.is_dir()))
def test_totals_of_the_rows_are_those_of_the_recorded_runs(fault: str) -> None:
    folder = RECORDED / fault
    check_totals(inferometer.open(folder / "normal.ifm"), inferometer.open(folder / "fault.ifm"))


@pytest.mark.parametrize(
    ("base", "candidate"),
    [
        ("rank0_sampled", "rank1_sampled"),
        ("h100_vit", "h100_vit"),
        ("a100_nccl", "a100_nccl"),
        ("mi300_resnet_ddp", "mi300_resnet_ddp"),
    ],
)
def test_totals_of_the_rows_are_those_of_published_traces(shared_data: Path, base: str, candidate: str) -> None:
    traces = [inferometer.open(shared_data / "traces" / "kineto" / f"{name}.json.gz") for name in (base, candidate)]
    assert compare(*traces).kernels.rows, "the runs can be compared"
    check_totals(*traces)


def test_times_calls_and_means_are_those_of_a_step() -> None:
    base, candidate = kernel_run(), kernel_run([*LAYER[:1], ("flash_kernel", 9_000), *LAYER[2:]], seed=1)
    found = side_by_side(base, candidate)
    one = row(found, "flash_kernel")
    assert (found.per, one.kind) == ("step", "slower")
    for side, trace in ((one.base, base), (one.candidate, candidate)):
        total_ns = by_kernel(trace)[0]["flash_kernel"]
        assert side.step_ns == round(total_ns / 10), "10 steps"
        assert (side.calls, side.launches) == (4, 40)
        assert side.mean_ns == pytest.approx(total_ns / 40, abs=1)
    assert one.delta_ns is not None
    assert one.interval_ns is not None
    assert one.interval_ns[0] <= one.delta_ns <= one.interval_ns[1]
    assert found.rows[0] is one, "the largest difference first"


def test_a_kernel_of_one_run_is_new_or_gone_and_the_same_one_renamed_is_one_row() -> None:
    other = GEMM.replace("128x256", "256x128")
    candidate = kernel_run([*LAYER[:2], (other, 20_000), *LAYER[3:]], [*HEAD, ("topk_kernel", 2_000)], seed=1)
    found = side_by_side(kernel_run(head=[*HEAD, ("sort_kernel", 2_000)]), candidate)
    renamed = next(one for one in found.rows if GEMM in one.base.names)
    assert (renamed.kind, renamed.candidate.names) == ("renamed", (other,))
    kinds = {one.name: one.kind for one in found.rows}
    assert (kinds["sort_kernel"], kinds["topk_kernel"]) == ("gone", "new")
    new = row(found, "topk_kernel")
    assert (new.base.names, new.base.step_ns, new.base.total_ns, new.base.mean_ns) == ((), 0, 0, None)


def test_a_kernel_that_no_compared_step_calls_has_totals_alone() -> None:
    base, candidate = with_launch(kernel_run(), "warm_up"), with_launch(kernel_run(seed=1), "warm_up")
    one = row(side_by_side(base, candidate), "warm_up")
    assert (one.kind, one.delta_ns, one.base.step_ns) == (None, None, None)
    assert (one.base.total_ns, one.candidate.total_ns) == (500, 500)
    check_totals(base, candidate)


def test_a_new_kernel_has_the_time_that_the_base_spent_on_it_outside_of_steps() -> None:
    base, candidate = with_launch(kernel_run(), "topk_kernel"), kernel_run(head=[*HEAD, ("topk_kernel", 2_000)])
    one = row(side_by_side(base, candidate), "topk_kernel")
    assert (one.kind, one.base.step_ns, one.base.total_ns, one.base.launches) == ("new", 0, 500, 1)


def with_launch(trace: Trace, kernel: str) -> Trace:
    """With one launch before the first step."""
    launches = trace.launches.collect()
    call = {"api": "cudaLaunchKernel", "start_ns": -2_000, "dur_ns": 1, "correlation_id": 999_999}
    early = {"kernel": kernel, "start_ns": -1_000, "dur_ns": 500, "correlation_id": 999_999}
    tables = {name: trace.tables[name].collect().to_dicts() for name in ("calls", "spans")}
    rows = launches.select("kernel", "start_ns", "dur_ns", "correlation_id").cast({"kernel": pl.String}).to_dicts()
    return trace_of([early, *rows], calls=[call, *tables["calls"]], spans=tables["spans"])


def test_without_steps_times_are_of_the_recording() -> None:
    found = side_by_side(kernel_run(steps=1, marked=False), kernel_run(steps=1, marked=False, seed=1))
    assert found.per == "recording"
    for one in found.rows:
        assert (one.base.step_ns, one.candidate.step_ns) == (one.base.total_ns, one.candidate.total_ns)


def test_functions_timed_by_the_source_add_up_and_those_of_the_host_are_no_kernels() -> None:
    functions = {"gemm": ("cuda:0", 4, 20_000), "launch": ("host", 4, 5_000)}
    found = side_by_side(timed_run(functions), timed_run(functions, seed=1))
    assert [one.name for one in found.rows] == ["gemm"]
    assert found.rows[0].base.launches == 40
    assert found.base_total_ns == pytest.approx(10 * 4 * 20_000, rel=0.05)


def test_a_run_against_itself_has_no_difference() -> None:
    found = side_by_side(kernel_run(), kernel_run())
    assert {(one.kind, one.delta_ns) for one in found.rows} == {("same", 0)}


def test_runs_that_can_not_be_compared_have_no_rows(shared_data: Path) -> None:
    traces = [shared_data / "traces" / "kineto" / f"{device}_qwen1.5-0.5b.json.gz" for device in ("h100", "mi300")]
    data = compare(*map(inferometer.open, traces)).as_json()["kernels"]
    assert data == {"per": "step", "base_total_ns": 0, "candidate_total_ns": 0, "rows": []}
