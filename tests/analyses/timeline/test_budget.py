"""Every nanosecond of a device's window is in one row of the budget; a brute-force count by the nanosecond agrees."""

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.traces import trace_of

from inferometer.analyses.timeline.budget import SCHEMA, describe_part, part_key, time_budget
from inferometer.analyses.timeline.gaps import find_gaps
from inferometer.analyses.timeline.work import find_work
from inferometer.trace.trace import Trace

GEMM, NORM, SEND = "ampere_sgemm_128x64_tn", "void rms_norm_kernel<float>()", "ncclDevKernel_SendRecv(x)"
KERNELS = {GEMM: "gemm", NORM: "norm"}


def budget_of(trace: Trace) -> pl.DataFrame:
    work = find_work(trace)
    return time_budget(work, find_gaps(trace, work))


def rows_of(budget: pl.DataFrame) -> dict[str, int]:
    return {part_key(sort, name): ns for sort, name, ns in budget.select("sort", "name", "time_ns").iter_rows()}


def kernel(name: str, start_ns: int, end_ns: int, **more: Any) -> dict[str, Any]:
    return {"kernel": name, "start_ns": start_ns, "dur_ns": end_ns - start_ns, **more}


def test_work_that_hides_takes_no_time_of_its_own() -> None:
    trace = trace_of(
        [
            kernel(GEMM, 0, 100, stream=1),
            kernel(NORM, 80, 120, stream=2),  # 20 ns of it next to the GEMM
            kernel(SEND, 90, 150, stream=3),  # exposed for 30 ns
            kernel("Memcpy HtoD", 140, 170, stream=4, kind="memcpy"),  # exposed for 20 ns
            kernel(GEMM, 200, 210, stream=1),
        ]
    )
    assert rows_of(budget_of(trace)) == {
        "compute.gemm": 80 + 10,
        "compute.norm": 20,
        "several": 20,
        "communication": 30,
        "copies": 20,
        "idle.unknown": 30,
    }


@st.composite
def launches(draw: st.DrawFn) -> list[dict[str, Any]]:
    made = st.tuples(
        st.sampled_from([(GEMM, "kernel"), (NORM, "kernel"), (SEND, "kernel"), ("Memset", "memset")]),
        st.integers(0, 60),
        st.integers(0, 25),
        st.sampled_from(["gpu:0", "gpu:1", None]),
    )
    return [
        kernel(name, start, start + dur, kind=kind, device=device, stream=n)
        for n, ((name, kind), start, dur, device) in enumerate(draw(st.lists(made, max_size=12)))
    ]


@given(launches())
def test_each_nanosecond_is_counted_once(rows: list[dict[str, Any]]) -> None:
    budget = budget_of(trace_of(rows))
    expected: dict[tuple[str | None, str], int] = {}
    for device in {row["device"] for row in rows}:
        own = [row for row in rows if row["device"] == device]
        first, last = min(r["start_ns"] for r in own), max(r["start_ns"] + r["dur_ns"] for r in own)
        for time in range(first, last):
            key = (device, part_at(own, time))
            expected[key] = expected.get(key, 0) + 1
    told = budget.filter(pl.col("time_ns") > 0).select("device", "sort", "name", "time_ns").iter_rows()
    found = {(device, part_key(sort, "unknown" if sort == "idle" else name)): ns for device, sort, name, ns in told}
    assert found == expected


def part_at(rows: list[dict[str, Any]], time: int) -> str:
    on = [row for row in rows if row["start_ns"] <= time < row["start_ns"] + row["dur_ns"]]
    families = {KERNELS[row["kernel"]] for row in on if row["kernel"] in KERNELS}
    if len(families) > 1:
        return "several"
    if families:
        return f"compute.{families.pop()}"
    if any(row["kernel"] == SEND for row in on):
        return "communication"
    return "copies" if on else "idle.unknown"


def test_without_launches_it_is_empty() -> None:
    budget = budget_of(trace_of())
    assert (budget.height, budget.schema) == (0, pl.Schema(SCHEMA))


@pytest.mark.parametrize(
    ("sort", "name", "words"),
    [
        ("compute", "grouped_gemm", "grouped gemm kernels"),
        ("compute", None, "other kernels"),
        ("several", None, "kernels of several families at once"),
        ("communication", None, "exposed communication"),
        ("copies", None, "exposed copies and sets"),
        ("idle", "dependency", "idle: queued work waited"),
        ("idle", None, "idle: no host call recorded"),
    ],
)
def test_a_row_in_words(sort: str, name: str | None, words: str) -> None:
    assert describe_part(sort, name) == words
