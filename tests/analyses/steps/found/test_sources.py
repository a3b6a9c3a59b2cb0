"""The steps of a trace without marks are those that its marks would tell."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from tests.analyses.steps.found.made import serve, traced
from tests.traces import trace_of
from tools.kineto_maker import Options, write_trace

import inferometer
from inferometer.analyses.steps.sources import FOUND, NEEDED, RunSteps, read_steps
from inferometer.errors import InputError

OPTIONS = Options(steps=7, layers=2, prefill_every=3, lean=True)


def steps_of(path: Path, *tables: str) -> RunSteps:
    with inferometer.open(path, {name: NEEDED[name] for name in tables}) as trace:
        return read_steps(trace)


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_steps_without_marks_are_those_of_the_marks(mode: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    with path.open("wb") as file:
        write_trace(replace(OPTIONS, mode="graph" if mode == "graph" else "eager"), file)
    marked, found = steps_of(path, "launches", "calls", "spans"), steps_of(path, "launches", "calls")
    assert (marked.anchor, found.anchor) == ("the engine's marks", FOUND)
    same = ["step", "phase"]
    assert found.steps.select(same).equals(marked.steps.select(same))
    order = ["step", "class", "total_ns", "calls"]
    assert found.class_steps.select(order).sort(order).equals(marked.class_steps.select(order).sort(order))
    assert found.steps["gpu_busy_ns"].equals(marked.steps["gpu_busy_ns"])
    assert marked.steps.select("is_partial", "is_warm_up", "confidence", "layers").null_count().row(0) == (7,) * 4
    assert found.steps["layers"].to_list() == [2] * 7


def test_found_steps_say_how_they_were_found() -> None:
    rows, _ = serve(["decode"] * 9)
    found = read_steps(traced(rows[12:]))
    assert found.notes[0].startswith("Steps were found in the order of kernels (sampling kernels, every 3 attentions; ")
    assert not any("Step 0" in note for note in found.notes)  # the table of steps says so
    assert found.steps["is_partial"].to_list() == [True, *[False] * 8]
    assert found.steps["gpu_busy_ns"].to_list()[1:] == [26 * 3_000] * 8


def test_each_process_is_a_run() -> None:
    rows, _ = serve(["decode"] * 5, rank=0)
    other, _ = serve(["decode"] * 4, rank=1)
    trace = traced([*rows, *other])
    assert read_steps(trace).runs == {0: 5, 1: 4}
    assert read_steps(trace, 1).rank == 1


def test_of_several_devices_of_a_process_the_busiest_is_the_run() -> None:
    rows, _ = serve(["decode"] * 5, device="gpu:1")
    fewer, _ = serve(["decode"] * 4, device="gpu:0")
    found = read_steps(traced([*rows, *fewer]))
    assert found.runs == {0: 5}


def test_without_steps_the_reason_is_told() -> None:
    with pytest.raises(InputError, match="No steps were found in the order of kernels: no kernel comes at regular"):
        read_steps(trace_of([{"start_ns": 5 * k} for k in range(9)]))


def test_only_launches_need_have_been_read() -> None:
    rows, _ = serve(["decode"] * 5)
    found = read_steps(traced(rows, tables=["launches"]))
    assert found.steps.height == 5
    assert found.class_steps.filter(pl.col("step") == 2)["calls"].sum() == 26
