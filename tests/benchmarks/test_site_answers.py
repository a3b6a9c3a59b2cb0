"""The gate for who launched it passes what is right, and refuses time that is lost, moved, or under another op."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from benchmarks.answers import WrongAnswer
from benchmarks.site_answers import check_captured, check_launches, check_launches_by_span, check_tree
from benchmarks.trace_files import Truth

MM, SILU, COPY = "gemm", "silu_kernel", "Memcpy HtoD"
EAGER = Truth(
    launches=3,
    kernel_ns=70,
    events=0,
    rows={"launches": 4},
    tables={
        "kernels": {MM: {"count": 2, "total_ns": 60}, SILU: {"count": 1, "total_ns": 10}},
        "ops": {"mm": {MM: {"count": 2, "total_ns": 60}}, "silu": {SILU: {"count": 1, "total_ns": 10}}},
        "spans": {
            "step": {"own_launches": 0, "own_summed_ns": 0},
            "layer": {"own_launches": 4, "own_summed_ns": 75},
        },
        "devices": {"gpu:0": {"summed_ns": 75}},
        "replays": {},
    },
)
GRAPH = replace(  # silu runs in a replay
    EAGER,
    tables={
        **EAGER.tables,
        "ops": {"mm": EAGER.tables["ops"]["mm"]},
        "replays": {"cudaGraphLaunch": {"launches": 1, "summed_ns": 10}},
    },
)
MM_ROW = ("linear > mm", (MM, 2, 60))
SILU_ROW = ("silu", (SILU, 1, 10))
COPY_ROW = ("to > copy_", (COPY, 1, 5))
NODES = (
    (None, "span", "step", 4, 0, 75),
    (0, "op", "mm", 2, 0, 60),
    (1, "kernel", MM, 2, 60, 60),
    (0, "kernel", SILU, 1, 10, 10),
    (0, "kernel", COPY, 1, 5, 5),
)


def launches(*rows: tuple[str, tuple[str, int, int]], how: dict[str, int], **other: int) -> bytes:
    found = [
        {"key": key, "count": count, "total_ns": ns, "kernels": [{"kernel": kernel, "count": count, "total_ns": ns}]}
        for key, (kernel, count, ns) in rows
    ]
    attributed = sum(ns for _, (_, _, ns) in rows)
    sums = {"total_ns": 75, "attributed_ns": attributed, "unattributed_ns": 75 - attributed}
    return json.dumps({**sums, "by_how": how, "rows": found, **other}).encode()


def tree(*nodes: tuple[int | None, str, str, int, int, int]) -> bytes:
    columns = ("parent", "kind", "name", "count", "self_ns", "total_ns")
    rows = [{"node": number, **dict(zip(columns, node, strict=True))} for number, node in enumerate(nodes)]
    return json.dumps({"total_ns": 75, "nodes": rows}).encode()


def test_right_ops_ranges_and_trees_pass() -> None:
    found = check_launches(launches(MM_ROW, SILU_ROW, COPY_ROW, how={"call": 75}), EAGER)
    assert found.agreed == "3 chains of ops, 100.0% of the time"
    check_launches(launches(MM_ROW, SILU_ROW, how={"call": 70, "outside": 5}), EAGER)
    check_launches(launches(MM_ROW, how={"call": 60, "graph_replay": 10, "outside": 5}), GRAPH)
    check_launches_by_span(launches(("layer", ("any", 4, 75)), how={"call": 75}), EAGER)
    assert check_tree(tree(*NODES), EAGER).agreed == "5 nodes"
    captured = launches(MM_ROW, SILU_ROW, how={"call": 60, "graph_alignment": 4, "graph_node": 6, "outside": 5})
    assert check_captured(captured, GRAPH, EAGER).agreed == "100.0% of the replays' time"


@pytest.mark.parametrize(
    "output",
    [
        launches(MM_ROW, how={"call": 60, "outside": 15}),
        launches(MM_ROW, ("mm", SILU_ROW[1]), how={"call": 70, "outside": 5}),
        launches(("mm", (MM, 3, 60)), SILU_ROW, how={"call": 70, "outside": 5}),
        launches(MM_ROW, ("silu", (SILU, 1, 11)), how={"call": 71, "outside": 4}),
        launches(MM_ROW, SILU_ROW, how={"call": 70}),
        launches(MM_ROW, SILU_ROW, how={"call": 70, "outside": 5}, unattributed_ns=6),
        launches(MM_ROW, SILU_ROW, how={"call": 70, "outside": 4}, total_ns=74),
        launches(MM_ROW, SILU_ROW, how={"call": 60, "graph_replay": 10, "outside": 5}),
        b"Traceback",
    ],
    ids=[
        "an op missing",
        "another op",
        "a launch too many",
        "a ns moved",
        "reasons off",
        "rest off",
        "sum off",
        "a replay in an eager run",
        "no JSON",
    ],
)
def test_wrong_ops_are_refused(output: bytes) -> None:
    with pytest.raises(WrongAnswer):
        check_launches(output, EAGER)


@pytest.mark.parametrize("row", [("layer", ("any", 3, 75)), ("layer", ("any", 4, 74)), ("step", ("any", 4, 75))])
def test_wrong_ranges_are_refused(row: tuple[str, tuple[str, int, int]]) -> None:
    ns = row[1][2]
    with pytest.raises(WrongAnswer, match="span: expected"):
        check_launches_by_span(launches(row, how={"call": ns, "outside": 75 - ns}), EAGER)


def test_replays_need_ops_and_those_of_the_eager_run() -> None:
    wrong = launches(MM_ROW, ("mm", SILU_ROW[1]), how={"call": 60, "graph_alignment": 10, "outside": 5})
    with pytest.raises(WrongAnswer, match="expected silu, found mm of silu_kernel"):
        check_captured(wrong, GRAPH, EAGER)
    few = launches(MM_ROW, ("silu", (SILU, 1, 9)), how={"call": 60, "graph_node": 9, "graph_replay": 1, "outside": 5})
    with pytest.raises(WrongAnswer, match="expected ops for 95% of 10 replayed ns, found 9"):
        check_captured(few, GRAPH, EAGER)
    with pytest.raises(WrongAnswer, match="of 0 replayed ns"):
        check_captured(launches(MM_ROW, how={"call": 60, "outside": 15}), EAGER, EAGER)


def test_a_kernel_of_several_ops_may_have_any_of_them_in_replays() -> None:
    ops = {**EAGER.tables["ops"], "gelu": {MM: {"count": 1, "total_ns": 20}}}
    eager = replace(EAGER, tables={**EAGER.tables, "ops": ops})
    output = launches(("gelu", MM_ROW[1]), SILU_ROW, how={"call": 60, "graph_node": 10, "outside": 5})
    with pytest.raises(WrongAnswer, match="expected mm, found gelu"):
        check_captured(output, GRAPH, EAGER)
    ops["mm"] = {MM: {"count": 1, "total_ns": 40}}
    check_captured(output, GRAPH, eager)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({0: (None, "span", "step", 4, 0, 74)}, "total_ns of the outermost"),
        ({1: (0, "op", "mm", 2, 1, 60)}, "total_ns of node 1, mm"),
        ({4: (0, "op", COPY, 1, 5, 5)}, "expected kernels as the leaves"),
        ({4: (3, "kernel", COPY, 1, 5, 5), 3: (0, "kernel", SILU, 1, 10, 15)}, "expected kernels as the leaves"),
        ({2: (1, "kernel", MM, 1, 60, 60)}, "launches: expected 4"),
        ({2: (1, "kernel", MM, 1, 60, 60), 3: (0, "kernel", SILU, 2, 10, 10)}, "kernel: expected"),
    ],
    ids=["the outermost", "a node", "a leaf of another kind", "a kernel's callee", "a launch lost", "launches moved"],
)
def test_trees_that_do_not_add_up_are_refused(change: dict[int, Any], said: str) -> None:
    nodes = [change.get(number, node) for number, node in enumerate(NODES)]
    with pytest.raises(WrongAnswer, match=said):
        check_tree(tree(*nodes), EAGER)
