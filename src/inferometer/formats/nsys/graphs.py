"""Nodes of CUDA graphs as the host created them: the way from a replayed kernel back to the moment of its capture.

Source: `CUDA_GRAPH_NODE_EVENTS` of the export schema, which is there where nodes were traced (`nsys profile
--cuda-graph-trace=node`). Each launch that is captured creates a node. Instantiating the graph clones them, and kernels
carry the id of the clone: `originalGraphNodeId` leads back, which old exports lack. A clone usually has two rows, its
creation and then one that names its original; all are kept, in the file's order. Ids belong to a process.
"""

import polars as pl

from inferometer.formats.databases.export import Export
from inferometer.formats.nsys.ids import Strings, process_of, thread_of
from inferometer.trace.builder import TraceBuilder
from inferometer.trace.losses import Losses
from inferometer.trace.timed_rows import keep_timed

NODES = "CUDA_GRAPH_NODE_EVENTS"

_NEEDED = ("graphNodeId", "start")
_MAY_LACK = ("originalGraphNodeId", "globalTid", "nameId")


def read_nodes(export: Export, out: TraceBuilder, strings: Strings) -> None:
    """`CUDA_GRAPH_NODE_EVENTS` into `graph_nodes`; a column that it lacks is null."""
    present = export.columns(NODES)
    if not present:
        return
    if not set(_NEEDED) <= present:
        _count_unreadable(export, out.losses, [name for name in _NEEDED if name not in present])
        return
    packed = pl.col("globalTid")
    lacking = [pl.lit(None, dtype=pl.Int64).alias(name) for name in _MAY_LACK if name not in present]
    for batch in export.batches(NODES, [*_NEEDED, *(name for name in _MAY_LACK if name in present)]):
        out.losses.see(NODES, batch.height)
        rows = _usable(batch.with_columns(lacking), out.losses)
        columns = rows.select(
            pl.col("graphNodeId").alias("graph_node_id"),
            pl.col("originalGraphNodeId").alias("original_node_id"),
            process_of(packed).alias("process"),
            thread_of(packed).alias("thread"),
            pl.col("start").alias("start_ns"),
        )
        names = strings.name(rows["nameId"], NODES, may_be_null=True)
        out.add("graph_nodes", rows.height, {**columns.to_dict(), "name": names})


def _usable(batch: pl.DataFrame, losses: Losses) -> pl.DataFrame:
    """Rows with a node and a start; the others are counted. A node 0 is none, as in the table of kernels."""
    ids = pl.col("graphNodeId", "originalGraphNodeId").replace({0: None})
    known = batch.with_columns(ids).filter(pl.col("graphNodeId").is_not_null())
    losses.count("unreadable_row", batch.height - known.height, category=NODES, example="graphNodeId")
    return keep_timed(known.with_columns(pl.col("start").alias("end")), NODES, losses)


def _count_unreadable(export: Export, losses: Losses, missing: list[str]) -> None:
    rows = export.count(NODES)
    losses.see(NODES, rows)
    losses.count("unreadable_row", rows, category=NODES, example=f"no column {missing[0]}")
