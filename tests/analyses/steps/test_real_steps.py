"""Marked steps of real traces, recounted from the file's events in plain Python."""

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

import inferometer
from inferometer.analyses.steps.table import step_table
from inferometer.reports.views.view import remarks_of

TRACES = Path(__file__).resolve().parents[3].parent / "shared/data/traces/kineto"
MARKED = (
    "a100_event_sync",
    "a100_idle_64",
    "h100_qwen1.5-0.5b",
    "mi250_minitoy",
    "mi300_resnet_ddp",
    "mi300_vllm_gpt-oss_decode",
    "rank0_sampled",
    "v100_graph_branches",
)
DEVICE = {"kernel", "gpu_memcpy", "gpu_memset"}
HOST = {"cuda_runtime", "cuda_driver"}


def ns(event: dict[str, Any]) -> tuple[int, int]:
    """From when to when it lasts."""
    start = round(event["ts"] * 1_000)
    return start, start + round(event["dur"] * 1_000)


def union(intervals: list[tuple[int, int]], since: int, until: int) -> int:
    """Covered time between two moments."""
    covered, reached = 0, since
    for start, end in sorted(intervals):
        covered += max(0, min(end, until) - max(start, reached))
        reached = max(reached, min(end, until))
    return covered


def recount(events: list[dict[str, Any]]) -> list[tuple[int, int, int, int]]:
    """Launches, busy time, window and idle time of each marked step."""
    asked: dict[int, int] = {}
    for event in events:
        if event.get("cat") in HOST and "correlation" in event.get("args", {}):
            number = event["args"]["correlation"]
            asked[number] = min(asked.get(number, ns(event)[0]), ns(event)[0])
    work = [(asked.get(event["args"]["correlation"]), event) for event in events if event.get("cat") in DEVICE]
    begins: dict[int, int] = {}  # of the first work on each stream whose call is in the file
    for at, event in work:
        if at is not None:
            begins[event["tid"]] = min(begins.get(event["tid"], ns(event)[0]), ns(event)[0])
    of_mark = re.compile(r"ProfilerStep#\d+|execute_.*")
    marks = sorted(ns(e) for e in events if e.get("cat") == "user_annotation" and of_mark.fullmatch(e["name"]))
    at, event = min(work, key=lambda each: ns(each[1])[0])
    begun = ns(event)[0]
    hidden = 0 if at is not None and begun - at < 500_000 else begun  # nothing is known of the device before
    found, ended = [], 0
    for start, end in marks:
        own = [ns(event) for at, event in work if at is not None and start <= at < end]
        before = [
            ns(event)[1]
            for at, event in work
            if (at is not None and at < start) or (at is None and ns(event)[0] < begins.get(event["tid"], 0))
        ]
        until = max([ended, end, *(last for _, last in own)])
        since = max([start, ended, hidden, *(last for last in before if last <= until)])
        running = union([ns(event) for _, event in work], since, until)
        found.append((len(own), union(own, 0, until), until - since, until - since - running))
        ended = until
    return found


@pytest.mark.parametrize("name", MARKED)
def test_steps_of_a_real_trace_are_what_its_events_say(name: str) -> None:
    path = TRACES / f"{name}.json.gz"
    if not path.is_file():
        pytest.skip("needs the real traces in shared/data/traces next to the repository")
    with inferometer.open(path) as trace:
        steps = step_table(trace).steps
    with gzip.open(path) as file:
        expected = recount(json.load(file)["traceEvents"])
    assert steps.select("launches", "gpu_busy_ns", "window_ns", "gap_ns").rows() == expected
    assert (steps["gap_ns"] >= 0).all()


def test_work_queued_before_the_first_mark_is_not_its_own() -> None:
    path = TRACES / "v100_graph_branches.json.gz"
    if not path.is_file():
        pytest.skip("needs the real traces in shared/data/traces next to the repository")
    with inferometer.open(path) as trace:
        first = step_table(trace).steps.select("step", "launches", "gpu_busy_ns").row(0)
        compared = inferometer.compare(trace, trace)
    assert first == (1009, 2_503, 126_099_000)  # not the 614 launches of the step before it, too
    assert (compared.changes.base_steps, compared.changes.candidate_steps) == (6, 6)
    assert not any("partial" in remark for remark in remarks_of(compared))
