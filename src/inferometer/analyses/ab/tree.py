"""The call paths of all arms as one tree: joined by name, layers pooled, in the order of the calls.

A path that only one arm calls stands where that arm calls it. Names are joined from the root on, never cut at dots:
a layer is one name with a dot in it (`layers.3`).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import polars as pl

_LAYER = re.compile(r"(.+)\.(\d+)")
_SEPARATOR = "."


@dataclass(frozen=True)
class Node:
    """One path. `parent` is an index into the tree, None for a root; `key` is the names from the root, joined by dots.

    `operator`: None where it is no call of an operator.
    """

    key: str
    name: str
    parent: int | None
    depth: int
    operator: str | None


@dataclass(frozen=True)
class PathTree:
    """All paths of all arms, callers before what they call, in the order of the calls.

    Attributes:
        nodes: The paths.
        found: `arm`, `path` as measured, `node`: its index, `layer`: its numbers of layers joined by dots where the
            node pools them, else null.
    """

    nodes: Sequence[Node]
    found: pl.DataFrame

    @cached_property
    def ends(self) -> Sequence[int]:
        """For each node the index after the last one below it: it and those below are `range(node, ends[node])`."""
        ends = [0] * len(self.nodes)
        for i in range(len(self.nodes) - 1, -1, -1):
            ends[i] = max(ends[i], i + 1)
            parent = self.nodes[i].parent
            if parent is not None:
                ends[parent] = max(ends[parent], ends[i])
        return ends

    @cached_property
    def roots(self) -> Sequence[int]:
        """Nodes without a caller."""
        return [i for i, node in enumerate(self.nodes) if node.parent is None]

    def nodes_of(self, paths: pl.DataFrame) -> pl.DataFrame:
        """Rows with a `path`, and the `node` it is of: null where no arm called it."""
        return paths.join(self.found.select("path", "node").unique("path", maintain_order=True), "path", "left")


def join_paths(calls: pl.DataFrame, arms: Sequence[str], *, pool_layers: bool) -> PathTree:
    """The tree of all arms.

    Of what one arm calls from one place, its own order is kept wherever the arms don't contradict each other; where
    they do, the order of the earlier arm.

    Args:
        calls: As `measurement.CALLS`.
        arms: Their names, the base first.
        pool_layers: Make one path of `layers.0`, `layers.1`, …: `layers.*`.
    """
    paths = calls.group_by("arm", "path").agg(
        pl.col("name").first(), pl.col("parent").first(), pl.col("order").min(), pl.col("operator").drop_nulls().first()
    )
    placed: dict[str, Node] = {}
    below: dict[str | None, dict[str, list[str]]] = {}  # of a caller: by arm, what it calls, as first called
    found: list[tuple[str, str, str, str | None]] = []
    for arm in arms:
        own: dict[str, tuple[str, str | None]] = {}
        for row in paths.filter(pl.col("arm") == arm).sort("order").iter_rows(named=True):
            above, layer = own.get(row["parent"], (None, None))
            name, number = _pooled(row["name"]) if pool_layers else (row["name"], None)
            if above is None and row["parent"] is not None:
                name, number = row["path"], None  # its caller has no call that ended: it stands by itself
            key = name if above is None else f"{above}{_SEPARATOR}{name}"
            layer = _SEPARATOR.join(filter(None, (layer, number))) or None
            own[row["path"]] = key, layer
            found.append((arm, row["path"], key, layer))
            depth = 0 if above is None else placed[above].depth + 1
            if key not in placed or placed[key].operator is None:
                placed[key] = Node(key, name, None, depth, row["operator"])
            called = below.setdefault(above, {}).setdefault(arm, [])
            if key not in called:
                called.append(key)
    merged = {above: merge_orders(list(orders.values())) for above, orders in below.items()}
    nodes = _depth_first(placed, merged)
    index = {node.key: i for i, node in enumerate(nodes)}
    rows = [(arm, path, index[key], layer) for arm, path, key, layer in found]
    schema = {"arm": pl.String, "path": pl.String, "node": pl.Int64, "layer": pl.String}
    return PathTree(nodes, pl.DataFrame(rows, schema, orient="row"))


def merge_orders(orders: Sequence[Sequence[str]]) -> list[str]:
    """One order of all names that keeps each given one wherever they don't contradict each other.

    What they leave open, and what they contradict each other in, is as in the earliest.
    """
    names = list(dict.fromkeys(name for order in orders for name in order))
    before: dict[str, set[str]] = {name: set() for name in names}
    for order in orders:
        for first, second in pairwise(order):
            before[second].add(first)
    merged: list[str] = []
    while names:
        rest = set(names)
        following = next((name for name in names if not before[name] & rest), names[0])
        merged.append(following)
        names.remove(following)
    return merged


def _pooled(name: str) -> tuple[str, str | None]:
    """`layers.*` and the number of a `layers.3`; another name as it is."""
    match = _LAYER.fullmatch(name)
    return (name, None) if match is None else (f"{match[1]}.*", match[2])


def _depth_first(placed: dict[str, Node], below: dict[str | None, list[str]]) -> list[Node]:
    nodes: list[Node] = []
    open_paths: list[tuple[str, int | None]] = [(key, None) for key in reversed(below.get(None, []))]
    while open_paths:
        key, parent = open_paths.pop()
        node = placed[key]
        open_paths += [(child, len(nodes)) for child in reversed(below.get(key, []))]
        nodes.append(Node(key, node.name, parent, node.depth, node.operator))
    return nodes
