"""Idle time while a recording was cut is the recorder's, to the nanosecond, and a step with it is none to compare."""

import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from tests.record.sinks import MemorySink
from tests.traces import trace_of

from inferometer.analyses.compare.activity.launch_activity import activity_of_launches
from inferometer.analyses.compare.activity.step_marks import STEPS, Marks, find_recorded_marks, leave_out_cut
from inferometer.analyses.timeline.gaps import CAUSES
from inferometer.analyses.timeline.recorder_pauses import (
    GAP,
    PAUSE,
    SCHEMA,
    UNOBSERVED,
    meet_pauses,
    part_pauses,
    recorder_pauses,
)
from inferometer.analyses.timeline.timeline import find_timeline
from inferometer.record.profiler.account import Account
from inferometer.trace.trace import Trace


def recorded(gaps: list[tuple[str, int, int, int]], *, form: str = "recording") -> Trace:
    """Launches of 10 ns at 0, 100, 200, … of process 1, each from a call that came late."""
    counters = [
        {"metric": metric, "process": process, "time_ns": at, "value": float(ns), "unit": "ns"}
        for metric, process, at, ns in gaps
    ]
    launches = [
        {"start_ns": 100 * i, "dur_ns": 10, "correlation_id": i + 1, "process": 1, "device": "gpu:0"} for i in range(4)
    ]
    calls = [
        {"api": "cudaLaunchKernel", "start_ns": 100 * i - 5, "dur_ns": 2, "correlation_id": i + 1, "process": 1}
        for i in range(4)
    ]
    steps = [{"step": i, "start_ns": 100 * i - 6, "dur_ns": 20, "process": 1, "phase": "decode"} for i in range(4)]
    return trace_of(launches, calls=calls, counters=counters, steps=steps, facts={"format": form})


def test_gaps_and_pauses_of_one_process_are_one_where_they_touch() -> None:
    trace = recorded([(GAP, 1, 30, 20), (PAUSE, 1, 25, 15), (PAUSE, 1, 50, 5), (GAP, 2, 40, 3), (GAP, 1, 80, 1)])
    assert recorder_pauses(trace).rows() == [(1, 25, 55), (2, 40, 43), (1, 80, 81)]


def test_another_tool_s_counters_of_that_name_are_no_pauses() -> None:
    assert recorder_pauses(recorded([(GAP, 1, 30, 20)], form="kineto")).is_empty()


def test_idle_time_of_a_cut_is_the_recorder_s_and_the_rest_stays() -> None:
    causes = find_timeline(recorded([(GAP, 1, 30, 40), (GAP, 2, 130, 40)])).causes
    assert dict(causes.select("cause", "idle_ns").iter_rows()) == {"host_late": 230, "recorder": 40}


def test_steps_that_were_left_out_are_the_recorder_s_time() -> None:
    trace = recorded([(UNOBSERVED, 1, 30, 40)])
    causes = find_timeline(trace).causes
    assert dict(causes.select("cause", "idle_ns").iter_rows()) == {"host_late": 230, "recorder": 40}


def test_the_step_after_one_that_was_left_out_isn_t_as_long_as_both() -> None:
    """Launches begin every 100 ns and last 10: the gap before the third is only what was seen of it."""
    trace = recorded([(UNOBSERVED, 1, 94, 100)])
    without, seen = (activity_of_launches(each).cycles for each in (recorded([]), trace))
    assert without["idle_ns"].to_list() == [6, 90, 90, 90]
    assert seen["idle_ns"].to_list() == [6, 90, 6, 90]


def test_a_step_behind_a_cut_is_left_out_unless_all_are() -> None:
    marks = find_recorded_marks(recorded([(GAP, 1, 30, 40)]))
    assert marks.steps["left_out"].to_list() == [False, True, False, False]
    assert marks.notes == ("Nothing was recorded in all or a part of 1 of 4 steps: left out.",)
    every = find_recorded_marks(recorded([(GAP, 1, -10, 400)]))
    assert (every.steps["left_out"].any(), every.notes) == (False, ())
    assert find_recorded_marks(recorded([])).notes == ()


def test_steps_that_were_found_on_a_device_are_left_out_as_those_that_are_marked() -> None:
    """Each device by itself, besides those that are left out anyway."""
    rows = [("gpu:0", 0, 20, True), ("gpu:0", 100, 120, False), ("gpu:0", 200, 220, False), ("gpu:1", 0, 20, False)]
    steps = pl.DataFrame(
        [
            {"process": 1, "device": device, "start_ns": at, "end_ns": end, "left_out": out}
            for device, at, end, out in rows
        ],
        schema=STEPS,
    )
    pauses = pl.DataFrame([(1, 30, 70)], SCHEMA, orient="row")
    found = leave_out_cut(Marks(steps, "attention", 0.9, looked_for=True, notes=("found",)), pauses)
    assert found.steps["left_out"].to_list() == [True, True, False, False]
    assert found.notes[0] == "found"
    assert "a part of 1 of 4 steps" in found.notes[1]


RANGES = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 20)), max_size=8)


@given(gaps=RANGES, pauses=RANGES, owners=st.lists(st.sampled_from([1, 2, None]), min_size=8, max_size=8))
def test_parts_are_what_a_look_at_every_nanosecond_says(
    gaps: list[tuple[int, int]], pauses: list[tuple[int, int]], owners: list[int | None]
) -> None:
    causes = pl.Enum(CAUSES)
    frame = pl.DataFrame(
        [(n, at, at + ns, owners[n], "sync") for n, (at, ns) in enumerate(gaps)],
        {"id": pl.Int64, "dry_ns": pl.Int64, "start_ns": pl.Int64, "process": pl.Int64, "cause": causes},
        orient="row",
    )
    rows, end = list[tuple[int, int, int]](), -1
    for at, ns in sorted(pauses):
        if at > end:
            rows.append((1, at, end := at + ns))
    cut = pl.DataFrame(rows, SCHEMA, orient="row")
    parted = part_pauses(frame, cut, "recorder")
    slow = {
        (n, at): "recorder" if owners[n] != 2 and any(a <= at < b for _, a, b in rows) else "sync"
        for n, (begin, ns) in enumerate(gaps)
        for at in range(begin, begin + ns)
    }
    found = {
        (n, at): cause
        for n, cause, begin, stop in parted.select("id", "cause", "dry_ns", "start_ns").iter_rows()
        for at in range(begin, stop)
    }
    assert found == slow
    assert (parted["start_ns"] - parted["dry_ns"]).sum() == sum(ns for _, ns in gaps)
    meets = meet_pauses(frame.rename({"dry_ns": "start_ns", "start_ns": "end_ns"}), cut).to_list()
    assert meets == ["recorder" in {slow[n, at] for at in range(b, b + ns)} for n, (b, ns) in enumerate(gaps)]


def test_the_recorder_writes_these_metrics() -> None:
    sink = MemorySink()
    account = Account(sink, 1, 1.0)
    account.ended(10, 5, 100)
    account.gap(20, 7)
    assert sink.rows("counters")["metric"].to_list() == [PAUSE, GAP]
