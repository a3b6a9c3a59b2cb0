"""The truth about single launches is what nesting in the file says, on every thread, of eager and compiled programs."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from collections import Counter, defaultdict
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.tools.kineto_events import CALLS, HOST, WORK, Event, enclosing, end, of, read, start
from tools.kineto_maker import CallSite, Chain, LaunchTruths, Options, Truth, write_trace

ROOT = Path(__file__).parents[2]
SMALL = Options(steps=3, layers=2, prefill_every=3)
VARIANTS = {
    "eager": SMALL,
    "graph": replace(SMALL, mode="graph", graph_node_ids=True),
    "edited replays": replace(SMALL, mode="graph", batches=(1, 64), drop_kernels=0.1, add_kernels=0.1),
    "two ranks": replace(SMALL, rank=1, world=2, threads=2),
    "two threads": replace(SMALL, threads=2, fault="host-late"),
    "compiled": replace(SMALL, compiled=True, threads=2),
    "compiled, a fault": replace(SMALL, compiled=True, fault="unfused-norm"),
    "compiled graph": replace(SMALL, compiled=True, mode="graph", marks="vllm"),
    "capture": replace(SMALL, mode="capture", batches=(1, 64), threads=2),
    "compiled capture": replace(SMALL, mode="capture", compiled=True, marks="profiler"),
    "no stack": replace(SMALL, stack=False, marks="none", threads=2),
}

Made = tuple[Options, list[Event], Truth]


def make(options: Options) -> Made:
    out = io.BytesIO()
    truth = write_trace(options, out, launches=True)
    return options, read(out.getvalue())["traceEvents"], truth


def launches_of(truth: Truth) -> LaunchTruths:
    assert truth.by_launch is not None
    return truth.by_launch


def names(around: list[Event], category: str) -> tuple[str, ...]:
    return tuple(event["name"] for event in around if event["cat"] == category)


def chain(around: list[Event]) -> Chain:
    frames = names(around, "python_function")
    modules = tuple(name.removeprefix("nn.Module: ") for name in frames if name.startswith("nn.Module: "))
    return Chain(names(around, "cpu_op"), modules, frames, names(around, "user_annotation"))


def is_tail(part: tuple[str, ...], of_whole: tuple[str, ...]) -> bool:
    return of_whole[len(of_whole) - len(part) :] == part


@pytest.fixture(scope="module", params=list(VARIANTS))
def made(request: pytest.FixtureRequest) -> Made:
    return make(VARIANTS[request.param])


def test_every_launch_of_the_file_has_its_chain(made: Made) -> None:
    options, events, truth = made
    chains = {
        event["args"]["correlation"]: (event["tid"], chain(around))
        for event, around in enclosing(of(events, *HOST))
        if event["cat"] in CALLS
    }
    main = min(tid for tid, _ in chains.values())
    expected = []
    for work in of(events, *WORK):
        correlation = work["args"]["correlation"]
        tid, around = chains[correlation]
        times = start(work), end(work) - start(work)
        expected.append((work["cat"], work["name"], *times, work["tid"], correlation, int(tid != main), around))
    rows = launches_of(truth).launches
    told = [(*row[:6], row.thread, row.chain) for row in rows]
    assert sorted(told) == sorted(expected)
    assert {row.thread for row in rows} == set(range(options.threads))


def test_launches_add_up_to_call_sites_and_steps(made: Made) -> None:
    _, _, truth = made
    kernels = [row for row in launches_of(truth).launches if row.kind == "kernel"]
    times = defaultdict(list)
    for row in kernels:
        times[row.kernel, row.chain.site].append(row.dur_ns)
    assert set(truth.call_sites) == {CallSite(name, *site, len(ns), sum(ns)) for (name, site), ns in times.items()}
    assert (truth.kernels, truth.kernel_ns) == (len(kernels), sum(row.dur_ns for row in kernels))
    for step in truth.steps:
        queued = [row.dur_ns for row in kernels if row.step == step.step and row.thread == 0]
        assert (step.kernels, step.kernel_ns) == (len(queued), sum(queued))


def test_the_truth_counts_the_events(made: Made) -> None:
    _, events, truth = made
    assert truth.events == Counter(event.get("cat", event["ph"]) for event in events)


def test_host_events_nest_on_each_thread(made: Made) -> None:
    options, events, _ = made
    host = of(events, *HOST)
    assert len({event["tid"] for event in host}) == options.threads
    ids = {event["args"]["Python id"]: event for event in of(events, "python_function")}
    assert len(ids) == len(of(events, "python_function"))
    for event, around in enclosing(host):
        if around:
            assert start(around[-1]) < start(event)
            assert end(event) < end(around[-1])
        if event["cat"] == "python_function":
            parent = next((outer for outer in reversed(around) if outer["cat"] == "python_function"), None)
            assert event["args"]["Python parent id"] == (parent["args"]["Python id"] if parent else None)
        if event["cat"] in CALLS:
            op = next((outer for outer in reversed(around) if outer["cat"] == "cpu_op"), None)
            assert event["args"].get("External id") == (op["args"]["External id"] if op else None)
    assert len({event["args"]["External id"] for event in of(events, "cpu_op", "user_annotation")}) == len(
        of(events, "cpu_op", "user_annotation")
    )


def test_device_marks_span_the_work_of_their_innermost_mark(made: Made) -> None:
    _, events, _ = made
    innermost = {
        event["args"]["correlation"]: next(
            (outer["args"]["External id"] for outer in reversed(around) if outer["cat"] == "user_annotation"), None
        )
        for event, around in enclosing(of(events, *HOST))
        if event["cat"] in CALLS
    }
    works = defaultdict(list)
    for work in sorted(of(events, *WORK), key=start):
        works[innermost[work["args"]["correlation"]], work["tid"]].append(work)
    expected = {(*key, start(found[0]), end(found[-1])) for key, found in works.items() if key[0] is not None}
    marks = of(events, "gpu_user_annotation")
    assert {(mark["args"]["External id"], mark["tid"], start(mark), end(mark)) for mark in marks} == expected
    assert len(marks) == len(expected)


def test_streams_run_one_thing_at_a_time_after_their_calls(made: Made) -> None:
    _, events, _ = made
    calls = {event["args"]["correlation"]: event for event in of(events, *CALLS)}
    assert len(calls) == len(of(events, *CALLS))
    streams = defaultdict(list)
    for work in of(events, *WORK):
        streams[work["tid"]].append(work)
        assert end(calls[work["args"]["correlation"]]) < start(work)
    for works in streams.values():
        works.sort(key=start)
        assert all(end(before) < start(after) for before, after in pairwise(works))


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_a_replayed_kernel_is_known_by_the_end_of_its_chain_in_the_same_run_without_graphs(compiled: bool) -> None:
    eager = replace(SMALL, batches=(1, 64), compiled=compiled)
    _, _, truth = make(eager)
    _, _, graph_truth = make(replace(eager, mode="graph"))
    pairs = zip(launches_of(truth).launches, launches_of(graph_truth).launches, strict=True)
    replayed = [(direct, replay) for direct, replay in pairs if replay.graph_id is not None]
    assert len(replayed) == sum(replay.kernels for replay in launches_of(graph_truth).replays)
    for direct, replay in replayed:
        assert direct.kernel == replay.kernel
        assert replay.captured is not None
        assert replay.chain.ops == ()
        assert direct.chain.ops == replay.captured.ops != ()
        assert direct.chain.modules == replay.captured.modules != ()
        assert is_tail(replay.captured.frames, direct.chain.frames)
        assert is_tail(replay.captured.marks, direct.chain.marks)
    assert all(row.captured is None for row in launches_of(graph_truth).launches if row.graph_id is None)


def test_asking_for_launches_changes_nothing_else() -> None:
    plain, asked = io.BytesIO(), io.BytesIO()
    truth = write_trace(SMALL, plain)
    with_launches = write_trace(SMALL, asked, launches=True)
    assert plain.getvalue() == asked.getvalue()
    assert truth.by_launch is None
    assert "by_launch" not in truth.as_json()
    assert truth == replace(with_launches, by_launch=None)


def test_the_command_writes_launches_as_columns(tmp_path: Path) -> None:
    out, told = tmp_path / "trace.json", tmp_path / "truth.json"
    command = [sys.executable, str(ROOT / "tools/make_kineto.py"), "--out", str(out), "--truth-launches"]
    options = "--steps 3 --layers 2 --mode graph --batches 1 8 --drop-kernels 0.2 --add-kernels 0.1 --threads 2"
    refused = subprocess.run(command, check=False, capture_output=True, text=True)
    assert "--truth-launches needs --truth FILE" in refused.stderr
    subprocess.run([*command, "--truth", str(told), *options.split()], check=True, capture_output=True)
    asked = Options(steps=3, layers=2, mode="graph", batches=(1, 8), drop_kernels=0.2, add_kernels=0.1, threads=2)
    truth = launches_of(make(asked)[2])
    by_launch = json.loads(told.read_text())["by_launch"]
    chains = [Chain(*(tuple(part[field]) for field in Chain._fields)) for part in by_launch["chains"]]

    def value(name: str, number: Any) -> Any:
        if name == "kernel":
            return by_launch["kernels"][number]
        return chains[number] if name in ("chain", "captured") and number is not None else number

    columns = by_launch["launches"]
    rows = [
        tuple(value(*item) for item in zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
    ]
    assert rows == truth.launches
    assert by_launch["replays"]["dropped"] == [list(replay.dropped) for replay in truth.replays]


def test_the_second_thread_works_at_the_same_time_and_changes_nothing_of_the_first() -> None:
    _, alone, _ = make(SMALL)
    _, events, truth = make(replace(SMALL, threads=2))
    main, side = sorted({event["tid"] for event in of(events, *CALLS)})
    for category in ("cpu_op", *CALLS):
        before = [(event["name"], start(event), end(event)) for event in of(alone, category)]
        assert before == [
            (event["name"], start(event), end(event)) for event in of(events, category) if event["tid"] == main
        ]
    rows = launches_of(truth).launches
    assert {row.stream for row in rows if row.thread == 1} == {24}
    assert 24 not in {row.stream for row in rows if row.thread == 0}
    assert {row.chain.modules for row in rows if row.thread == 1} == {("LogProbs_0",), ()}

    inside = 0
    for call in (event for event in of(events, *CALLS) if event["tid"] == side):
        inside += any(start(op) < start(call) < end(op) for op in of(events, "cpu_op", *CALLS) if op["tid"] == main)
    assert inside > 10  # these would go to the wrong op if threads were mixed up


def test_compiled_code_is_recorded_as_inductor_does_it() -> None:
    _, events, truth = make(replace(SMALL, compiled=True))
    kernels = [op for op in of(events, "cpu_op") if "kernel_hash" in op["args"]]
    for op in kernels:
        said = op["args"]
        assert re.fullmatch(r"triton_(poi|red)_fused_\w+_\d", op["name"])
        assert re.fullmatch(r"c[a-z2-7]{51}", said["kernel_hash"])
        assert said["kernel_file"] == f"/tmp/torchinductor_root/{said['kernel_hash'][1:3]}/{said['kernel_hash']}.py"
        assert (said["kernel_backend"], said["stream"]) == ("triton", 0)
        assert said["num_warps"] * said["num_stages"] in (4, 16)
        assert "XBLOCK=" in said["kernel_kwargs"]
    named = {op["args"]["External id"]: op["name"] for op in kernels}
    calls = [call for call in of(events, *CALLS) if call["args"].get("External id") in named]
    assert {call["name"] for call in calls} == {"cuLaunchKernel"}
    decodes = [row for row in launches_of(truth).launches if "Torch-Compiled Region: 0/0" in row.chain.ops]
    assert len(decodes) == 2 * 32
    for row in decodes:
        assert row.chain.modules == ("LlamaForCausalLM_0",)
        assert re.fullmatch(r"## Call CompiledFxGraph f[a-z2-7]{52} ##", row.chain.marks[-1])
    assert {row.chain.ops[-1] for row in decodes if row.kernel.startswith("triton")} == set(named.values())
    assert {row.chain.ops[1:] for row in decodes if row.kernel.startswith("nvjet")} == {("aten::mm",)}
