"""What each node of the tree says: its chain of ops, its module, its frames, the user's own frame, its named range.

A node knows what its callers know, so one pass from callers to callees fills everything.
"""

import re
from collections import defaultdict
from typing import Literal

import polars as pl

from inferometer.analyses.launched_by.chain_tree import ROOT, CallTree, Label
from inferometer.analyses.launched_by.user_frames import UserCode
from inferometer.names.module_paths import module_of_range, module_paths

By = Literal["op", "module", "frame", "user-frame", "span", "region"]
BY_COLUMN: dict[By, str] = {
    "op": "op_chain",
    "module": "module",
    "frame": "frame",
    "user-frame": "user_frame",
    "span": "span",
    "region": "region",
}
COLUMNS = (
    *("op_chain", "op", "module", "module_pooled", "module_recorded", "frame", "user_frame", "span", "region"),
    *("kernel_file", "kernel_hash"),
)
_REGION = "Torch-Compiled Region"  # an op
_COMPILED = re.compile(r"^(?:## )?Call CompiledFxGraph ")  # a range in it; alone where Dynamo's op was not recorded
_ARROW = " > "
_LAYER = re.compile(r"(?<=\.)\d+(?=\.|$)")


class _Columns(dict[str, list[str | None]]):
    """One list per column; the place -1, the root's, is the last and stays empty."""

    def __init__(self, nodes: int) -> None:
        super().__init__({name: [None] * (nodes + 1) for name in COLUMNS})

    def inherit(self, node: int, parent: int) -> None:
        for column in self.values():
            column[node] = column[parent]

    def add(self, node: int, chain: str, name: str) -> None:
        """A further link of a chain."""
        column = self[chain]
        column[node] = name if column[node] is None else f"{column[node]}{_ARROW}{name}"


def find_sites(tree: CallTree, code: UserCode) -> pl.DataFrame:
    """One row per node, in their order: `node` and `COLUMNS`, text.

    `op_chain` has the ops, outermost first; `op` is the innermost. `module` is the path of attributes as far as
    conventions show it (see `names.module_paths`), `module_pooled` the same for all layers, `module_recorded` the chain
    of names as the profiler wrote them. `frame` is the innermost Python or native frame, `user_frame` the innermost of
    the user's; `span` the innermost named range. `region`, `kernel_file` and `kernel_hash` are of compiled code.
    """
    columns = _Columns(len(tree))
    modules = _module_paths(tree)
    own = [label.kind == "frame" and code.is_own(label.name) for label in tree.labels]
    for node, (parent, number) in enumerate(zip(tree.parent, tree.label, strict=True)):
        columns.inherit(node, parent)
        label = tree.labels[number]
        if label.kind == "op":
            _fill_op(columns, node, label)
        elif label.kind == "frame":
            columns["frame"][node] = label.name
            if own[number]:
                columns["user_frame"][node] = label.name
        elif label.kind == "module":
            columns["module"][node], columns["module_pooled"][node] = modules[node]
            columns.add(node, "module_recorded", label.name)
        elif label.kind == "span":
            _fill_span(columns, node, label)
    series = (pl.Series(name, column[:-1], dtype=pl.String) for name, column in columns.items())
    return pl.DataFrame([pl.Series("node", range(len(tree)), dtype=pl.Int64), *series])


def _fill_op(columns: _Columns, node: int, label: Label) -> None:
    columns.add(node, "op_chain", label.name)
    columns["op"][node] = label.name
    if label.name.startswith(_REGION):
        columns["region"][node] = label.name
    if label.file:
        columns["kernel_file"][node], columns["kernel_hash"][node] = label.file, label.hash


def _fill_span(columns: _Columns, node: int, label: Label) -> None:
    columns["span"][node] = label.name
    if columns["region"][node] is None and _COMPILED.match(label.name):
        columns["region"][node] = label.name
    module = module_of_range(label.name)
    if module is not None:
        columns["module"][node], columns["module_pooled"][node] = module, _LAYER.sub("*", module)
        columns.add(node, "module_recorded", module)


def _module_paths(tree: CallTree) -> dict[int, tuple[str, str]]:
    """Path and pooled path of each node that is a module.

    One module may be called from several places: many nodes. Numbers in recorded names count within one trace, so what
    came out of a capture is read by itself.
    """
    traces: dict[int, dict[tuple[int, str], int]] = defaultdict(dict)
    around = [(ROOT, ROOT)] * (len(tree) + 1)  # of each node its trace, by the label that it hangs below, and module
    modules: dict[int, tuple[int, int]] = {}
    for node, parent in enumerate(tree.parent):
        of, module = around[parent]
        label = tree.label_of(node)
        if label.kind == "graph":
            of, module = tree.label[node], ROOT
        elif label.kind == "module":
            known = traces[of]
            module = known.setdefault((module, label.name), len(known))
            modules[node] = of, module
        around[node] = of, module
    found = {
        of: module_paths([outer for outer, _ in known], [name for _, name in known]) for of, known in traces.items()
    }
    return {node: (found[of][module].path, found[of][module].pooled) for node, (of, module) in modules.items()}
