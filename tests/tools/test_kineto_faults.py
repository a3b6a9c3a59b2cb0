"""Each planted fault is in the file as it is reported to be, counted from the JSON; without one, nothing of it is."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from itertools import pairwise
from statistics import median
from typing import Any, get_args

import pytest
from tests.tools.kineto_events import CALLS, Event, enclosing, end, of, read, start
from tools.kineto_maker import Options, make_trace, write_trace
from tools.kineto_maker.faults import FAULTS, Fault, rule_of

LAYERS, STEPS = 2, 4
SMALL = Options(steps=STEPS, layers=LAYERS, prefill_every=0, lean=True)


def kernels(events: list[Event], words: str = "") -> list[Event]:
    return [event for event in of(events, "kernel") if words in event["name"]]


def ns(events: list[Event]) -> list[int]:
    return [end(event) - start(event) for event in events]


def made(fault: Fault, **changes: Any) -> list[Event]:
    options = replace(SMALL, world=FAULTS[fault].world, **changes)
    return read(make_trace(replace(options, fault=fault)))["traceEvents"]


def usual(**changes: Any) -> list[Event]:
    return read(make_trace(replace(SMALL, **changes)))["traceEvents"]


def test_every_fault_has_words_and_a_rule() -> None:
    assert set(FAULTS) == set(get_args(Fault)) - {"none"}
    assert len({planted.rule for planted in FAULTS.values()}) == len(FAULTS)
    assert rule_of("none") is None


@pytest.mark.parametrize("fault", FAULTS)
def test_the_truth_names_fault_and_rule(fault: Fault) -> None:
    planted = FAULTS[fault]
    options = replace(SMALL, steps=1, layers=1, mode=planted.modes[0], world=planted.world, batches=(8, 4), fault=fault)
    truth = write_trace(options, io.BytesIO())
    assert (truth.fault, truth.rule) == (fault, planted.rule)
    assert truth.as_json()["rule"] == planted.rule


def test_no_fault_has_no_rule() -> None:
    assert write_trace(replace(SMALL, steps=1), io.BytesIO()).as_json()["rule"] is None


@pytest.mark.parametrize(("mode", "items"), [("eager", 2 * LAYERS * STEPS), ("graph", 3 * SMALL.batch * STEPS)])
def test_sync_points_read_two_numbers_a_layer_or_three_a_request(mode: Any, items: int) -> None:
    chains = [
        [event["name"] for event in around if event["cat"] == "cpu_op"]
        for call, around in enclosing(of(made("sync-points", mode=mode), "cpu_op", *CALLS))
        if call["name"] == "cudaStreamSynchronize"
    ]
    assert chains == [["aten::item", "aten::_local_scalar_dense"]] * items


def test_a_launch_storm_is_512_tiny_kernels_a_step() -> None:
    stormy, calm = kernels(made("launch-storm", mode="graph")), kernels(usual(mode="graph"))
    assert len(stormy) - len(calm) == 512 * STEPS
    assert median(ns(stormy)) < 2_000


def test_graph_breaks_replay_every_second_batch_size_alone() -> None:
    events = made("graph-breaks", mode="graph", batches=(8, 16, 32, 64))
    calls = [call["name"] for call in of(events, *CALLS)]
    assert calls.count("cudaGraphLaunch") == STEPS / 2
    assert len(kernels(events)) == len(kernels(usual(mode="graph", batches=(8, 16, 32, 64))))


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_casts_are_four_a_layer(mode: Any) -> None:
    casts = kernels(made("casts", mode=mode), "copy_kernel_cuda")
    assert len(casts) - len(kernels(usual(mode=mode), "copy_kernel_cuda")) == 4 * LAYERS * STEPS
    names = [("float" if "LoadWithCast" in event["name"] else "bf16") for event in casts]
    assert re.search("(float bf16 ){2}", " ".join(names))


def test_an_unfused_norm_is_eight_kernels_and_nine_with_the_sum() -> None:
    events, fused = made("unfused-norm"), usual()
    assert kernels(events, "RMSNorm") == []
    norms = len(kernels(fused, "RMSNorm"))
    assert len(kernels(events)) - len(kernels(fused)) == 9 * norms - STEPS - norms  # the first norm adds nothing


def test_split_k_sums_cost_as_much_as_products() -> None:
    split, few = (sum(ns(kernels(events, "splitKreduce"))) for events in (made("split-k"), usual()))
    assert split > 3 * few


def test_an_exposed_copy_is_64_mb_on_the_stream_that_computes() -> None:
    copies = [event["args"] for event in of(made("exposed-copy"), "gpu_memcpy") if event["args"]["bytes"] == 64_000_000]
    assert [copy["stream"] for copy in copies] == [7] * STEPS


def test_slow_collectives_take_several_times_as_long() -> None:
    slow, quick = (
        median(ns(kernels(events, "cross_device_reduce"))) for events in (made("slow-collectives"), usual(world=2))
    )
    assert slow > 4 * quick


@pytest.mark.parametrize("mode", ["eager", "graph"])
@pytest.mark.parametrize("fault", ["none", "slow-rank"])
def test_ranks_in_lockstep_leave_each_collective_together(mode: Any, fault: Fault) -> None:
    options = replace(SMALL, world=2, lockstep=True, mode=mode, fault=fault, prefill_every=2)
    ranks = [read(make_trace(replace(options, rank=rank)))["traceEvents"] for rank in range(2)]
    both = [[end(e) for e in kernels(events) if re.search("cross_device|nccl", e["name"])] for events in ranks]
    assert both[0] == both[1]
    assert len(both[0]) == STEPS * (2 * LAYERS + 1)
    products = [sum(ns(kernels(events, "nvjet"))) for events in ranks]
    assert products[1] / products[0] == pytest.approx(1.3 if fault == "slow-rank" else 1.0, rel=1e-3)
    waits = [sum(ns(kernels(events, "cross_device"))) for events in ranks]
    assert (waits[0] > 2 * waits[1]) == (fault == "slow-rank")


def test_without_lockstep_a_rank_waits_for_nobody() -> None:
    options = replace(SMALL, world=2)
    assert make_trace(options) != make_trace(replace(options, lockstep=True))
    assert make_trace(replace(SMALL, lockstep=True)) == make_trace(SMALL)


def test_one_layer_has_a_slow_product() -> None:
    slow, quick = (ns(kernels(events, "4x1_v_bz_splitK")) for events in (made("slow-layer"), usual()))
    longer = [place for place, (one, other) in enumerate(zip(slow, quick, strict=True)) if one > 2 * other]
    assert len(longer) == STEPS
    assert {place % (2 * LAYERS) for place in longer} == {2 * (LAYERS // 2) + 1}


def test_attention_grows_by_a_twentieth_a_step() -> None:
    grown, flat = (ns(kernels(events, "BatchDecode")) for events in (made("attention-growth"), usual()))
    factors = [one / other for one, other in zip(grown, flat, strict=True)]
    assert factors == pytest.approx([1 + 0.05 * (place // LAYERS) for place in range(STEPS * LAYERS)], rel=1e-3)


def test_only_the_first_step_warms_up() -> None:
    out = io.BytesIO()
    truth = write_trace(replace(SMALL, fault="warm-up", mode="graph"), out)
    assert len(kernels(read(out.getvalue())["traceEvents"], "_matmul_config")) == 8 * 20
    first, *others = (step.end_ns - step.start_ns for step in truth.steps)
    assert first > 20 * max(others)
    assert [step.fault_ns > 0 for step in truth.steps] == [True, False, False, False]


def test_one_block_reduces_for_all() -> None:
    launches = kernels(made("low-occupancy"), "ArgMaxOps")
    assert [event["args"]["grid"] for event in launches] == [[1, 1, 1]] * STEPS
    assert min(ns(launches)) > 500_000
    assert kernels(usual(), "ArgMaxOps") == []


def test_streams_that_wait_for_each_other_never_work_at_once() -> None:
    work = sorted(kernels(made("serial-stream")), key=start)
    assert {event["args"]["stream"] for event in work} == {7, 28}
    assert all(end(one) <= start(other) for one, other in pairwise(work))
    assert sum(event["args"]["stream"] == 28 for event in work) == 4 * LAYERS * STEPS


def test_repeated_work_is_a_draw_for_each_request() -> None:
    again, once = (len(kernels(events, "TopKTopPSampling")) for events in (made("repeated-work"), usual()))
    assert (again, once) == (STEPS * SMALL.batch, STEPS)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"fault": "serial-stream", "mode": "graph"}, "fault serial-stream: expected mode eager, found graph"),
        ({"fault": "graph-breaks", "batches": (8, 4)}, "fault graph-breaks: expected mode graph, found eager"),
        ({"fault": "graph-breaks", "mode": "graph"}, "fault graph-breaks: expected 2 or more batches"),
        ({"fault": "slow-rank"}, "fault slow-rank: expected a world of 2 or more, found 1"),
    ],
)
def test_a_fault_that_cannot_be_there_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Options(**wrong)
