"""Collectives of real captures against the files: bytes, ranks and bandwidths by loops over their events."""

import math
import shutil
from collections import defaultdict
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.conftest import SHARED_DATA
from tests.kineto_files import exact_ns
from tests.truth.raw import timed_events

import inferometer
from inferometer.analyses.launched_by.attribution import attribute
from inferometer.analyses.roofline.table import Roofline, roofline
from inferometer.hardware.known import require_device

TRACES = SHARED_DATA / "traces" / "kineto"
SIZES = {"BFloat16": 2, "Float": 4, "Long": 8}


def path_of(name: str) -> Path:
    path = TRACES / f"{name}.json.gz"
    if not path.exists():
        pytest.skip("needs ../shared/data")
    return path


def roofline_of(path: Path, hardware: str | None = None) -> Roofline:
    with inferometer.open(path) as trace:
        found = attribute(trace, with_op_calls=True)
        device = require_device(hardware) if hardware else None
        return roofline(found, trace, device=device)


@cache
def found_in(name: str) -> Roofline:
    return roofline_of(path_of(name))


def kernels(name: str) -> list[dict[str, Any]]:
    return [each for each in timed_events(path_of(name)) if each["cat"] == "kernel" and "ccl" in each["name"]]


def _adding_up(times: list[int], count: int, total_ns: int) -> list[int]:
    """So many of these times that add up to this, to the nanosecond."""
    return next([*some] for some in combinations(times, count) if sum(some) == total_ns)


@pytest.mark.parametrize(("name", "link"), [("mi300_resnet_ddp", 448e9), ("a100_nccl", 300e9)])
def test_recorded_collectives_have_the_bandwidths_that_nccl_tests_define(name: str, link: float) -> None:
    expected: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for each in kernels(name):
        args = each["args"]
        if "Collective name" in args:
            size = max(args["In msg nelems"], args["Out msg nelems"]) * SIZES[args["dtype"]]
            kind = {"allreduce": "all_reduce", "broadcast": "broadcast"}[args["Collective name"]]
            expected[kind, size, args["Group size"]].append(exact_ns(each["dur"]))
        else:
            expected["other", None, None].append(exact_ns(each["dur"]))
    found = found_in(name)
    inferred = found.collectives.frame["inferred_launches"].sum()
    if inferred:  # those of which nothing is recorded, all of them
        assert inferred == len(expected["other", None, None])
    unrecorded = expected.pop(("other", None, None)) if inferred else []
    every = sum(map(sum, expected.values())) + sum(unrecorded)
    assert len(found.collectives.frame) == len(expected)
    for row in found.collectives.frame.iter_rows(named=True):
        recorded = expected[row["collective"], row["message_bytes"], row["group_size"]]
        times = recorded + _adding_up(unrecorded, row["inferred_launches"], row["total_ns"] - sum(recorded))
        assert (row["launches"], row["total_ns"], row["wait_ns"]) == (len(times), sum(times), None)
        if row["message_bytes"] is None:
            assert (row["bus_bytes_per_s"], bool(row["reason"])) == (None, True)
            continue
        n, algorithm = row["group_size"], row["message_bytes"] / (sum(times) / len(times) / 1e9)
        bus = algorithm * (2 * (n - 1) / n if row["collective"] == "all_reduce" else 1)
        assert row["algorithm_bytes_per_s"] == pytest.approx(algorithm)
        assert row["bus_bytes_per_s"] == pytest.approx(bus)
        assert row["fraction"] == pytest.approx(bus / link)
    assert found.collectives.total_ns == every


@pytest.mark.parametrize(("name", "link"), [("mi300_resnet_ddp", 448e9), ("a100_nccl", 300e9)])
def test_the_rows_of_ops_are_bound_by_the_link(name: str, link: float) -> None:
    times: dict[int, list[int]] = defaultdict(list)
    for each in kernels(name):
        args = each["args"]
        if args.get("Collective name") == "allreduce":
            n, size = args["Group size"], args["In msg nelems"] * SIZES[args["dtype"]]
            times[int(size * 2 * (n - 1) / n)].append(exact_ns(each["dur"]))
    rows = [row for row in found_in(name).frame.to_dicts() if row["op"] == "c10d::allreduce_"]
    assert sorted(row["link_bytes"] for row in rows) == sorted(times)
    unrecorded = [exact_ns(each["dur"]) for each in kernels(name) if "Collective name" not in each["args"]]
    for row in rows:
        recorded = times[row["link_bytes"]]
        measured = recorded + _adding_up(unrecorded, row["inferred_launches"], row["total_ns"] - sum(recorded))
        assert (row["binding"], row["family"], row["calls"]) == ("link", "collectives", len(measured))
        assert row["bound_ns"] == pytest.approx(len(measured) * row["link_bytes"] / link * 1e9)
        assert row["fraction"] == pytest.approx(row["bound_ns"] / sum(measured))


def test_shapes_alone_say_bytes_and_of_gathers_the_ranks() -> None:
    """`a100_idle_64`: 8 ranks by [65536, 384] of [8192, 384]; all-to-alls and all-reduces of unknown ranks.

    Sizes of all-reduces stand in the range around the call alone: one was queued before the window, and has none.
    """
    rows = found_in("a100_idle_64").collectives.frame.to_dicts()
    gathers = {row["message_bytes"]: row for row in rows if row["collective"] in ("all_gather", "reduce_scatter")}
    assert set(gathers) == {65536 * 64 * 4, 65536 * 384 * 4}
    for row in gathers.values():
        assert row["group_size"] == 8
        assert row["bus_bytes_per_s"] == pytest.approx(
            row["message_bytes"] * 7 / 8 * row["calls"] / row["total_ns"] * 1e9
        )
    assert {row["reason"] for row in rows if row["collective"] == "all_to_all"} == {
        "how many ranks take part isn't recorded"
    }
    reduced = {row["message_bytes"]: row["reason"] for row in rows if row["collective"] == "all_reduce"}
    ranges = [each for each in timed_events(path_of("a100_idle_64")) if each["name"] == "nccl:all_reduce"]
    sizes = {4 * each["args"]["Input Dims"][0][0] for each in ranges}
    assert reduced.keys() == {*sizes, None}
    for size, reason in reduced.items():
        assert reason == f"how many {'ranks take part' if size else 'bytes it exchanges'} isn't recorded"
    assert sum(row["total_ns"] for row in rows) == sum(exact_ns(each["dur"]) for each in kernels("a100_idle_64"))


def test_two_of_64_ranks_that_cannot_be_matched_say_so(tmp_path: Path) -> None:
    names = ("rank0_sampled", "rank1_sampled")
    for name in names:
        shutil.copy(path_of(name), tmp_path)
    found = roofline_of(tmp_path, "A100 SXM 80GB")
    rows = {(row["collective"], row["message_bytes"]): row for row in found.collectives.frame.to_dicts()}
    gathered = rows["all_gather", 2**30]
    times = [exact_ns(e["dur"]) for name in names for e in kernels(name) if e["args"]["stream"] == 203]
    assert (gathered["calls"], gathered["devices"], gathered["group_size"]) == (4, 2, 2**30 // 2**24)
    assert (gathered["total_ns"], gathered["wait_ns"], gathered["not_compared"]) == (sum(times), None, "too few")
    assert gathered["bus_bytes_per_s"] == pytest.approx(2**30 * 63 / 64 * 4 / sum(times) * 1e9)
    assert rows["all_reduce", 4 * 26_258_430]["not_compared"] == "ranks don't leave in step"
    assert rows["all_to_all", 419430400]["reason"] == "how many ranks take part isn't recorded"
    assert found.collectives.total_ns == sum(exact_ns(e["dur"]) for name in names for e in kernels(name))


def test_ranges_around_calls_say_bytes_and_kinds_that_names_of_kernels_dont() -> None:
    """Of NCCL's kernel for send and receive, the range says all-to-all; names are all that launches before it have."""
    frame = found_in("v100_graph_branches").collectives.frame
    counts: dict[str, int] = defaultdict(int)
    for each in kernels("v100_graph_branches"):
        counts["all_reduce" if "AllReduce" in each["name"] else "send_recv"] += 1
    launches = dict(frame.group_by("collective").agg(pl.col("launches").sum()).iter_rows())
    assert launches["all_reduce"] == counts["all_reduce"]
    assert launches["all_to_all"] + launches["send_recv"] == counts["send_recv"]

    ranges = [each for each in timed_events(path_of("v100_graph_branches")) if each["name"].startswith("nccl:")]
    sizes = {4 * math.prod(each["args"]["Input Dims"][0]) for each in ranges}
    for row in frame.to_dicts():
        unsaid = "bytes it exchanges" if row["message_bytes"] is None else "ranks take part"
        assert row["reason"] == f"how many {unsaid} isn't recorded"
        assert row["message_bytes"] is None or row["message_bytes"] in sizes
