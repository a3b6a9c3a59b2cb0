"""Call trees made by hand."""

from typing import Any

import polars as pl

from inferometer.analyses.launched_by.call_tree import CallTreeTable
from inferometer.trace.losses import Losses

Node = tuple[Any, ...]
"""`kind`, `name`, `self_ns`, then the nodes below it."""

_SCHEMA = {
    "node": pl.Int64,
    "parent": pl.Int64,
    "depth": pl.Int64,
    "kind": pl.String,
    "name": pl.String,
    "count": pl.Int64,
    "self_ns": pl.Int64,
    "total_ns": pl.Int64,
}


def tree_of(*roots: Node, source: str = "by hand", said: tuple[str, ...] = ()) -> CallTreeTable:
    """The tree of these nodes; each node with time of its own stands for one launch."""
    rows: list[list[Any]] = []
    waiting: list[tuple[Node, int | None, int]] = [(root, None, 0) for root in reversed(roots)]
    while waiting:
        (kind, name, self_ns, *below), parent, depth = waiting.pop()
        waiting += [(child, len(rows), depth + 1) for child in reversed(below)]
        rows.append([len(rows), parent, depth, kind, name, int(self_ns > 0), self_ns, self_ns])
    for _, parent, *_, count, _, total_ns in reversed(rows):
        if parent is not None:
            rows[parent][5] += count
            rows[parent][7] += total_ns
    frame = pl.DataFrame(rows, schema=_SCHEMA, orient="row")
    total_ns = int(frame["self_ns"].sum())
    frame = frame.with_columns(share=pl.col("total_ns") / max(1, total_ns))
    return CallTreeTable(
        source=source,
        frame=frame,
        shown=frame,
        layers="apart",
        frames="all",
        launches=int((frame["self_ns"] > 0).sum()),
        total_ns=total_ns,
        unattributed_ns=int(frame.filter(pl.col("kind") == "unknown")["total_ns"].sum()),
        notes=said,
        losses=Losses(),
    )
