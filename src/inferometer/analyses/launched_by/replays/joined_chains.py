"""Chains of replayed kernels: that of the replay's call, and below it that of the same kernel where it was captured.

What is around all kernels of a capture (the engine's capture loop, a profiler's step) is no part of the replay and
is left out, down to the first module.
"""

from collections.abc import Sequence

import numpy as np

from inferometer.analyses.launched_by.chain_tree import ROOT, CallTree, Label
from inferometer.analyses.nesting import Numbers

_NAME = "graph replay"


class ReplayChains:
    """Makes chains in a tree.

    Args:
        tree: Of all nodes.
        nodes: Of each reference the node of each row.
        names: What tells references apart in the tree.
    """

    def __init__(self, tree: CallTree, nodes: Sequence[Numbers], names: Sequence[str]) -> None:
        self._tree = tree
        self._nodes = nodes
        self._graphs = [tree.number(Label("graph", _NAME, name)) for name in names]
        self._made: dict[tuple[int, int, int], int] = {}
        self._prefixes: dict[bytes, list[int]] = {}
        self._places: list[dict[str, None]] = [{} for _ in nodes]

    def below(self, replay: Numbers, reference: Numbers, row: Numbers) -> Numbers:
        """The node of each kernel of one replay: `replay` is that of its call, `row` that of its reference."""
        nodes = np.full(len(row), ROOT, dtype=np.int64)
        for number in np.unique(reference).tolist():
            some = np.flatnonzero(reference == number)
            captured = self._nodes[number][row[some]]
            prefix = self._prefix(number, np.unique(captured[captured != ROOT]))
            nodes[some] = [
                self._join(number, outer, inner, len(prefix))
                for outer, inner in zip(replay[some].tolist(), captured.tolist(), strict=True)
            ]
        return nodes

    def places(self, reference: int) -> tuple[str, ...]:
        """The named ranges that replays were found in."""
        return tuple(self._places[reference])

    def _prefix(self, reference: int, nodes: Numbers) -> list[int]:
        key = nodes.tobytes()
        if key not in self._prefixes:
            self._prefixes[key] = self._common(nodes.tolist())
            self._note(reference, self._prefixes[key])
        return self._prefixes[key]

    def _common(self, nodes: list[int]) -> list[int]:
        """The nodes above all of these, outermost first, down to the first module or op."""
        prefix = self._tree.chain(nodes[0]) if nodes else []
        for node in nodes[1:]:
            chain = self._tree.chain(node)
            same = 0
            while same < min(len(prefix), len(chain)) and prefix[same] == chain[same]:
                same += 1
            prefix = prefix[:same]
        inner = (i for i, node in enumerate(prefix) if self._tree.label_of(node).kind in ("module", "op"))
        return prefix[: next(inner, len(prefix))]

    def _note(self, reference: int, prefix: list[int]) -> None:
        spans = [label.name for label in map(self._tree.label_of, prefix) if label.kind == "span"]
        if spans:
            self._places[reference][spans[-1]] = None

    def _join(self, reference: int, replay: int, captured: int, cut: int) -> int:
        key = replay, captured, cut
        if key not in self._made:
            node = self._tree.child(replay, self._graphs[reference])
            for each in self._tree.chain(captured)[cut:]:
                node = self._tree.child(node, self._tree.label[each])
            self._made[key] = node
        return self._made[key]
