"""A capture is the host's side of the program that a replay runs; edits to replays are as asked for."""

from __future__ import annotations

import io
import re
from collections import Counter, defaultdict
from dataclasses import replace

import pytest
from tests.tools.kineto_events import CALLS, HOST, WORK, Event, enclosing, end, of, read, start
from tools.kineto_maker import CapturedCall, LaunchTruth, LaunchTruths, Options, make_trace, write_trace

BATCHES = (1, 8, 32, 128)
CAPTURE = Options(layers=2, mode="capture", batches=BATCHES)
GRAPH = Options(layers=2, mode="graph", batches=BATCHES, steps=10, prefill_every=5, graph_node_ids=True)


def make(options: Options) -> tuple[list[Event], LaunchTruths]:
    out = io.BytesIO()
    truth = write_trace(options, out, launches=True)
    assert truth.by_launch is not None
    return read(out.getvalue())["traceEvents"], truth.by_launch


def by_batch(truth: LaunchTruths) -> dict[int, list[CapturedCall]]:
    calls = defaultdict(list)
    for call in truth.captured_calls:
        calls[call.batch].append(call)
    return calls


def by_replay(truth: LaunchTruths) -> dict[int, list[LaunchTruth]]:
    kernels = defaultdict(list)
    for row in truth.launches:
        if row.graph_id is not None:
            kernels[row.correlation].append(row)
    return kernels


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_captured_calls_are_the_nodes_of_the_replay_in_order(compiled: bool) -> None:
    _, captured = make(replace(CAPTURE, compiled=compiled))
    events, replayed = make(replace(GRAPH, compiled=compiled))
    works = {(work["args"]["correlation"], work["args"].get("graph node id")): work for work in of(events, "kernel")}
    calls, kernels = by_batch(captured), by_replay(replayed)
    assert list(calls) == list(BATCHES)
    assert [replay.batch for replay in replayed.replays] == [*BATCHES, *BATCHES]  # prefills take no turn
    for replay in replayed.replays:
        assert replay.kernels == len(calls[replay.batch]) == len(kernels[replay.correlation])
        for call, row in zip(calls[replay.batch], kernels[replay.correlation], strict=True):
            work = works[row.correlation, row.node]
            assert (call.kernel, call.node, call.captured) == (row.kernel, row.node, row.captured)
            assert (call.kernel, list(call.grid), list(call.block)) == (
                work["name"],
                work["args"]["grid"],
                work["args"]["block"],
            )
            assert work["args"]["graph id"] == row.graph_id == replay.graph_id
    assert len({replay.graph_id for replay in replayed.replays}) == len(BATCHES)


def test_a_captured_call_names_its_kernel_and_has_no_work() -> None:
    events, truth = make(replace(CAPTURE, threads=2))
    worked = {work["args"]["correlation"] for work in of(events, *WORK)}
    named = [call for call in of(events, *CALLS) if "kernel" in call["args"]]
    fields = ("kernel", "correlation", "grid", "block")
    found = [
        (start(call), *(call["args"][field] for field in fields))
        for call in named
        if call["args"]["correlation"] not in worked
    ]
    told = [
        (call.start_ns, call.kernel, call.correlation, list(call.grid), list(call.block))
        for call in truth.captured_calls
    ]
    assert found == told
    assert len(named) - len(found) == 2 * len(BATCHES) + 12 * len(BATCHES)  # PyTorch's seeds, and the second thread


def test_chains_of_a_capture_end_in_the_captured_program() -> None:
    events, truth = make(CAPTURE)
    around_call = {
        event["args"]["correlation"]: [outer["name"] for outer in around if outer["cat"] == "python_function"]
        for event, around in enclosing(of(events, *HOST))
        if event["cat"] in CALLS
    }
    for call in truth.captured_calls:
        frames, captured = call.chain.frames, call.captured
        assert list(frames) == around_call[call.correlation]
        assert captured.frames[0] == "nn.Module: LlamaForCausalLM_0"
        assert frames[-len(captured.frames) :] == captured.frames
        assert (call.chain.ops, call.chain.modules) == (captured.ops, captured.modules)
        assert call.chain.marks == (f"capture_{call.batch}_DECODE",)


def test_calls_are_captured_between_begin_and_end() -> None:
    events, truth = make(CAPTURE)
    captured = {call.correlation: call.batch for call in truth.captured_calls}
    marks = of(events, "user_annotation")
    assert [mark["name"] for mark in marks] == [f"capture_{batch}_DECODE" for batch in BATCHES]
    for mark, batch in zip(marks, BATCHES, strict=True):
        calls = [call for call in of(events, *CALLS) if start(mark) < start(call) < end(mark)]
        names = [call["name"] for call in calls]
        begin, close = names.index("hipStreamBeginCapture"), names.index("hipStreamEndCapture")
        assert names[close + 1 :] == [
            "hipGraphGetNodes",
            "hipDriverGetVersion",
            "hipGraphInstantiateWithFlags",
            "hipGraphDestroy",
        ]
        inside = {call["args"]["correlation"] for call in calls[begin:close]}
        assert inside >= {number for number, of_batch in captured.items() if of_batch == batch}
        assert sum("kernel" in call["args"] for call in calls[begin:close]) == 32
        assert names[:begin] == ["hipDeviceSynchronize", "hipLaunchKernel", "hipLaunchKernel"]


def test_graphs_of_different_batch_sizes_differ_in_grids_and_tiles() -> None:
    _, truth = make(CAPTURE)
    calls = by_batch(truth)
    shapes = {tuple((call.kernel, call.grid) for call in calls[batch]) for batch in BATCHES}
    assert len(shapes) == len(BATCHES)
    tiles = {
        batch: {match[1] for call in calls[batch] if (match := re.match(r"nvjet_tst_\d+x(\d+)_", call.kernel))}
        for batch in BATCHES
    }
    assert tiles == {1: {"8"}, 8: {"8"}, 32: {"32"}, 128: {"128"}}


def test_a_capture_of_one_batch_has_the_names_of_a_replay_of_it() -> None:
    """Without `batches`, names don't depend on the batch size: so it was before there were batches."""
    _, captured = make(Options(layers=1, mode="capture", batch=100))
    _, replayed = make(Options(layers=1, mode="graph", batch=100, steps=1, prefill_every=0))
    names = [row.kernel for row in replayed.launches if row.graph_id is not None]
    assert [call.kernel for call in captured.captured_calls] == names
    assert any("x32_" in name for name in names)


def test_hip_calls_are_laid_out_as_roctracer_has_them() -> None:
    text = make_trace(CAPTURE).decode()
    assert '"roctracer_version": 4.1,\n  "hip_runtime_version"' in text
    call = text[text.index('"name": "hipExtModuleLaunchKernel"') :].partition("\n  }")[0]
    assert re.fullmatch(
        r""""name": "hipExtModuleLaunchKernel", "pid": 25286, "tid": 25286,
    "ts": \d+\.\d{3}, "dur": \d+\.\d{3},
    "args": \{
      "External id": \d+,      "kernel": "nvjet_tst_64x8_\w+", "cid": 65, "correlation": \d+,\
      "stream": "0x[0-9a-f]+",      "grid": \[132, 1, 1\],      "block": \[384, 1, 1\],      "shared memory": \d+
    \}""".replace("\\\n", ""),
        call,
    )


def test_lost_records_leave_the_others_as_they_are() -> None:
    _, whole = make(GRAPH)
    _, truth = make(replace(GRAPH, drop_kernels=0.25))
    lost = {(replay.correlation, node) for replay in truth.replays for node in replay.dropped}
    assert truth.launches == [row for row in whole.launches if (row.correlation, row.node) not in lost]
    total = sum(replay.kernels for replay in truth.replays)
    assert 0.15 * total < len(lost) < 0.35 * total
    assert len({replay.dropped for replay in truth.replays}) == len(truth.replays)


def test_added_kernels_are_no_part_of_the_captured_program() -> None:
    events, truth = make(replace(GRAPH, add_kernels=0.25))
    programs = {
        batch: [(call.kernel, call.captured) for call in calls] for batch, calls in by_batch(make(CAPTURE)[1]).items()
    }
    rows = by_replay(truth)
    names = Counter[bool]()
    for replay in truth.replays:
        kernels, program = rows[replay.correlation], programs[replay.batch]
        assert [(row.kernel, row.captured) for row in kernels if row.captured is not None] == program
        added = [place for place, row in enumerate(kernels) if row.captured is None]
        assert len(added) == replay.added == len(kernels) - replay.kernels
        assert [kernels[place].node for place in added] == [replay.kernels + 1 + n for n in range(replay.added)]
        for place in added:
            near = kernels[place - 1 : place] + kernels[place + 1 : place + 2]
            assert kernels[place].kernel not in {row.kernel for row in near if row.captured is not None}
            names[kernels[place].kernel in {name for name, _ in program}] += 1
    total = sum(replay.kernels for replay in truth.replays)
    assert 0.15 * total < names.total() < 0.35 * total
    assert min(names[True], names[False]) > 5  # both kinds of stranger occur
    nodes = Counter((work["args"]["correlation"], work["args"].get("graph node id")) for work in of(events, "kernel"))
    assert max(nodes.values()) == 1


def test_everything_can_be_lost_and_every_place_can_have_a_stranger() -> None:
    _, nothing = make(replace(GRAPH, drop_kernels=1.0))
    assert [len(replay.dropped) for replay in nothing.replays] == [32] * 8
    assert by_replay(nothing) == {}
    _, doubled = make(replace(GRAPH, add_kernels=1.0, drop_kernels=1.0))
    assert {len(rows) for rows in by_replay(doubled).values()} == {32}
    assert all(row.captured is None for row in doubled.launches)


def test_another_seed_loses_other_records() -> None:
    options = replace(GRAPH, drop_kernels=0.1)
    lost = [[replay.dropped for replay in make(replace(options, seed=seed))[1].replays] for seed in (7, 7, 8)]
    assert lost[0] == lost[1] != lost[2]


def test_a_capture_says_nothing_of_steps() -> None:
    assert make_trace(replace(CAPTURE, steps=3)) == make_trace(CAPTURE)
