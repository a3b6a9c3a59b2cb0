"""Ops in one of every so many steps: which are seen, and what the analyses make of the others."""

import json
import threading
from typing import Any

import polars as pl
import pytest
from tests.record.interception.recorded import Recorded

from inferometer.analyses.steps.table import step_table
from inferometer.analyses.timeline.timeline import find_timeline
from inferometer.record.interception import Interception, step

torch = pytest.importorskip("torch", reason="torch isn't installed")
pytestmark = pytest.mark.usefixtures("way")


def steps_of(n: int, **options: Any) -> Recorded:
    """Step i makes a tensor of i numbers, between steps one without any is made."""
    sink = Recorded()
    model = torch.nn.Identity()
    with Interception(sink, **options):
        for i in range(n):
            with step(phase="decode"):
                model(torch.ones(i))
            torch.empty(0)
    return sink


def test_the_first_and_every_third_after_it_are_seen_and_what_is_between_steps() -> None:
    ops = steps_of(7, every=3).rows("ops")
    made = [json.loads(text)[0] for text in ops.filter(pl.col("op") == "aten::ones")["scalars"]]
    assert made == ["[0]", "[3]", "[6]"]
    assert ops["op"].to_list().count("aten::empty") == 7


def test_marks_and_times_are_those_of_all_steps_and_modules_those_of_seen_ones() -> None:
    sink = steps_of(7, every=3)
    assert sink.rows("steps")["step"].to_list() == list(range(7))
    assert sink.rows("spans").filter(pl.col("domain") == "modules").height == 3
    assert any("one of every 3 marked steps" in note for note in sink.facts.notes)


def test_unseen_time_is_the_recorder_s_and_unseen_steps_are_in_no_median() -> None:
    trace = steps_of(7, every=3).trace()
    table = step_table(trace)
    assert table.phases["used"].to_list() == [3]
    assert (
        "Steps 1–2, 4–5 are known by their times alone, as the recording was asked to, and left out of all medians."
        in table.notable
    )
    assert table.steps.filter(pl.col("step") % 3 > 0)["gap_ns"].null_count() == 4
    gaps = trace.counters.filter(pl.col("metric") == "ops_gap").collect()
    assert gaps.height == 4
    causes = dict(find_timeline(trace).causes.select("cause", "idle_ns").iter_rows())
    assert causes["recorder"] == gaps["value"].sum()


def test_where_a_profiler_has_the_launches_no_time_is_missing() -> None:
    assert steps_of(4, every=2, has_kernels=True).trace().counters.collect().is_empty()


def test_a_seen_step_is_seen_as_a_whole_whatever_other_threads_leave_out() -> None:
    sink = Recorded()
    begun, over = threading.Event(), threading.Event()

    def left_out() -> None:
        with step():
            begun.set()
            over.wait(60)

    with Interception(sink, every=2):
        with step():
            thread = threading.Thread(target=left_out)
            thread.start()
            begun.wait(60)
            torch.ones(1)
        torch.zeros(1)  # a step that is left out is still open
        over.set()
        thread.join()
        torch.zeros(2)
    assert [op for op in sink.ops() if op in ("aten::ones", "aten::zeros")] == ["aten::ones", "aten::zeros"]


def test_a_recording_that_ends_in_a_step_left_out_leaves_nothing_behind() -> None:
    sink = Recorded()
    with Interception(sink, every=2):
        step()
        step()
        torch.ones(1)
    with Interception(sink):
        torch.zeros(1)
    assert sink.ops() == ["aten::zeros"]


def test_a_program_that_marks_no_step_is_seen_whole_and_called_so() -> None:
    sink = Recorded()
    with Interception(sink, every=3):
        for _ in range(5):
            torch.ones(1)
    assert sink.rows("ops")["op"].to_list().count("aten::ones") == 5
    assert not any("marked steps" in note for note in sink.facts.notes)
