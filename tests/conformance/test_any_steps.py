"""Whatever steps a trace has, `steps`, `findings`, `summary` and `report` answer, and the parts add up to the whole."""

import json
import re
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.analyses.steps.found.made import serve
from tests.effort import examples
from tests.traces import trace_of

import inferometer
from inferometer.analyses.result import Result
from inferometer.analyses.steps.class_times import CLASS_STEPS
from inferometer.analyses.steps.disturbances import find_disturbed
from inferometer.analyses.steps.drift import find_trends
from inferometer.analyses.steps.growth import find_growth
from inferometer.analyses.steps.outliers import find_differences
from inferometer.analyses.steps.sources import STEPS
from inferometer.analyses.steps.table import StepTable, step_table
from inferometer.errors import InputError
from inferometer.findings.first_look import first_look
from inferometer.reports.delimited import render_csv
from inferometer.reports.page.document import render_page
from inferometer.reports.page.look import PageData
from inferometer.reports.page.section import build_blocks
from inferometer.reports.page.text import render_text
from inferometer.reports.terminal import render_terminal
from inferometer.reports.views.view import sections_of
from inferometer.trace.trace import Trace

US = 1_000
MS = 1_000_000
MOST = 14  # steps: from eight like ones on it is asked which were disturbed
COUNTS = st.sampled_from([MOST, MOST, MOST, MOST, 12, 9, 8, 3, 1, 0])
TIMES = st.sampled_from([100 * MS, 100 * MS, 104 * MS, 250 * MS, 1, 0])
PHASES = st.sampled_from(["decode", "decode", "prefill", "mixed"])
TOKENS = st.sampled_from([4, 4, 1, 0])
SLOW = st.dictionaries(st.integers(0, MOST - 1), st.sampled_from([2, 30, 500]), min_size=1, max_size=3)
"""Steps, and how many times as long they take."""

MARKED = st.sampled_from([(0,), (0, MOST - 1), (0, 1, 9), (5,), (), range(MOST)])
"""Steps that a flag marks, such as those that the recording cuts."""

CLASSES = ("gemm", "attention:L0", "attention:L1", "norm")


def at_times(each: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Null in a quarter of cases."""
    return st.sampled_from([True, True, True, False]).flatmap(lambda is_known: each if is_known else st.none())


def rows(count: int, **columns: st.SearchStrategy[Any]) -> st.SearchStrategy[list[dict[str, Any]]]:
    """So many equal rows, but for a few values. A column may be null in all rows, or in some."""
    usual = st.fixed_dictionaries({name: at_times(each) for name, each in columns.items()})
    at = st.integers(0, max(count - 1, 0))
    changes = [st.tuples(at, st.just(name), at_times(each)) for name, each in columns.items()]

    def changed(drawn: tuple[dict[str, Any], list[tuple[int, str, Any]]]) -> list[dict[str, Any]]:
        row, others = drawn
        return [row | {name: value for k, name, value in others if k == i} for i in range(count)]

    return st.tuples(usual, st.lists(st.one_of(changes), max_size=6)).map(changed)


def slowed(row: dict[str, Any], factor: int) -> dict[str, Any]:
    """A step that takes so many times as long."""
    times = ("wall_ns", "gpu_busy_ns", "dur_ns")
    return {name: value * factor if name in times and value else value for name, value in row.items()}


@st.composite
def class_times(draw: st.DrawFn, steps: list[int]) -> list[tuple[int, str, int, int | None]]:
    """Step, class, ns, calls: nearly equal in all steps; now and then a class is lacking, slow, or only there."""
    usual = draw(st.lists(TIMES, min_size=len(CLASSES), max_size=len(CLASSES)))
    found = {(step, name): ns for step in steps for name, ns in zip(CLASSES, usual, strict=True)}
    at = st.tuples(st.sampled_from(steps or [0]), st.sampled_from((*CLASSES, "only:L3")))
    found |= draw(st.dictionaries(at, TIMES, max_size=4))
    for key in draw(st.sets(at, max_size=4)):
        found.pop(key, None)
    calls = draw(rows(len(found), calls=st.integers(1, 3)))
    return [(*key, ns, row["calls"]) for (key, ns), row in zip(found.items(), calls, strict=True)]


@st.composite
def step_frames(draw: st.DrawFn) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Steps and the times of their classes, as the analyses of steps hand them on."""
    drawn = rows(
        draw(COUNTS),
        phase=PHASES,
        tokens=TOKENS,
        mean_kv=st.sampled_from([8.0, 9.5, 100.0, 2_000.0]),
        wall_ns=TIMES,
        gpu_busy_ns=TIMES,
        gap_ns=st.sampled_from([10 * MS, 0, -5 * MS, 900 * MS]),
    )
    slow = draw(SLOW)
    found = [{"step": 3 * k, **slowed(row, slow.get(k, 1))} for k, row in enumerate(draw(drawn))]
    for flag in draw(st.sets(st.sampled_from(["is_partial", "is_warm_up"]))):
        marked = draw(MARKED)
        found = [row | {flag: k in marked} for k, row in enumerate(found)]
    steps = pl.DataFrame(found, schema=STEPS)
    times = draw(class_times(steps["step"].to_list()))
    times = [(step, name, ns * slow.get(step // 3, 1), calls) for step, name, ns, calls in times]
    classes = pl.DataFrame(
        times, schema={name: CLASS_STEPS[name] for name in ("step", "class", "total_ns", "calls")}, orient="row"
    )
    classes = classes.join(steps.select("step", "phase"), on="step", maintain_order="left")
    return steps, classes.with_columns(pl.lit(0, dtype=pl.Int64).alias("layers")).select(CLASS_STEPS.names())


@given(step_frames())
@examples(150)
def test_what_was_different_adds_up_to_the_excess(frames: tuple[pl.DataFrame, pl.DataFrame]) -> None:
    steps, classes = frames
    found = find_disturbed(steps, classes)
    assert found["step"].equals(steps["step"])
    off = found.filter(pl.col("is_partial") | pl.col("is_warm_up"))
    assert not off["disturbed"].any()
    assert not off["judged"].any()
    assert found.filter("disturbed")["judged"].all()
    differences = find_differences(found, classes)
    assert set(differences["step"]) == set(found.filter("disturbed")["step"])
    for row in found.filter("disturbed").iter_rows(named=True):
        own = differences.filter(pl.col("step") == row["step"])
        assert own["excess_ns"].sum() == (row["excess_ns"] or 0) + (row["gap_excess_ns"] or 0)
        assert row["why"]
        assert not re.search(r"\b(nan|inf)", row["why"])
    with_used = found.with_columns((~pl.col("disturbed")).alias("used"))
    find_trends(with_used, classes)
    find_growth(with_used.filter("used"), classes)


@st.composite
def recorded(draw: st.DrawFn) -> Trace:
    """Steps that an engine wrote down, with sums of its kernels, times of its functions, launches, or none of them."""
    count = draw(COUNTS)
    drawn = draw(
        rows(
            count,
            phase=PHASES,
            decode_tokens=TOKENS,
            prefill_tokens=TOKENS,
            batch=TOKENS,
            context_len=st.integers(0, 100),
            dur_ns=TIMES,
            gpu_busy_ns=TIMES,
        )
    )
    slow, is_timed = draw(SLOW), draw(st.booleans())
    starts = [500 * MS * k if is_timed else None for k in range(count)]
    steps = [
        {"step": k, "source": "recorded", "start_ns": starts[k], **slowed(row, slow.get(k, 1))}
        for k, row in enumerate(drawn)
    ]
    source = draw(st.sampled_from(["totals", "function_times", "launches", "nothing"]))
    totals, functions, launches = list[dict[str, Any]](), list[dict[str, Any]](), list[dict[str, Any]]()
    for step, name, usual_ns, calls in [] if source == "nothing" else draw(class_times([*range(count)])):
        ns = usual_ns * slow.get(step, 1)
        if source == "totals":
            totals.append({"section": 0, "step": step, "kernel": name, "total_ns": ns, "count": calls})
        elif source == "function_times":
            functions.append({"cycle": step, "function": name, "calls": calls, "device": "gpu:0", "dur_ns": ns})
        else:
            launches.append({"kernel": name, "start_ns": 500 * MS * step, "dur_ns": ns})
    return trace_of(launches, steps=steps, totals=totals, function_times=functions)


@st.composite
def launched(draw: st.DrawFn) -> Trace:
    """Launches of a small engine: cut at both ends, some of them slow, late or missing; marked or not, with calls."""
    phases = draw(rows(draw(COUNTS), phase=PHASES))
    made, of = serve([row["phase"] or "decode" for row in phases], layers=draw(st.integers(1, 2)))
    slow = draw(SLOW)
    late_us = draw(st.dictionaries(st.integers(0, MOST - 1), st.sampled_from([10, 5_000]), max_size=3))
    lacking = draw(st.sets(st.integers(0, max(len(made) - 1, 0)), max_size=3))
    first, last = (draw(st.integers(0, 30)) for _ in range(2))
    launches: list[dict[str, Any]] = []
    at, step_starts = 0, dict[int, int]()
    for k, (row, step) in enumerate(zip(made, of, strict=True)):
        if step not in step_starts:
            at += late_us.get(step, 0) * US
            step_starts[step] = row["start_ns"] + at
        dur_ns = row["dur_ns"] * (slow.get(step, 1) if k % 3 == 0 else 1)
        if first <= k < len(made) - last and k not in lacking:
            launches.append(row | {"start_ns": row["start_ns"] + at, "dur_ns": dur_ns})
        at += dur_ns - row["dur_ns"]
    calls = []
    if ahead_us := draw(st.sampled_from([None, 5, 50])):
        for number, launch in enumerate(launches, 1):
            launch |= {"correlation_id": number, "process": 1}
            start_ns = launch["start_ns"] - ahead_us * US
            calls.append({"api": "cudaLaunchKernel", "process": 1, "correlation_id": number, "start_ns": start_ns})
            calls[-1] |= {"thread": 1, "dur_ns": 2 * US}
    name = draw(st.sampled_from(["", "step[DECODE bs=4]", "step[EXTEND bs=1 toks=7]", "ProfilerStep#{}"]))
    starts = [*step_starts.values()]
    ends = [*starts[1:], None][: len(starts)]
    spans = [
        {"span": name.format(k), "process": 1, "thread": 1, "start_ns": start, "dur_ns": (end or start) - start}
        for k, (start, end) in enumerate(zip(starts, ends, strict=True) if name else ())
    ]
    return trace_of(launches, calls=calls, spans=spans)


def shown(result: Result) -> None:
    """In every form."""
    json.dumps(result.as_json(), allow_nan=False)
    said = render_terminal(result, is_terminal=False)
    assert not re.search(r"\b(nan|inf|None)\b", said), said
    inferometer.render_markdown(result)
    if sections_of(result):
        render_csv(result)


def check_steps(table: StepTable) -> None:
    shown(table)
    assert table.phases["steps"].sum() == table.steps.height
    assert (table.phases["used"] <= table.phases["steps"]).all()
    assert not table.steps.filter(pl.col("is_partial") | pl.col("is_warm_up"))["disturbed"].any()
    for row in table.steps.filter("disturbed").iter_rows(named=True):
        own = table.differences.filter(pl.col("step") == row["step"])
        assert own["excess_ns"].sum() == (row["excess_ns"] or 0) + (row["gap_excess_ns"] or 0)


@given(recorded() | launched(), st.booleans())
@examples(30)
def test_everything_that_tells_of_steps_answers(trace: Trace, keep_disturbed: bool) -> None:
    try:
        table = step_table(trace, keep_disturbed=keep_disturbed)
    except InputError:
        assert trace.steps.collect().is_empty()
    else:
        check_steps(table)
        for phase in table.phases["phase"]:
            check_steps(step_table(trace, phase=phase or "unknown"))
    shown(first_look(trace))
    blocks = build_blocks(PageData(trace))
    assert render_page(blocks, title="t").html
    assert render_text(blocks, title="t")


@pytest.mark.parametrize("count", [0, 1])
def test_a_trace_of_no_step_or_one_is_no_error(count: int) -> None:
    trace = trace_of(steps=[{"step": k, "phase": None, "source": "recorded"} for k in range(count)])
    shown(first_look(trace))
    if count:
        check_steps(step_table(trace))
    else:
        with pytest.raises(InputError, match="found none recorded"):
            step_table(trace)
