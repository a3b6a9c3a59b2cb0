"""How many launches a step has, and how much of it they bind: reported from the queueing calls, to the nanosecond."""

import io
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples
from tests.traces import trace_of
from tools.kineto_maker import Options, write_trace

from inferometer.analyses.steps.table import StepTable, step_table
from inferometer.reports.views.view import remarks_of
from inferometer.trace.trace import Trace

STEP = {"span": "ProfilerStep#1", "start_ns": 0, "dur_ns": 1_000}


def call(number: int, start_ns: int, dur_ns: int) -> dict[str, Any]:
    return {
        "api": "cudaLaunchKernel",
        "process": 1,
        "thread": 1,
        "correlation_id": number,
        "start_ns": start_ns,
        "dur_ns": dur_ns,
    }


def run(number: int | None, start_ns: int, dur_ns: int, stream: int = 7) -> dict[str, Any]:
    return {"correlation_id": number, "process": 1, "stream": stream, "start_ns": start_ns, "dur_ns": dur_ns}


def bound(launches: list[dict[str, Any]], calls: list[dict[str, Any]], *steps: dict[str, Any]) -> list[int | None]:
    spans = [{"process": 1, **step} for step in steps or (STEP,)]
    return step_table(trace_of(launches, calls=calls, spans=spans)).steps["launch_bound_ns"].to_list()


def test_a_step_in_which_a_graph_is_captured_has_no_launch_bound_time() -> None:
    """Two steps alike; in the second, and in the next one's mark, the host captures a graph."""
    spans = [{"process": 1, "span": f"ProfilerStep#{n}", "start_ns": 1_000 * n, "dur_ns": 1_000} for n in range(3)]
    launches = [run(n, 1_000 * n + 150, 300) for n in range(3)]
    calls = [call(n, 1_000 * n + 100, 40) for n in range(3)]
    captured = call(9, 1_500, 20) | {"api": "hipStreamBeginCapture", "correlation_id": None}
    others = captured | {"process": 2, "start_ns": 2_500}
    found = step_table(trace_of(launches, calls=[*calls, captured, others], spans=spans))
    assert found.steps["captures"].to_list() == [0, 1, 0]
    assert found.steps["launch_bound_ns"].to_list() == [140 + 550, None, 690]
    assert "Step 1 captures a graph: what is captured isn't run, so no launch-bound time is given." in remarks_of(found)


def test_marks_without_launches_are_left_out_of_medians_where_others_have_some() -> None:
    spans = [{"process": 1, "span": f"ProfilerStep#{n}", "start_ns": 1_000 * n, "dur_ns": 1_000} for n in range(2)]
    found = step_table(trace_of([run(1, 100, 200)], calls=[call(1, 50, 10)], spans=spans))
    assert found.phases["used"].to_list() == [1]
    assert found.phases["gap_median_ns"].to_list() == [800]
    assert "Step 1 is without any launch, and left out of all medians." in remarks_of(found)


def test_idle_time_until_the_call_that_queues_the_next_work_returns_is_launch_bound() -> None:
    launches = [run(1, 150, 300), run(2, 620, 300)]
    calls = [call(1, 100, 40), call(2, 500, 100)]
    # Idle from 0 to 150, queued at 140; from 450 to 620, queued at 600; from 920 on, nothing is queued.
    assert bound(launches, calls) == [140 + 150 + 80]


def test_work_that_is_queued_in_time_is_not_launch_bound_however_late_it_begins() -> None:
    launches = [run(1, 0, 300), run(2, 500, 500)]
    assert bound(launches, [call(1, 0, 0), call(2, 20, 10)]) == [0]


def test_a_kernel_shorter_than_its_call_is_launch_bound_where_the_device_runs_dry_with_its_end() -> None:
    calls = [call(1, 0, 90), call(2, 110, 100), call(3, 290, 100)]
    short = [run(1, 90, 50), run(2, 210, 60), run(3, 400, 600)]
    assert bound(short, calls) == [90 + 50 + 70 + 60 + 120]
    longer = [run(1, 90, 95), run(2, 210, 60), run(3, 400, 600)]  # the first takes longer than its call
    assert bound(longer, calls) == [90 + 25 + 60 + 120]


def test_the_nodes_of_a_graph_were_queued_together() -> None:
    graph = [run(1, 10 + 100 * i, 40) for i in range(10)]  # idle for 60 ns behind each
    assert bound(graph, [call(1, 0, 10)]) == [10 + 50]  # until it was queued, and behind the last


def test_other_streams_keep_the_device_busy() -> None:
    launches = [run(1, 0, 100), run(2, 50, 900, stream=9), run(3, 400, 100)]
    assert bound(launches, [call(1, 0, 0), call(2, 10, 10), call(3, 300, 100)]) == [50]


def test_a_host_that_runs_ahead_is_never_waited_for() -> None:
    steps = [{"span": f"ProfilerStep#{k}", "start_ns": 100 * k, "dur_ns": 100} for k in range(1, 4)]
    launches = [run(k, 900 * k - 800, 900) for k in range(1, 4)]
    table = [call(k, 100 * k, 5) for k in range(1, 4)]
    assert bound(launches, table, *steps) == [0, 0, 0]
    empty = {"span": "ProfilerStep#4", "start_ns": 9_000, "dur_ns": 100}
    assert bound(launches, table, *steps, empty) == [0, 0, 0, None]  # nothing was launched in it


def test_without_calls_nobody_knows() -> None:
    assert bound([run(None, 100, 100)], []) == [None]
    some = [run(1, 0, 990), run(None, 995, 5)]  # 5 ns of idle time of unknown cause in 1,000
    assert bound(some, [call(1, 0, 0)]) == [0]


def test_a_step_is_bound_until_its_work_has_ended_though_its_mark_ends_before() -> None:
    mark = {"span": "execute_context_0(0)_generation_1(1)", "start_ns": 0, "dur_ns": 100}
    launches, calls = [run(1, 120, 300), run(2, 460, 40)], [call(1, 20, 100), call(2, 90, 350)]
    # Idle from 0 to 120, queued then; from 420 to 460, queued at 440; the kernel of 40 ns is not the last to wait for.
    assert bound(launches, calls, mark) == [120 + 20]


def test_a_step_counts_the_launches_that_it_queued_and_sources_without_launches_have_none() -> None:
    launches = [run(1, 150, 300), run(2, 620, 300), run(3, 1_500, 10)]
    calls = [call(1, 100, 40), call(2, 500, 100), call(3, 1_400, 10)]
    spans = [STEP | {"process": 1}, {"span": "ProfilerStep#2", "start_ns": 1_000, "dur_ns": 9, "process": 1}]
    table = step_table(trace_of(launches, calls=calls, spans=spans))
    assert table.steps["launches"].to_list() == [2, 0]
    steps = [{"step": 0, "phase": "decode", "source": "recorded", "gpu_busy_ns": 9, "dur_ns": 10}]
    recorded = step_table(trace_of(steps=steps))
    assert recorded.steps.select("launches", "launch_bound_ns", "launch_bound_share").row(0) == (None, None, None)


@given(st.lists(st.tuples(st.integers(0, 90), st.integers(1, 90), st.integers(1, 60)), min_size=1, max_size=20))
@examples(100)
def test_launch_bound_time_is_what_a_slow_count_of_nanoseconds_finds(rows: list[tuple[int, int, int]]) -> None:
    host = device = 0
    launches, calls = [], []
    for number, (pause, dur, long) in enumerate(rows, 1):
        calls.append(call(number, host + pause, long))
        host += pause + long
        device = max(device, host)
        launches.append(run(number, device, dur))
        device += dur
    end = max(host, device) + 30
    busy = {t for one in launches for t in range(one["start_ns"], one["start_ns"] + one["dur_ns"])}
    expected = 0
    for t in range(end):
        later = [i for i, one in enumerate(launches) if one["start_ns"] > t]
        queued = later and calls[later[0]]["start_ns"] + calls[later[0]]["dur_ns"] <= t
        running = next((i for i, one in enumerate(launches) if 0 <= t - one["start_ns"] < one["dur_ns"]), None)
        if running is None:
            expected += not queued
        elif running + 1 < len(launches):
            own, ends = calls[running]["dur_ns"], launches[running]["start_ns"] + launches[running]["dur_ns"]
            following = calls[running + 1]["start_ns"] + calls[running + 1]["dur_ns"]
            expected += launches[running]["dur_ns"] < own and following > ends
    found = bound(launches, calls, {"span": "ProfilerStep#1", "start_ns": 0, "dur_ns": end})
    assert found == [expected]
    assert len(busy) <= end


@pytest.fixture
def made(read: Callable[..., Trace]) -> Callable[[Options], StepTable]:
    def make(options: Options) -> StepTable:
        out = io.BytesIO()
        write_trace(options, out)
        return step_table(read(out.getvalue()))

    return make


def test_a_late_host_binds_by_as_much_as_it_was_late(made: Callable[[Options], StepTable]) -> None:
    usual = Options(steps=6, layers=2, prefill_every=0, stack=False)
    late = Options(steps=6, layers=2, prefill_every=0, stack=False, fault="host-late", fault_ms=5.0)
    tables = [made(options) for options in (usual, late)]
    wall, waiting = (
        [float(table.steps[name].to_numpy().mean()) for table in tables] for name in ("wall_ns", "launch_bound_ns")
    )
    assert waiting[1] - waiting[0] == pytest.approx(wall[1] - wall[0], rel=0.1)
    assert any("launch-bound for" in said for said in remarks_of(tables[1]))


def test_a_graph_has_less_launch_bound_time_than_the_same_steps_eager(made: Callable[[Options], StepTable]) -> None:
    eager, graph = (
        made(Options(steps=6, model="llama-3.2-1b", layers=6, batch=1, prefill_every=0, stack=False, mode=mode))
        for mode in ("eager", "graph")
    )
    waiting = [sum(table.steps["launch_bound_ns"].to_list()) for table in (eager, graph)]
    assert waiting[1] < 0.5 * waiting[0]
    for table in (eager, graph):
        assert table.steps.filter(pl.col("launch_bound_ns") > pl.col("wall_ns")).is_empty()
        assert table.steps.select((pl.col("launches") > 0).all()).item()
