"""The roofline's times by step, recomputed from the files: a launch is of the step in which its call began."""

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest
from tests.kineto_files import exact_ns
from tests.truth.raw import KINDS, timed_events

import inferometer
from inferometer.analyses.launched_by.attribution import attribute
from inferometer.analyses.roofline.table import roofline
from inferometer.analyses.steps.table import step_table


def sums_by_step(path: Path) -> tuple[dict[str | None, int], dict[str | None, int]]:
    """Launches and their time, by loops over the file's events."""
    timed = timed_events(path)
    marks = [each for each in timed if each["name"].startswith("ProfilerStep#") and each["cat"] == "user_annotation"]
    calls = {
        each["args"]["correlation"]: exact_ns(each["ts"])
        for each in timed
        if each["cat"].lower() in ("cuda_runtime", "cuda_driver") and "correlation" in each["args"]
    }
    launches: Counter[str | None] = Counter()
    times: Counter[str | None] = Counter()
    for each in timed:
        if each["cat"].lower() not in KINDS:
            continue
        called = calls.get(each["args"].get("correlation"))
        inside = [
            mark["name"]
            for mark in marks
            if called is not None and exact_ns(mark["ts"]) <= called < exact_ns(mark["ts"]) + exact_ns(mark["dur"])
        ]
        step = inside[0] if inside else None
        launches[step] += 1
        times[step] += exact_ns(each["dur"])
    return dict(launches), dict(times)


@pytest.mark.parametrize("file", ["mi300_resnet_ddp", "rank0_sampled", "a100_nccl", "a100_event_sync"])
def test_a_step_has_what_all_threads_of_its_process_launched(file: str, shared_data: Path) -> None:
    path = shared_data / "traces" / "kineto" / f"{file}.json.gz"
    launches, times = sums_by_step(path)
    with inferometer.open(path) as trace:
        by_step = roofline(attribute(trace, with_op_calls=True), trace).by["step"]
        steps = step_table(trace).steps
    assert dict(by_step.select("key", "launches").iter_rows()) == launches
    assert dict(by_step.select("key", "total_ns").iter_rows()) == times
    told = {f"ProfilerStep#{step}": count for step, count in steps.select("step", "launches").iter_rows()}
    assert {name: launches[name] for name in told if name in launches} == told


def test_a_device_without_known_peaks_is_called_by_the_name_that_the_file_has(shared_data: Path) -> None:
    path = shared_data / "traces" / "kineto" / "v100_graph_branches.json.gz"
    with gzip.open(path) as file:
        (name,) = {each["name"] for each in json.load(file)["deviceProperties"]}
    with inferometer.open(path) as trace:
        (said,) = roofline(attribute(trace, with_op_calls=True), trace).notable
    assert said.startswith(f"No peaks of {name} are known here")
