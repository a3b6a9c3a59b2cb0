"""From chains to the nodes of the tree that is shown: which links are nodes, what they are called, what they took."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec
import polars as pl

from inferometer.analyses.launched_by.attribution import Attribution
from inferometer.analyses.launched_by.chain_tree import ROOT, Label
from inferometer.analyses.launched_by.site_times import REASONS, Layers, why_unknown
from inferometer.analyses.launched_by.user_frames import UserCode
from inferometer.names.module_paths import module_of_range

Frames = Literal["auto", "none", "user", "all"]
FRAMES: tuple[Frames, ...] = ("auto", "none", "user", "all")
_NUMBER = re.compile(r"\d+")
_LINE = re.compile(r"(\.py)(?:\(\d+\)|:\d+)")
_PARTS = re.compile(r"([0-9]{1,18})")
_SCHEMA = {
    "node": pl.Int64,
    "parent": pl.Int64,
    "depth": pl.Int64,
    "kind": pl.String,
    "name": pl.String,
    "count": pl.Int64,
    "self_ns": pl.Int64,
    "total_ns": pl.Int64,
    "direct_ns": pl.Int64,
}


class Node(msgspec.Struct):
    """A node of the tree shown. `count` and `self_ns` are of launches at it, `total_ns` of all below it, too."""

    kind: str
    name: str
    callees: dict[tuple[str, str], "Node"] = msgspec.field(default_factory=dict)
    count: int = 0
    self_ns: int = 0
    total_ns: int = 0

    def callee(self, kind: str, name: str) -> "Node":
        """The callee of this name, made where there is none."""
        found = self.callees.get((kind, name))
        if found is None:
            found = self.callees[kind, name] = Node(kind, name)
        return found


def build_nodes(found: Attribution, *, layers: Layers, frames: Frames, code: UserCode) -> Node:
    """The root, whose callees are the outermost nodes; sums are filled in."""
    (top,) = build_alike([found], layers=layers, frames=frames, code=code)
    return top


def build_alike(runs: Sequence[Attribution], *, layers: Layers, frames: Frames, code: UserCode) -> list[Node]:
    """The root of each run's tree. Each tree has the nodes of all, so that a path means the same in every run.

    Nodes that a run launches nothing from have no count there. Frames whose line alone differs are one, called as in
    the last run.
    """
    ranges = _pooled_ranges(label for found in runs for label in found.tree.labels) if layers == "pooled" else {}
    lines = _frames_by_place(runs[-1])
    moved = [{} if found is runs[-1] else _moved_frames(_frames_by_place(found), lines) for found in runs]
    tops = [_grow(found, ranges | names, layers, frames, code) for found, names in zip(runs, moved, strict=True)]
    for top in tops:
        for other in tops:
            if other is not top:
                _add_nodes(top, other)
    for top in tops:
        if frames == "auto":
            _drop_passed_through(top)
        sum_up(top)
    return tops


def _grow(found: Attribution, renamed: Mapping[str, str], layers: Layers, frames: Frames, code: UserCode) -> Node:
    """All nodes of a run, frames that call one thing alone too, without sums."""
    top = Node("root", "")
    places = _places(found, top, renamed, layers, frames, code)
    callers = list({id(place): place for place in places}.values())
    number = {id(caller): n for n, caller in enumerate(callers)}
    caller_of = pl.Series([number[id(place)] for place in places], dtype=pl.Int64)
    node = found.launches["node"]
    sums = (pl.len().cast(pl.Int64).alias("count"), pl.col("dur_ns").sum().alias("ns"))
    work = (
        found.launches.select("how", "kernel", "dur_ns", caller=caller_of.gather(node.set(node == ROOT, None)))
        .group_by("caller", "how", "kernel", maintain_order=True)
        .agg(*sums)
        .with_columns(pl.col("kernel").cast(pl.String))
    )
    for caller, how, kernel, count, ns in work.iter_rows():
        leaf = (_unknown(top, how) if caller is None else callers[caller]).callee("kernel", kernel)
        leaf.count += count
        leaf.self_ns += ns
    return top


def _add_nodes(into: Node, other: Node) -> None:
    """Make the nodes of the other tree, without its launches."""
    stack = [(into, other)]
    while stack:
        left, right = stack.pop()
        stack.extend((left.callee(each.kind, each.name), each) for each in right.callees.values())


def as_frame(top: Node) -> pl.DataFrame:
    """A row per node, depth first, callees longest first."""
    return pl.DataFrame(list(_rows(top)), schema=_SCHEMA, orient="row")


def _unknown(top: Node, how: str) -> Node:
    return top.callee("unknown", f"({REASONS[why_unknown(how)]})")


def _places(
    found: Attribution, top: Node, renamed: Mapping[str, str], layers: Layers, frames: Frames, code: UserCode
) -> list[Node]:
    """For each node of the chains, the node that is shown for it: its own, or the nearest shown above it."""
    tree, column = found.tree, "module_pooled" if layers == "pooled" else "module"
    module = found.sites[column].to_list()
    shown = [_is_shown(label, frames, code) for label in tree.labels]
    is_module = [label.kind == "module" or _names_module(label) for label in tree.labels]
    places: list[Node] = []
    for node, (parent, number) in enumerate(zip(tree.parent, tree.label, strict=True)):
        caller = top if parent == ROOT else places[parent]
        if not shown[number]:
            places.append(caller)
            continue
        kind, name = tree.labels[number][:2]
        if is_module[number]:
            kind, name = "module", _segment(module[node] or name, module[parent] if parent != ROOT else None)
        elif kind in ("span", "frame"):
            name = renamed.get(name, name)
        places.append(caller.callee(kind, name))
    return places


def _pooled_ranges(labels: Iterable[Label]) -> dict[str, str]:
    """One name, with N for numbers, for ranges whose names differ in numbers only."""
    alike: dict[str, set[str]] = defaultdict(set)
    for label in labels:
        if label.kind == "span":
            alike[_NUMBER.sub("N", label.name)].add(label.name)
    return {name: pooled for pooled, names in alike.items() if len(names) > 1 for name in names}


def _frames_by_place(found: Attribution) -> dict[str, str | None]:
    """The frame of each file and function, whatever its line; None where several lines have one of that name."""
    frames: dict[str, str | None] = {}
    for label in found.tree.labels:
        if label.kind == "frame":
            place = _LINE.sub(r"\1", label.name)
            frames[place] = label.name if frames.get(place, label.name) == label.name else None
    return frames


def _moved_frames(own: Mapping[str, str | None], others: Mapping[str, str | None]) -> dict[str, str]:
    """What frames are called where the others are: an edit above a function moves it."""
    return {name: other for place, name in own.items() if name and (other := others.get(place)) and other != name}


def _names_module(label: Label) -> bool:
    """Layerwise ranges are the modules that they name."""
    return label.kind == "span" and module_of_range(label.name) is not None


def _is_shown(label: Label, frames: Frames, code: UserCode) -> bool:
    return label.kind != "frame" or is_frame_shown(label.name, frames, code)


def is_frame_shown(frame: str, frames: Frames, code: UserCode) -> bool:
    """Whether a Python frame is a node of the tree, unless calls only pass through it."""
    return frames == "all" or (frames != "none" and code.is_own(frame))


def _segment(path: str, outer: str | None) -> str:
    """The module's own part of its path."""
    return path[len(outer) + 1 :] if outer and path.startswith(f"{outer}.") else path


def _drop_passed_through(top: Node) -> None:
    """Take out frames that call one thing alone, and of each module the one frame that is its `forward`."""
    stack = [top]
    while stack:
        node = stack.pop()
        frames = [each for each in node.callees.values() if each.kind == "frame"]
        if node.kind == "module" and len(node.callees) == len(frames) == 1:
            _lift(node, frames)
        _lift(node, [each for each in node.callees.values() if _calls_one(each)])
        stack.extend(node.callees.values())


def _calls_one(node: Node) -> bool:
    return node.kind == "frame" and len(node.callees) == 1


def _lift(node: Node, frames: list[Node]) -> None:
    """Put in place of these callees what they call, through all frames that call one thing alone."""
    for frame in frames:
        del node.callees[frame.kind, frame.name]
    for frame in frames:
        for callee in frame.callees.values():
            inner = callee
            while _calls_one(inner):
                (inner,) = inner.callees.values()
            _merge(node.callee(inner.kind, inner.name), inner)


def _merge(into: Node, other: Node) -> None:
    stack = [(into, other)]
    while stack:
        left, right = stack.pop()
        left.count += right.count
        left.self_ns += right.self_ns
        stack.extend((left.callee(each.kind, each.name), each) for each in right.callees.values())


def sum_up(top: Node) -> None:
    """Add to each node's launches and time those of all below it."""
    order = [top]
    for node in order:
        order.extend(node.callees.values())
    for node in reversed(order):
        node.total_ns = node.self_ns + sum(callee.total_ns for callee in node.callees.values())
        node.count += sum(callee.count for callee in node.callees.values())


def _rows(top: Node) -> Iterator[tuple[int, int | None, int, str, str, int, int, int, int]]:
    stack: list[tuple[Node, int | None, int]] = [(each, None, 0) for each in _longest_last(top)]
    number = 0
    while stack:
        node, parent, depth = stack.pop()
        direct_ns = node.self_ns + sum(callee.total_ns for callee in node.callees.values() if callee.kind == "kernel")
        yield number, parent, depth, node.kind, node.name, node.count, node.self_ns, node.total_ns, direct_ns
        stack.extend((each, number, depth + 1) for each in _longest_last(node))
        number += 1


def _longest_last(node: Node) -> list[Node]:
    """Callees that launch anything or take time; equal ones by name, as people count: layers.2 before layers.10."""
    named = sorted(
        (each for each in node.callees.values() if each.count or each.total_ns), key=counted_name, reverse=True
    )
    return sorted(named, key=lambda each: (each.total_ns, each.count))


def counted_name(node: Node) -> list[tuple[int, str]]:
    """What sorts nodes by name as people count."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in _PARTS.split(node.name)]
