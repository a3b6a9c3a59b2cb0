"""The call tree of a source that holds sums by call path and no launches: its own tree, with kernels as leaves.

Nodes with a time are kernels, those with a Python frame are frames, and the others are scopes that the user named.
"""

import polars as pl

from inferometer.analyses.launched_by.call_tree import CallTreeTable, TreeOptions, shown_nodes
from inferometer.analyses.launched_by.call_tree_nodes import Node, as_frame, is_frame_shown, sum_up
from inferometer.trace.trace import Trace

NEEDED = {
    "call_paths": ("path_id", "parent_id", "name", "frame", "depth"),
    "path_totals": ("path_id", "calls", "self_ns", "backend"),
}
_NO_SCOPE = "(no scope stands around it)"
_NOTE = "These are sums by call path as the source printed them: it holds no single launches."


def summed_tree(trace: Trace, asked: TreeOptions) -> CallTreeTable | None:
    """The tree of the source; None where it has no device times by call path, or those of several backends.

    Times of kernels that stand at the root, in no scope, are unattributed.

    Args:
        trace: Needs `NEEDED`.
        asked: As for a tree of launches; layers are never pooled, and `auto` shows all frames of user code.

    Raises:
        InputError: `asked.match` is no regular expression.
    """
    totals = trace.path_totals.filter(pl.col("self_ns").is_not_null()).collect()
    if totals.is_empty() or totals["backend"].null_count() < totals.height:
        return None
    sums = totals.group_by("path_id").agg(pl.col("calls", "self_ns").sum())
    paths = trace.call_paths.select(NEEDED["call_paths"]).sort("depth", maintain_order=True).collect()
    top = _grow(paths.join(sums, on="path_id", how="left", maintain_order="left"), asked)
    sum_up(top)
    share = (pl.col("total_ns") / top.total_ns if top.total_ns else pl.lit(0.0)).alias("share")
    frame = as_frame(top).with_columns(share)
    return CallTreeTable(
        source=trace.facts.source,
        frame=frame,
        shown=shown_nodes(frame, asked),
        layers="apart",
        frames=asked.frames,
        launches=top.count,
        total_ns=top.total_ns,
        unattributed_ns=int(frame.filter(pl.col("kind") == "unknown")["total_ns"].sum()),
        notable=(_NOTE,),
        losses=trace.losses,
    )


def _grow(paths: pl.DataFrame, asked: TreeOptions) -> Node:
    """All nodes, without the sums of callers. `paths`: callers first; a node without a parent is the root."""
    top = Node("root", "")
    nodes: dict[int, Node] = {}
    for number, parent, name, frame, calls, self_ns in paths.select(
        "path_id", "parent_id", "name", "frame", "calls", "self_ns"
    ).iter_rows():
        caller = nodes.get(parent, top)
        if self_ns is not None:
            caller = top.callee("unknown", _NO_SCOPE) if caller is top else caller
            node = caller.callee("kernel", name)
            node.count += calls
            node.self_ns += self_ns
        elif parent is None or (frame is not None and not is_frame_shown(frame, asked.frames, asked.code)):
            node = caller
        else:
            node = caller.callee("span" if frame is None else "frame", frame or name)
        nodes[number] = node
    return top
