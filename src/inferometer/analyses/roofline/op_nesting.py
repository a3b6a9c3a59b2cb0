"""The calls of ops of a trace, from wherever they are known: recorded with times, or the nodes of an execution trace.

Nodes have no times, but they say whom they were called by, and their numbers rise as they begin. So their places in
that order stand for times: where a call begins, and how many calls are within it.
"""

from typing import Any, Final

import numpy as np
import polars as pl

from inferometer.analyses.launched_by.op_calls import OpCalls
from inferometer.analyses.nesting import Numbers
from inferometer.trace.trace import Trace

OF_NODES: Final = ("op", "rank", "process", "thread", "node", "parent", "sequence_number", "kernel_file")
ARGUMENTS: Final = ("input_dims", "input_dtypes", "input_strides", "scalars")


def calls_of(trace: Trace) -> OpCalls | None:
    """The calls of its nodes, where it has any, else of its ops; None without both."""
    nodes = trace.op_nodes.select(*OF_NODES, *ARGUMENTS).collect()
    if nodes.height:
        ops = _as_timed(nodes.sort("node", nulls_last=True, maintain_order=True))
        return OpCalls(Trace(trace.facts, {"ops": ops.lazy()}, trace.losses, scope=frozenset({"ops"})))
    return OpCalls(trace) if trace.ops.select("op").head(1).collect().height else None


def _as_timed(nodes: pl.DataFrame) -> pl.DataFrame:
    """With places in the order of their beginnings as `start_ns`, twice as many as there are, and `dur_ns`."""
    inside = _count_inside(nodes)
    begins = 2 * np.arange(nodes.height)
    columns: dict[str, Any] = {"start_ns": begins, "dur_ns": 2 * inside + 1}
    return nodes.with_columns(
        *(pl.Series(name, values, dtype=pl.Int64) for name, values in columns.items()),
        pl.lit(None, dtype=pl.Int64).alias("external_id"),
    )


def _count_inside(nodes: pl.DataFrame) -> Numbers:
    """How many places after a node the last one begins that it made, directly or not: 0 of one that made none."""
    place = {node: at for at, node in enumerate(nodes["node"].to_list()) if node is not None}
    parents = [place.get(parent, -1) for parent in nodes["parent"].to_list()]
    last = list(range(nodes.height))
    for at in range(nodes.height - 1, -1, -1):
        around = parents[at]
        if 0 <= around < at:  # a node that names itself, or a later one, is outermost
            last[around] = max(last[around], last[at])
    return np.array(last, dtype=np.int64) - np.arange(nodes.height)
