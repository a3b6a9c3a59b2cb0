"""Ranges that a user named mark steps where their names speak of steps and they hold the launches."""

from typing import Any

import pytest
from tests.traces import trace_of

from inferometer.analyses.steps.found.ranges import find_marks
from inferometer.analyses.steps.table import step_table
from inferometer.trace.trace import Trace

HOST = {"process": 1, "thread": 1}


def ranged(names: list[str], *, inside: int = 4, outside: int = 0, **others: Any) -> Trace:
    """A range of 100 µs for each name, some calls in each, and others behind all."""
    spans = [{"span": name, **HOST, "start_ns": 100_000 * k, "dur_ns": 90_000} for k, name in enumerate(names)]
    times = [100_000 * k + 1_000 * i for k in range(len(names)) for i in range(inside)]
    times += [100_000 * len(names) + 1_000 * i for i in range(outside)]
    calls = [
        {"api": "cudaLaunchKernel", **HOST, "start_ns": time, "dur_ns": 10, "correlation_id": k}
        for k, time in enumerate(times)
    ]
    launches = [
        {"process": 1, "start_ns": time + 60_000, "dur_ns": 100, "correlation_id": k} for k, time in enumerate(times)
    ]
    return trace_of(launches, spans=[*spans, *others.get("spans", [])], calls=calls)


@pytest.mark.parametrize(
    ("names", "numbers", "anchor"),
    [
        (["step 12", "step 13", "step 14"], [12, 13, 14], "step N"),
        (["iteration_7", "iteration_8", "iteration_9"], [7, 8, 9], "iteration_N"),
        (["train_step 1/9", "train_step 2/9", "train_step 3/9"], [1, 2, 3], "train_step N/N"),
        (["forward"] * 3, [None] * 3, "forward"),
    ],
)
def test_names_that_differ_in_numbers_are_steps(names: list[str], numbers: list[int | None], anchor: str) -> None:
    marks, told = find_marks(ranged(names))
    assert told == f"ranges named `{anchor}`"
    assert marks["step"].to_list() == numbers
    assert marks.select("start_ns", "wall_ns").rows() == [(100_000 * k, 90_000) for k in range(3)]


def test_a_name_may_tell_the_phase() -> None:
    marks, _ = find_marks(ranged(["prefill 0", "decode 1", "decode 2"]))
    assert marks.select("step", "phase").rows() == [(0, "prefill"), (1, "decode"), (2, "decode")]


@pytest.mark.parametrize(
    "names",
    [
        ["layer_0", "layer_1", "layer_2"],
        ["layer 0 forward", "layer 1 forward", "layer 2 forward"],
        ["step 0", "step 1"],
        ["step 0", "step 1", "step 0"],
        ["download", "upload", "load"],
        ["timestep_embedding_block"] * 3,
    ],
)
def test_other_ranges_are_none(names: list[str]) -> None:
    marks, told = find_marks(ranged(names))
    assert marks.is_empty()
    assert told is None


def test_ranges_that_hold_few_of_the_calls_are_none() -> None:
    assert find_marks(ranged(["step 0", "step 1", "step 2"], outside=12))[0].is_empty()
    assert find_marks(ranged(["step 0", "step 1", "step 2"], inside=0, outside=12))[0].is_empty()


def test_the_outermost_of_ranges_that_hold_as_much_are_the_steps() -> None:
    inner = [
        {"span": "forward", **HOST, "start_ns": 100_000 * k + half, "dur_ns": 40_000}
        for k in range(3)
        for half in (0, 45_000)
    ]
    marks, told = find_marks(ranged(["step 0", "step 1", "step 2"], spans=inner))
    assert (told, marks.height) == ("ranges named `step N`", 3)


def test_launches_belong_to_the_range_of_their_call() -> None:
    table = step_table(ranged(["step 5", "step 6", "step 7"], inside=3))
    assert table.anchor == "ranges named `step N`"
    assert table.steps["step"].to_list() == [5, 6, 7]
    assert table.class_steps["total_ns"].to_list() == [300] * 3
