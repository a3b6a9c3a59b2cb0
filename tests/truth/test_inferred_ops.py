"""Ops that aren't in the file, of real captures: what is inferred, how often wrongly, and what stays unknown."""

import json
from collections import defaultdict
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.kineto_files import exact_ns
from tests.truth.raw import KINDS, timed_events
from tests.truth.test_roofline import CAPTURES, EAGER, GUIDE, TRAINING, modelled, path_of, row_of

import inferometer
from inferometer.analyses.launched_by.attribution import attribute
from inferometer.analyses.roofline.calls import owned_launches
from inferometer.analyses.roofline.inferred import infer_signatures
from inferometer.analyses.roofline.table import Roofline, roofline
from inferometer.hardware.known import require_device


@pytest.mark.parametrize("name", ["h100_qwen1.5-0.5b", "mi300_qwen1.5-0.5b"])
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_what_is_inferred_is_what_the_file_says_where_it_does(name: str, share: float) -> None:
    found, _ = modelled(name)
    launches = owned_launches(found).launches.filter(pl.col("signature").is_not_null())
    hidden = np.random.default_rng(5).random(launches.height) < share
    is_hidden = pl.Series("hidden", hidden)
    veiled = launches.with_columns(
        *(pl.when(~is_hidden).then(column).alias(column) for column in ("signature", "call")),
        pl.when(is_hidden).then(pl.lit("launch_before_window")).otherwise(pl.col("how").cast(pl.String)).alias("how"),
    )

    inferred = infer_signatures(veiled)

    told = inferred.filter(pl.col("inferred")).height
    wrong = (inferred["inferred"] & (inferred["signature"] != launches["signature"])).sum()
    kernels = launches.filter(is_hidden & (launches["kind"] == "kernel")).height
    assert wrong == 0
    assert told >= 0.9 * kernels


def test_calls_that_are_inferred_are_as_many_as_the_model_has_layers() -> None:
    _, found = modelled("h100_qwen1.5-0.5b")
    row = row_of(found, "aten::_flash_attention_forward")

    assert row["inferred_launches"] == 10
    assert row["calls"] == row["launches"] == 34


@cache
def hidden_before(name: str, share: float) -> tuple[int, int]:
    """Kernels that are inferred, and those of them wrongly, if the first part of the launches' calls were lost."""
    with inferometer.open(path_of(name)) as trace:
        owned = owned_launches(attribute(trace, with_op_calls=True)).launches
    launches = owned.filter(pl.col("signature").is_not_null(), pl.col("how").cast(pl.String) == "call")
    is_hidden = launches["start_ns"] < launches["start_ns"].quantile(share)
    veiled = launches.with_columns(
        *(pl.when(~is_hidden).then(column).alias(column) for column in ("signature", "call")),
        pl.when(is_hidden).then(pl.lit("launch_before_window")).otherwise(pl.col("how").cast(pl.String)).alias("how"),
    )
    inferred = infer_signatures(veiled)
    wrong = (inferred["inferred"] & (inferred["signature"] != launches["signature"])).sum()
    return int(inferred["inferred"].sum()), int(wrong)


@pytest.mark.parametrize("name", [*EAGER, *TRAINING])
def test_what_the_first_tenth_of_a_trace_is_is_inferred_rightly(name: str) -> None:
    assert hidden_before(name, 0.1)[1] == 0


def test_the_guide_says_how_much_of_a_hidden_half_is_inferred_wrongly() -> None:
    halves = [hidden_before(name, 0.5) for name in (*EAGER, *TRAINING)]
    told, wrong = (sum(numbers) for numbers in zip(*halves, strict=True))

    said = f"with the first half of their calls hidden, {told:,} kernels are inferred, {wrong} of them wrongly"
    assert said in " ".join(GUIDE.read_text("utf-8").split())


def test_collectives_before_the_window_are_told_by_those_that_follow() -> None:
    """All of one kernel, without a grid: two broadcasts and two sums of gradients in turn, as their times say, too."""
    name, numbers = "mi300_resnet_ddp", (8_816_192, 9_600, 20, 2_873_320, 8_816_192)
    kernels = sorted(
        (each for each in timed_events(path_of(name)) if each["cat"] == "kernel" and "nccl" in each["name"]),
        key=lambda each: each["ts"],
    )
    before, known = kernels[:5], kernels[5:]
    assert not any("grid" in each["args"] or "In msg nelems" in each["args"] for each in before)
    times: dict[int, list[int]] = defaultdict(list)
    for each in known:
        times[each["args"]["In msg nelems"]].append(exact_ns(each["dur"]))
    for number, each in zip(numbers, before, strict=True):
        assert 0.85 * min(times[number]) <= exact_ns(each["dur"]) <= 1.15 * max(times[number])

    rows = modelled(name)[1].frame.filter(pl.col("op").is_in(["c10d::broadcast_", "c10d::allreduce_"]))
    got = {json.loads(row["input_dims"])[0][0][0]: row["inferred_launches"] for row in rows.to_dicts()}
    assert got == {number: numbers.count(number) for number in numbers}
    assert rows["reason"].is_null().all()
    assert rows["total_ns"].sum() == sum(exact_ns(each["dur"]) for each in kernels)


def by_why(found: Roofline) -> dict[str, int]:
    """Time of all launches, by why its work isn't known."""
    sums: dict[str, int] = defaultdict(int)
    for row in found.frame.to_dicts():
        reason = row["reason"] or ""
        if not reason:
            why = "modelled"
        elif "graph's replay" in reason:
            why = "graphs"
        elif reason.startswith("queued before"):
            why = "before"
        else:
            why = "no sizes"
        sums[why] += row["total_ns"]
    return sums


@pytest.mark.parametrize(("name", "partly", "too_fast"), [("rank0_sampled", 13, 3), ("rank1_sampled", 10, 2)])
def test_calls_of_sampled_launches_that_lack_those_that_compute_have_no_bound(
    name: str, partly: int, too_fast: int
) -> None:
    """Read one by one: products of which a memset or the sum of parts is there alone, sums with a memset."""
    with inferometer.open(path_of(name)) as trace:
        device = require_device("A100 SXM 80GB")
        frame = roofline(attribute(trace, with_op_calls=True), trace, device=device).frame

    rows = frame.filter(pl.col("reason").str.starts_with("the launches that compute it aren't in the file"))
    assert rows.height == partly
    assert set(rows["op"]) <= {"aten::mm", "aten::addmm", "aten::sum"}
    assert all(kernel.startswith("Memset") or "splitKreduce" in kernel for kernel in rows["kernel"])
    assert frame.filter(pl.col("fraction") > 1).height == too_fast


@pytest.mark.parametrize("name", ["a100_idle_64", "v100_graph_branches"])
def test_no_three_kernels_in_a_row_of_a_graph_run_outside_of_it(name: str) -> None:
    """So no eager run of the file says what its graphs' kernels are; a capture would."""
    timed = timed_events(path_of(name))
    calls = {
        each["args"]["correlation"]: "GraphLaunch" in each["name"]
        for each in timed
        if each["cat"] == "cuda_runtime" and "correlation" in each["args"]
    }
    streams: dict[Any, list[tuple[bool | None, tuple[Any, ...]]]] = defaultdict(list)
    for each in sorted((each for each in timed if each["cat"] == "kernel"), key=lambda each: each["ts"]):
        args = each["args"]
        shape = (tuple(args["grid"]), tuple(args["block"]), args["registers per thread"], args["shared memory"])
        streams[args["device"], args["stream"]].append((calls.get(args["correlation"]), (each["name"], *shape)))
    runs: dict[bool | None, set[Any]] = {True: set(), False: set(), None: set()}
    for launches in streams.values():
        for three in zip(launches, launches[1:], launches[2:], strict=False):
            if len({is_replayed for is_replayed, _ in three}) == 1:
                runs[three[0][0]].add(tuple(kind for _, kind in three))
    assert runs[True]
    assert not runs[True] & runs[False]

    replayed = sum(
        exact_ns(each["dur"]) for each in timed if each["cat"] in KINDS and calls.get(each["args"].get("correlation"))
    )
    assert by_why(modelled(name)[1])["graphs"] == replayed


def test_no_op_of_a_real_trace_says_which_tensors_it_reads() -> None:
    """Recorded of ops, but collectives and compiled kernels: sizes, types, strides, values, and numbers of calls."""
    of_calls = {
        "External id",
        "Record function id",
        "Ev Idx",
        "Profiler Event Index",
        "Sequence number",
        "Fwd thread id",
    }
    arguments = {"Input Dims", "Input type", "Input Strides", "Concrete Inputs"}
    others = {"Trace name", "Trace iteration", "Module Hierarchy", "Call stack", "finished"}
    for name in (*EAGER, *CAPTURES, *CAPTURES.values(), *TRAINING):
        ops = [each["args"] for each in timed_events(path_of(name)) if each["cat"] == "cpu_op"]
        plain = [args for args in ops if "Collective name" not in args and "kernel_file" not in args]
        assert plain
        assert {key for args in plain for key in args} <= of_calls | arguments | others


def test_the_guide_says_what_of_these_traces_is_not_modelled() -> None:
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in GUIDE.read_text("utf-8").splitlines()]
    said = {row[0].split("`")[1]: row[1:] for row in rows if len(row) == 6 and row[0].startswith("`")}

    expected = {}
    for name in ("a100_idle_64", "v100_graph_branches", "mi300_resnet_ddp"):
        found = modelled(name)[1]
        sums = by_why(found)
        parts = (sums["modelled"], found.times.inferred_ns, sums["graphs"], sums["before"], sums["no sizes"])
        assert sum(sums.values()) == found.total_ns
        expected[name] = [f"{100 * part / found.total_ns:.1f} %" for part in parts]
    assert said == expected
