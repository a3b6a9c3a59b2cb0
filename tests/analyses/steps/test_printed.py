"""Sums printed step by step, and whose steps they are: of one log, of several runs in it, of logs as ranks."""

from collections.abc import Mapping
from typing import Any

import pytest
from tests.traces import trace_of

from inferometer import Trace
from inferometer.analyses.compare.activity.printed_activity import activity_of_steps
from inferometer.analyses.steps.printed import has_printed_steps, printed_of_run, printed_steps
from inferometer.analyses.steps.table import step_table

MS = 1_000_000


def row(section: int, total_ns: int | None, **more: Any) -> dict[str, Any]:
    return {"section": section, "step": 0, "kernel": "op", "total_ns": total_ns, **more}


def step(number: int = 0, **more: Any) -> dict[str, Any]:
    return {"step": number, "phase": "decode", "decode_tokens": 1, "start_ns": 0, "dur_ns": MS, **more}


def two_ranks() -> Trace:
    """Two runs of rank 0 and one of rank 1: sections go on from rank to rank, the processes of steps don't."""
    owners: tuple[Mapping[str, Any], ...] = ({"rank": 0, "process": 0}, {"rank": 0, "process": 1}, {"rank": 1})
    totals = [row(0, 10, rank=0), row(1, 20, rank=0), row(2, 30, rank=1)]
    return trace_of(totals=totals, steps=[step(**owner) for owner in owners])


def test_a_section_of_one_log_is_the_process_of_its_steps_and_rows_without_a_time_are_none() -> None:
    trace = trace_of(totals=[row(0, 10), row(1, 20), row(1, None), row(1, 40, step=None)])
    assert has_printed_steps(trace)
    assert printed_steps(trace).select("log_run", "total_ns").collect().rows() == [(0, 10), (1, 20)]
    assert printed_of_run(trace, None, 1).collect()["total_ns"].to_list() == [20]
    assert printed_of_run(trace, None, None).collect()["total_ns"].to_list() == [10]


def test_sums_without_steps_are_no_printed_steps() -> None:
    assert not has_printed_steps(trace_of(totals=[row(0, 10, step=None)]))
    assert not has_printed_steps(trace_of(tables=["steps"]))


@pytest.mark.parametrize(("rank", "process", "total_ns"), [(0, 0, 10), (0, 1, 20), (1, None, 30)])
def test_sections_count_anew_within_each_rank(rank: int, process: int | None, total_ns: int) -> None:
    assert printed_of_run(two_ranks(), rank, process).collect()["total_ns"].to_list() == [total_ns]


def test_each_run_of_each_rank_has_its_own_class_times() -> None:
    tables = [step_table(two_ranks(), run=run) for run in range(3)]
    assert [table.class_steps["total_ns"].to_list() for table in tables] == [[10], [20], [30]]
    assert [(table.rank, table.process) for table in tables] == [(0, 0), (0, 1), (1, None)]


def test_in_a_comparison_each_ranks_steps_have_their_own_sums() -> None:
    functions = activity_of_steps(two_ranks()).functions
    assert functions.select("rank", "process", "dur_ns").sort("dur_ns").rows() == [
        (0, 0, 10),
        (0, 1, 20),
        (1, None, 30),
    ]
