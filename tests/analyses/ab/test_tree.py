"""The paths of all arms as one tree: joined by name, in the order of the calls, layers pooled."""

import polars as pl
import pytest
from tests.analyses.ab.runs import Arms, Call, measured

from inferometer.analyses.ab.tree import PathTree, join_paths, merge_orders


def tree_of(arms: Arms, *, pool_layers: bool = True) -> PathTree:
    found = measured(arms)
    return join_paths(found.calls, found.arms, pool_layers=pool_layers)


@pytest.mark.parametrize(
    ("orders", "merged"),
    [
        ((["a", "b"], ["a", "b"]), "ab"),
        ((["a", "m", "b"], ["a", "n", "b"]), "amnb"),
        ((["b"], ["z", "b", "y"]), "zby"),
        ((["a", "x"], ["a", "y"], ["y", "x"]), "ayx"),  # the third arm settles what the others leave open
        ((["a", "b", "c"], ["c", "a"]), "abc"),  # where they contradict each other, the first is right
        (([], ["a"]), "a"),
        ((), ""),
    ],
)
def test_orders_merge_without_breaking_any_that_needs_no_breaking(orders: list[list[str]], merged: str) -> None:
    assert "".join(merge_orders(orders)) == merged


def test_a_path_of_one_arm_stands_where_that_arm_calls_it_and_callers_come_first() -> None:
    base = Call("root", 1, [Call("z", 1), Call("norm", 1), Call("a", 1, [Call("q", 1)])])
    candidate = Call("root", 1, [Call("z", 1), Call("add_norm", 1), Call("a", 1, [Call("k", 1), Call("q", 1)])])
    tree = tree_of({"torch": [base], "triton": [candidate]})
    keys = ["root", "root.z", "root.norm", "root.add_norm", "root.a", "root.a.k", "root.a.q"]
    assert [node.key for node in tree.nodes] == keys
    assert [node.depth for node in tree.nodes] == [0, 1, 1, 1, 1, 2, 2]
    assert [node.parent for node in tree.nodes] == [None, 0, 0, 0, 0, 4, 4]
    assert tree.ends == [7, 2, 3, 4, 7, 6, 7]


def test_layers_are_one_path_and_their_numbers_are_kept() -> None:
    layers = [Call(f"layers.{i}", 1, [Call("mlp", 1, [Call("experts.7", 1)])]) for i in (0, 1, 10)]
    run = {"torch": [Call("forward", 1, [*layers, Call("v1.5_head", 1)])]}
    pooled = tree_of(run)
    keys = [
        "forward",
        "forward.layers.*",
        "forward.layers.*.mlp",
        "forward.layers.*.mlp.experts.*",
        "forward.v1.5_head",
    ]
    assert [node.key for node in pooled.nodes] == keys
    deepest = pooled.found.filter(pl.col("node") == 3)
    assert deepest["layer"].to_list() == ["0.7", "1.7", "10.7"]
    apart = tree_of(run, pool_layers=False)
    assert [node.key for node in apart.nodes][1] == "forward.layers.0"
    assert len(apart.nodes) == 11
    assert apart.found["layer"].null_count() == 11


def test_a_path_whose_caller_never_ended_stands_by_itself() -> None:
    calls = measured({"torch": [Call("root", 1, [Call("forward", 1, [Call("mlp", 1)])])]}).calls
    tree = join_paths(calls.filter(pl.col("path") != "root.forward"), ["torch"], pool_layers=True)
    assert [(node.key, node.parent, node.depth) for node in tree.nodes] == [
        ("root", None, 0),
        ("root.forward.mlp", None, 0),
    ]


def test_no_calls_make_no_tree() -> None:
    assert tree_of({"torch": []}).nodes == []
