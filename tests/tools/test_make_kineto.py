"""The generated traces are what they claim to be: every claim is counted again, from the JSON and with Decimal."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tracemalloc
from collections import Counter, defaultdict
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.tools.kineto_events import CALLS, HOST, WORK, Event, enclosing, end, innermost, of, read, start
from tools.kineto_maker import CallSite, Options, Truth, make_trace, write_trace

ROOT = Path(__file__).parents[2]

SMALL = Options(steps=3, layers=2, prefill_every=3)
VARIANTS = {
    "eager": SMALL,
    "graph": replace(SMALL, mode="graph", graph_node_ids=True),
    "two ranks": replace(SMALL, rank=1, world=2),
    "host-late": replace(SMALL, fault="host-late", marks="vllm"),
    "two streams": replace(SMALL, fault="serial-stream"),
    "a slow rank": replace(SMALL, world=2, fault="slow-rank", mode="graph"),
    "lean, no marks": replace(SMALL, lean=True, marks="none"),
    "no stack": replace(SMALL, stack=False),
    "edited replays": replace(SMALL, mode="graph", batches=(1, 64), drop_kernels=0.1, add_kernels=0.1),
}


@pytest.fixture(params=list(VARIANTS))
def trace(request: pytest.FixtureRequest) -> tuple[Options, list[Event], Truth]:
    out, options = io.BytesIO(), VARIANTS[request.param]
    truth = write_trace(options, out)
    return options, read(out.getvalue())["traceEvents"], truth


@pytest.mark.parametrize("name", ["samples/decode.json.gz", "samples/decode_fixed.json.gz"])
def test_the_sample_is_what_the_command_in_its_readme_makes(name: str, tmp_path: Path) -> None:
    commands = (ROOT / "samples/README.md").read_text().splitlines()
    command = next(line for line in commands if line.startswith("python tools/") and f" {name} " in line)
    made = tmp_path / "made.json.gz"
    arguments = [str(made) if part == name else part for part in shlex.split(command)[1:]]
    subprocess.run([sys.executable, *arguments], cwd=ROOT, check=True)
    sample = (ROOT / name).read_bytes()
    assert gzip.decompress(made.read_bytes()) == gzip.decompress(sample)
    assert sample[4:8] == bytes(4)  # no time in the header
    assert len(sample) < 250_000


def test_the_text_is_laid_out_as_kineto_does_it() -> None:
    text = make_trace(SMALL).decode()
    assert text.startswith('\n{\n  "schemaVersion": 1,\n  "deviceProperties": [\n    {\n      "id": 0, "name": "NVIDIA')
    assert text.endswith('\n  ],\n  "traceName": "25286.pt.trace.json"\n}\n')
    kernel = text[text.index('"cat": "kernel"') :].partition("\n  }")[0]
    assert re.fullmatch(
        r""""cat": "kernel", "name": "void at::native::\S.*", "pid": 0, "tid": 7,
    "ts": \d+\.\d{3}, "dur": \d+\.\d{3},
    "args": \{
      "External id": \d+,      "queued": 0, "device": 0, "context": 1,      "stream": 7, "correlation": \d+,\
      "registers per thread": 18,      "shared memory": 0,      "blocks per SM": 0.030303,\
      "warps per SM": 0.121212,      "grid": \[4, 1, 1\],      "block": \[128, 1, 1\],\
      "est. achieved occupancy %": 0
    \}""".replace("\\\n", ""),
        kernel,
    )


@pytest.mark.parametrize(
    ("layout", "needle"),
    [("compact", b'"cat":"kernel"'), ("oneline", b'"cat": "kernel", '), ("indent2", b'\n      "cat": "kernel",\n')],
)
def test_layouts_differ_in_space_only(layout: Any, needle: bytes) -> None:
    data = make_trace(replace(SMALL, layout=layout))
    assert read(data) == read(make_trace(SMALL))
    assert needle in data
    indent, separators = (2, None) if layout == "indent2" else (None, (",", ":") if layout == "compact" else None)
    assert data.decode() == json.dumps(json.loads(data), indent=indent, separators=separators)


def test_the_same_options_give_the_same_bytes() -> None:
    options = replace(SMALL, gz=True)
    assert make_trace(options) == make_trace(options)
    assert gzip.decompress(make_trace(options)) == make_trace(SMALL)
    assert make_trace(replace(SMALL, seed=8)) != make_trace(SMALL)


def test_the_truth_is_what_the_file_holds(trace: tuple[Options, list[Event], Truth]) -> None:
    _, events, truth = trace
    kernels = of(events, "kernel")
    assert truth.events == Counter(event.get("cat", event["ph"]) for event in events)
    assert truth.kernels == len(kernels)
    assert truth.kernel_ns == sum(end(kernel) - start(kernel) for kernel in kernels)


def test_the_truth_knows_the_steps(trace: tuple[Options, list[Event], Truth]) -> None:
    options, events, truth = trace
    calls = {event["args"]["correlation"]: event for event in of(events, *CALLS)}
    assert [step.phase for step in truth.steps] == ["prefill", "decode", "decode"]
    marks = [(mark["name"], start(mark), end(mark)) for mark in of(events, "user_annotation")]
    if options.marks != "none":
        assert marks == [(step.mark, step.start_ns, step.end_ns) for step in truth.steps]
    for step in truth.steps:
        queued = [
            kernel
            for kernel in of(events, "kernel")
            if step.start_ns <= start(calls[kernel["args"]["correlation"]]) < step.end_ns
        ]
        assert len(queued) == step.kernels
        assert sum(end(kernel) - start(kernel) for kernel in queued) == step.kernel_ns
        assert all(step.start_ns < start(kernel) and end(kernel) < step.end_ns for kernel in queued)


def test_the_truth_knows_the_call_sites(trace: tuple[Options, list[Event], Truth]) -> None:
    _, events, truth = trace
    kernels = defaultdict(list)
    for kernel in of(events, "kernel"):
        kernels[kernel["args"]["correlation"]].append(kernel)
    times = defaultdict(list)
    for call, around in enclosing(of(events, "cpu_op", "python_function", *CALLS)):
        if call["cat"] in CALLS:
            for kernel in kernels[call["args"]["correlation"]]:
                op, frame = innermost(around, "cpu_op"), innermost(around, "python_function")
                module = innermost(around, "python_function", "nn.Module: ")
                times[kernel["name"], op, frame, module].append(end(kernel) - start(kernel))
    assert set(truth.call_sites) == {CallSite(*site, len(ns), sum(ns)) for site, ns in times.items()}


def test_streams_run_one_thing_at_a_time_in_order(trace: tuple[Options, list[Event], Truth]) -> None:
    _, events, _ = trace
    streams = defaultdict(list)
    for work in of(events, *WORK):
        streams[work["tid"]].append(work)
    for works in streams.values():
        assert all(end(before) < start(after) for before, after in pairwise(works))


def test_work_starts_after_the_call_that_queued_it(trace: tuple[Options, list[Event], Truth]) -> None:
    _, events, _ = trace
    calls = {event["args"]["correlation"]: event for event in of(events, *CALLS)}
    assert len(calls) == len(of(events, *CALLS))
    for work in of(events, *WORK):
        call = calls[work["args"]["correlation"]]
        assert end(call) < start(work)
        assert call["args"].get("External id") == work["args"].get("External id")


def test_flows_lead_from_calls_to_work(trace: tuple[Options, list[Event], Truth]) -> None:
    _, events, _ = trace
    flows = Counter((flow["ph"], flow["id"], flow["pid"], start(flow)) for flow in of(events, "ac2g"))
    sources = {flow["id"] for flow in of(events, "ac2g") if flow["ph"] == "s"}
    for work in of(events, *WORK):
        assert flows["f", work["args"]["correlation"], work["pid"], start(work)] == 1
        assert work["args"]["correlation"] in sources


def test_host_events_nest_and_siblings_never_touch(trace: tuple[Options, list[Event], Truth]) -> None:
    _, events, _ = trace
    host = of(events, *HOST)
    assert len({(event["pid"], event["tid"]) for event in host}) == 1
    last_end: dict[int, int] = {}  # by depth
    for event, around in enclosing(host):
        assert event["dur"] > 0
        if around:
            assert start(around[-1]) < start(event)
            assert end(event) < end(around[-1])
        assert start(event) > last_end.get(len(around), 0)
        last_end[len(around)] = end(event)
        if event["cat"] == "python_function":
            parent = next((outer for outer in reversed(around) if outer["cat"] == "python_function"), None)
            assert event["args"]["Python parent id"] == (parent["args"]["Python id"] if parent else None)
        if event["cat"] in CALLS:
            op = next((outer for outer in reversed(around) if outer["cat"] == "cpu_op"), None)
            assert event["args"].get("External id") == (op["args"]["External id"] if op else None)


def test_device_marks_span_the_work_of_their_step(trace: tuple[Options, list[Event], Truth]) -> None:
    options, events, truth = trace
    expected = []
    for step in truth.steps if options.marks != "none" else ():
        streams = defaultdict(list)
        for work in of(events, *WORK):
            if step.start_ns < start(work) < step.end_ns:
                streams[work["tid"]].append(work)
        expected += [(step.mark, stream, start(works[0]), end(works[-1])) for stream, works in sorted(streams.items())]
    marks = of(events, "gpu_user_annotation")
    assert [(mark["name"], mark["tid"], start(mark), end(mark)) for mark in marks] == expected


def test_no_stack_and_no_shapes_only_remove() -> None:
    full = read(make_trace(SMALL))["traceEvents"]
    bare = read(make_trace(replace(SMALL, stack=False, shapes=False)))["traceEvents"]
    gone = {"Concrete Inputs", "Input type", "Input Strides", "Input Dims"}
    expected = [event for event in full if event.get("cat") != "python_function"]
    for event in of(expected, "cpu_op"):
        event["args"] = {name: value for name, value in event["args"].items() if name not in gone}
    assert bare == expected


def test_slow_kernels_are_slower_and_the_others_are_not() -> None:
    pair = SMALL, replace(SMALL, slow=("silu", 1.5))
    base, slow = (of(read(make_trace(options))["traceEvents"], "kernel") for options in pair)
    for before, after in zip(base, slow, strict=True):
        assert before["name"] == after["name"]
        factor = Decimal("1.5") if "silu" in before["name"] else 1
        assert abs(after["dur"] - before["dur"] * factor) <= Decimal("0.001")


def test_host_late_leaves_the_device_idle_in_every_decode_step() -> None:
    out = io.BytesIO()
    truth = write_trace(replace(SMALL, fault="host-late", fault_ms=2), out)
    events = read(out.getvalue())["traceEvents"]
    works = sorted(of(events, *WORK), key=start)
    for step in truth.steps:
        inside = [work for work in works if step.start_ns < start(work) < step.end_ns]
        gaps = [(start(after) - end(before), before) for before, after in pairwise(inside)]
        longest_ns, before = max(gaps, key=lambda gap: gap[0])
        if step.phase == "decode":
            assert 1_800_000 < step.fault_ns < longest_ns < 2_400_000
            assert before["name"] == "Memcpy DtoH (Device -> Pinned)"
        else:
            assert step.fault_ns == 0
            assert longest_ns < 100_000
    waits = [
        [event["name"] for event in around if event["cat"] == "cpu_op"]
        for call, around in enclosing(of(events, "cpu_op", *CALLS))
        if call["name"] == "cudaStreamSynchronize"
    ]
    assert waits == [["aten::item", "aten::_local_scalar_dense"]] * 2


def test_a_replay_runs_the_eager_kernels_of_the_model_from_one_call() -> None:
    eager, graph = (
        [event["name"] for event in of(read(make_trace(options))["traceEvents"], "kernel")]
        for options in (VARIANTS["eager"], VARIANTS["graph"])
    )
    assert eager == graph
    events = read(make_trace(VARIANTS["graph"]))["traceEvents"]
    for launch in (call for call in of(events, *CALLS) if call["name"] == "cudaGraphLaunch"):
        correlation = launch["args"]["correlation"]
        replayed = [work for work in of(events, "kernel") if work["args"]["correlation"] == correlation]
        assert [work["args"]["graph node id"] for work in replayed] == list(range(1, len(replayed) + 1))
        assert len(replayed) > 2 * 14


def test_no_kernel_is_faster_than_an_h100_allows() -> None:
    """Weights are read once from memory in decode: 3.35 TB/s is the card's peak."""
    events = read(make_trace(Options(steps=1, layers=1, prefill_every=0)))["traceEvents"]
    ids = {event["args"]["External id"]: event for event in of(events, "cpu_op") if event["name"] == "aten::mm"}
    gemms = [kernel for kernel in of(events, "kernel") if kernel["name"].startswith("nvjet")]
    assert len(gemms) == 5
    for kernel in gemms:
        depth, width = ids[kernel["args"]["External id"]]["args"]["Input Dims"][1]
        assert kernel["dur"] > 2 * depth * width / Decimal("3.35e6")  # microseconds


def test_memory_does_not_grow_with_the_number_of_steps() -> None:
    peaks = []
    for steps in (4, 24):
        tracemalloc.start()
        with Path(os.devnull).open("wb") as nowhere:
            write_trace(Options(steps=steps, layers=2, model="llama-3.2-1b"), nowhere)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.3 * peaks[0]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"world": 3}, "world: expected a divisor of 8, found 3"),
        ({"rank": 2, "world": 2}, "rank: expected 0 to 1, found 2"),
        ({"slow": ("(", 2.0)}, "slow: expected a regular expression"),
        ({"slow": ("a", 0.0)}, "slow: expected a factor above 0"),
        ({"model": "gpt"}, "model: expected one of llama"),
        ({"steps": 0}, "expected at least 1"),
        ({"fault_ms": -1}, "expected 0 or more"),
        ({"batches": (8, 0)}, "expected at least 1"),
        ({"batches": (8, 8)}, "batches: expected each size once, found [8, 8]"),
        ({"mode": "graph", "drop_kernels": 1.5}, "expected a share from 0 to 1"),
        ({"add_kernels": 0.5}, "expected mode graph, found eager"),
        ({"mode": "capture", "fault": "host-late"}, "fault: expected none in mode capture"),
        ({"threads": 3}, "threads: expected 1 or 2, found 3"),
    ],
)
def test_options_that_make_no_sense_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Options(**wrong)


def test_the_command_writes_trace_and_truth_and_overwrites_only_by_force(tmp_path: Path) -> None:
    out, truth = tmp_path / "trace.json", tmp_path / "truth.json"
    small = ["--steps", "1", "--layers", "1", "--slow", "nvjet", "1.5", "--truth", str(truth)]
    command = [sys.executable, str(ROOT / "tools/make_kineto.py"), *small, "--out"]
    subprocess.run([*command, str(out)], check=True, capture_output=True)
    options = Options(steps=1, layers=1, slow=("nvjet", 1.5))
    assert out.read_bytes() == make_trace(options)
    assert json.loads(truth.read_text())["kernels"] == len(of(read(out.read_bytes())["traceEvents"], "kernel"))

    again = subprocess.run([*command, str(out)], check=False, capture_output=True, text=True)
    assert again.returncode == 2
    assert f"{out} exists already; --force replaces it" in again.stderr
    piped = subprocess.run([*command, "-", "--force"], check=True, capture_output=True)
    assert piped.stdout == make_trace(options)
