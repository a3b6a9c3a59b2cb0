"""What was different in a disturbed step, reported in parts that add up to what it took beyond the usual."""

from collections.abc import Mapping
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.analyses.steps.found.made import GEMM, NORM, serve, traced
from tests.effort import examples
from tests.traces import trace_of

from inferometer.analyses.steps.outliers import MOST
from inferometer.analyses.steps.table import StepTable, step_table
from inferometer.reports.views.view import remarks_of, sections_of

US = 1_000
KERNELS = {"gemm": [400], "attention": [300], "norm": [100]}
MANY = {"gemm": [100] * 20, "attention": [50] * 20, "norm": [10] * 20}
AT = 7


def table_of(
    changed: Mapping[str, list[int]] | None = None,
    *,
    usual: Mapping[str, list[int]] = KERNELS,
    late_us: int = 0,
) -> StepTable:
    """14 steps with the launches of a few kernels, μs each; other ones in step `AT`, which may end late."""
    launches: list[dict[str, Any]] = []
    calls, spans, now = [], [], 0
    for k in range(14):
        work = (changed or usual) if k == AT else usual
        at = now
        for name, each in ((name, each) for name, times in work.items() for each in times):
            host = {"process": 1, "correlation_id": len(launches) + 1}
            calls.append({"api": "cudaLaunchKernel", "thread": 1, "start_ns": at, "dur_ns": 10, **host})
            launches.append({"kernel": name, "start_ns": at + 20, "dur_ns": each * US, **host})
            at += each * US + 20
        end = at + 200 * US + late_us * US * (k == AT)
        spans.append({"span": "step[DECODE bs=4]", "process": 1, "start_ns": now, "dur_ns": end - now})
        now = end
    return step_table(trace_of(launches, calls=calls, spans=spans))


def parts(table: StepTable) -> list[tuple[Any, ...]]:
    return table.differences.select("what", "class", "excess_ns").rows()


def excess(table: StepTable) -> int:
    return int(table.steps.filter("disturbed").select(pl.sum_horizontal("excess_ns", "gap_excess_ns").sum()).item())


def test_a_class_that_took_longer_is_told_with_its_usual_time() -> None:
    table = table_of(KERNELS | {"attention": [900]})
    assert table.disturbed == [AT]
    assert parts(table) == [("slower", "attention", 600 * US), ("rest", None, 0)]
    row = table.differences.row(0, named=True)
    assert (row["found_ns"], row["usual_ns"], row["launches"], row["usual_launches"]) == (900 * US, 300 * US, 1, 1)
    assert any(
        said.startswith(f"Step {AT} took 600.000 μs more than usual: attention +600") for said in remarks_of(table)
    )


def test_more_launches_are_told_from_slower_ones() -> None:
    launched = table_of(MANY | {"norm": [10] * 24, "gemm": [120] * 20}, usual=MANY)
    assert parts(launched)[:2] == [("slower", "gemm", 400 * US), ("more launches", "norm", 40 * US)]
    assert any("norm +40.000 μs (24 launches where 20 are usual)" in said for said in remarks_of(launched))


def test_a_kernel_that_ran_in_no_other_step_is_told_as_such() -> None:
    assert parts(table_of(MANY | {"compile": [800]}, usual=MANY))[0] == ("only here", "compile", 800 * US)


def test_a_host_that_paused_is_the_gap() -> None:
    table = table_of(late_us=900)
    assert parts(table) == [("host gap", None, 900 * US), ("rest", None, 0)]
    row = table.differences.row(0, named=True)
    assert row["found_ns"] - row["usual_ns"] == 900 * US
    assert not any(said.startswith(f"Step {AT} took") for said in remarks_of(table))  # which the reason has said


def test_the_largest_part_comes_first_and_the_rest_last() -> None:
    table = table_of(KERNELS | {"gemm": [500], "norm": [450]}, late_us=200)
    assert [row[:2] for row in parts(table)] == [
        ("slower", "norm"),
        ("host gap", None),
        ("slower", "gemm"),
        ("rest", None),
    ]
    assert sum(row[2] for row in parts(table)) == excess(table)


@given(st.dictionaries(st.sampled_from([*KERNELS]), st.integers(1, 2_000), min_size=1), st.integers(0, 1_000))
@examples(40)
def test_the_parts_always_add_up_to_the_excess(more: dict[str, int], late_us: int) -> None:
    table = table_of(KERNELS | {name: [each] for name, each in more.items()}, late_us=late_us)
    if not table.disturbed:
        assert table.differences.is_empty()
        return
    assert sum(row[2] for row in parts(table)) == excess(table)
    assert len(parts(table)) <= MOST + 1
    assert parts(table)[-1][0] == "rest"


def test_kernels_side_by_side_are_evened_out_by_the_rest() -> None:
    """Twice 500 μs more on two streams at once are 500 μs more of busy time."""
    launches: list[dict[str, Any]] = []
    calls, spans = [], []
    for k in range(12):
        more, at = 500 * US * (k == AT), 10_000 * US * k
        for stream in (7, 9):
            number = len(launches) + 1
            calls.append({"api": "c", "process": 1, "thread": 1, "correlation_id": number, "start_ns": at, "dur_ns": 5})
            launches.append({"kernel": f"k{stream}", "process": 1, "correlation_id": number, "stream": stream})
            launches[-1] |= {"start_ns": at + 10, "dur_ns": 1_000 * US + more}
        spans.append({"span": "step[DECODE bs=4]", "process": 1, "start_ns": at, "dur_ns": 1_200 * US + more})
    table = step_table(trace_of(launches, calls=calls, spans=spans))
    assert parts(table) == [("slower", "k7", 500 * US), ("slower", "k9", 500 * US), ("rest", None, -500 * US)]


@pytest.mark.parametrize("slow_before", [1, 50])
def test_steps_that_the_recording_cuts_teach_nothing_of_the_usual(slow_before: int) -> None:
    """Found steps: the first lacks its beginning, the last its end, and in one of twelve between a kernel is slow."""
    rows, of = serve(["decode"] * 14)
    at, late = next(k for k, row in enumerate(rows) if of[k] == AT and row["kernel"] == NORM), 0
    for k, row in enumerate(rows):
        row["start_ns"] += late
        more = 600 * US if k == at else row["dur_ns"] * (slow_before - 1) if of[k] == 0 else 0
        row["dur_ns"] += more
        late += more
    table = step_table(traced(rows[12:-9]))
    assert table.steps.filter("is_partial")["step"].to_list() == [0, 13]
    assert table.disturbed == [AT]
    assert parts(table) == [("slower", NORM, 600 * US), ("rest", None, 0)]
    assert table.differences["usual_ns"][0] == 7 * 3 * US  # of seven norms a step, 3 μs each
    assert set(table.class_steps.filter(pl.col("class") == GEMM)["step"]) == set(range(14))


def test_no_disturbed_steps_no_differences() -> None:
    table = table_of()
    assert table.differences.is_empty()
    assert table.as_json()["differences"] == []


@pytest.mark.parametrize("key", ["differences", "trends"])
def test_json_and_sections_have_them(key: str) -> None:
    table = table_of(KERNELS | {"attention": [900]})
    assert set(table.as_json()) >= {key}
    assert "What was different in disturbed steps" in [section.title for section in sections_of(table)]
