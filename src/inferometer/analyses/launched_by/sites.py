"""What each node of the tree says: its chain of ops, its module, its frames, the user's own frame, its named range.

A node knows what its callers know, so one pass from callers to callees fills everything.
"""

import re
from collections import defaultdict
from typing import Literal

import numpy as np
import polars as pl

from inferometer.analyses.correlation import gather_known
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
_SPAN = "span"
_ARROW = " > "
_LAYER = re.compile(r"(?<=\.)\d+(?=\.|$)")


class _Columns(dict[str, list[str | None]]):
    """One list per column, a place for each of what nodes may say; the first, the root's, is empty."""

    def __init__(self) -> None:
        super().__init__({name: [None] for name in COLUMNS if name != _SPAN})

    def inherit(self, parent: int) -> int:
        """A new place with what the parent's says."""
        for column in self.values():
            column.append(column[parent])
        return len(self["op"]) - 1

    def add(self, place: int, chain: str, name: str) -> None:
        """A further link of a chain."""
        column = self[chain]
        column[place] = name if column[place] is None else f"{column[place]}{_ARROW}{name}"


def find_sites(tree: CallTree, code: UserCode) -> pl.DataFrame:
    """One row per node, in their order: `node` and `COLUMNS`, text.

    `op_chain` has the ops, outermost first; `op` is the innermost. `module` is the path of attributes as far as
    conventions show it (see `names.module_paths`), `module_pooled` the same for all layers, `module_recorded` the chain
    of names as the profiler wrote them. `frame` is the innermost Python or native frame, `user_frame` the innermost of
    the user's; `span` the innermost named range. `region`, `kernel_file` and `kernel_hash` are of compiled code.
    """
    columns, modules = _Columns(), _module_paths(tree)
    own = [label.kind == "frame" and code.is_own(label.name) for label in tree.labels]
    only_named = [label.kind == "span" and _says_its_name_alone(label.name) for label in tree.labels]
    is_span = [label.kind == "span" for label in tree.labels]
    places, spans = [0] * (len(tree) + 1), [-1] * (len(tree) + 1)  # the root's are the last
    known: dict[tuple[int, int, tuple[str, str] | None], int] = {}
    for node, (parent, number) in enumerate(zip(tree.parent, tree.label, strict=True)):
        spans[node] = number if is_span[number] else spans[parent]
        place = places[parent]
        if not only_named[number]:
            module = modules.get(node)
            key = place, number, module
            if key not in known:
                known[key] = _place(columns, place, tree.labels[number], module, is_own=own[number])
            place = known[key]
        places[node] = place
    names = pl.Series(_SPAN, [label.name for label in tree.labels], dtype=pl.String)
    said = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))[places[:-1]]
    span = gather_known(names.to_frame(), np.array(spans[:-1], dtype=np.int64))
    return pl.concat([said.with_row_index("node").cast({"node": pl.Int64}), span], how="horizontal").select(
        "node", *COLUMNS
    )


def _place(columns: _Columns, parent: int, label: Label, module: tuple[str, str] | None, *, is_own: bool) -> int:
    """The place of what a node of this label says below one that says what the parent's place has."""
    place = columns.inherit(parent)
    if label.kind == "op":
        _fill_op(columns, place, label)
    elif label.kind == "frame":
        columns["frame"][place] = label.name
        if is_own:
            columns["user_frame"][place] = label.name
    elif module is not None:
        columns["module"][place], columns["module_pooled"][place] = module
        columns.add(place, "module_recorded", label.name)
    elif label.kind == "span":
        _fill_span(columns, place, label)
    return place


def _says_its_name_alone(span: str) -> bool:
    """Whether a named range is neither a module nor compiled code."""
    return not _COMPILED.match(span) and module_of_range(span) is None


def _fill_op(columns: _Columns, place: int, label: Label) -> None:
    columns.add(place, "op_chain", label.name)
    columns["op"][place] = label.name
    if label.name.startswith(_REGION):
        columns["region"][place] = label.name
    if label.file:
        columns["kernel_file"][place], columns["kernel_hash"][place] = label.file, label.hash


def _fill_span(columns: _Columns, place: int, label: Label) -> None:
    if columns["region"][place] is None and _COMPILED.match(label.name):
        columns["region"][place] = label.name
    module = module_of_range(label.name)
    if module is not None:
        columns["module"][place], columns["module_pooled"][place] = module, _LAYER.sub("*", module)
        columns.add(place, "module_recorded", module)


def _module_paths(tree: CallTree) -> dict[int, tuple[str, str]]:
    """Path and pooled path of each node that is a module.

    One module may be called from several places: many nodes. Numbers in recorded names count within one trace, so what
    came out of a capture is read by itself.
    """
    if all(label.kind != "module" for label in tree.labels):
        return {}
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
