"""The interned tree of call chains: a node is its caller's node and what was called; equal chains are one node.

Nodes and labels are numbers, so that millions of launches share a few thousand chains. Several traces may fill one
tree: a capture lends its chains to the replays of its graph.
"""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import msgspec

Kind = Literal["span", "frame", "module", "op", "graph"]
ROOT = -1
"""The parent of outermost nodes, and the node of what has no chain."""


class Label(NamedTuple):
    """What a node stands for. `file` and `hash` are of a compiled kernel."""

    kind: Kind
    name: str
    file: str | None = None
    hash: str | None = None


class CallTree(msgspec.Struct):
    """`parent` and `label` of each node, a caller before its callees; `labels`: what the numbers in `label` mean."""

    labels: list[Label] = msgspec.field(default_factory=list)
    parent: list[int] = msgspec.field(default_factory=list)
    label: list[int] = msgspec.field(default_factory=list)
    _label_of: dict[Label, int] = msgspec.field(default_factory=dict)
    _node_of: dict[tuple[int, int], int] = msgspec.field(default_factory=dict)
    _found: int = 0  # the nodes up to here are in `_node_of`

    def number(self, label: Label) -> int:
        """The label's number."""
        found = self._label_of.get(label)
        if found is None:
            found = self._label_of[label] = len(self.labels)
            self.labels.append(label)
        return found

    def child(self, parent: int, label: int) -> int:
        """The node of this label below `parent`."""
        while self._found < len(self):
            self._node_of[self.parent[self._found], self.label[self._found]] = self._found
            self._found += 1
        key = parent, label
        found = self._node_of.get(key)
        if found is None:
            found = self._node_of[key] = len(self.parent)
            self.parent.append(parent)
            self.label.append(label)
            self._found += 1
        return found

    def extend(self, parents: Sequence[int], labels: Sequence[int]) -> None:
        """New nodes, none of which is there: equal to as many calls of `child`, and several times quicker."""
        self.parent.extend(parents)
        self.label.extend(labels)

    def chain(self, node: int) -> list[int]:
        """The nodes from the outermost down to this one; none of the root."""
        chain = []
        while node != ROOT:
            chain.append(node)
            node = self.parent[node]
        return chain[::-1]

    def shared(self, nodes: Iterable[int]) -> int:
        """The deepest node that is on the chains of all of them; the root where none is."""
        shared, first, *others = ROOT, *(self.chain(node) for node in nodes)
        for depth, node in enumerate(first):
            if any(chain[depth : depth + 1] != [node] for chain in others):
                break
            shared = node
        return shared

    def label_of(self, node: int) -> Label:
        """What the node stands for."""
        return self.labels[self.label[node]]

    def __len__(self) -> int:
        return len(self.parent)
