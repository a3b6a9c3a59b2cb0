"""Replayed kernels by the node of their graph, where the trace says when on the host each node was made.

Nsight Systems records that (`graph_nodes`): a node is made within the call that captures it, and cloned when the graph
is instantiated; kernels name the clone. What stood around the making of the original launched the kernel.
"""

import numpy as np
import polars as pl

from inferometer.analyses.launched_by.chain_tree import ROOT, CallTree, Label
from inferometer.analyses.launched_by.host_side import chains_at
from inferometer.analyses.launched_by.launched import HOWS
from inferometer.analyses.launched_by.replays.joined_chains import ReplayChains
from inferometer.trace.trace import Trace

_NODE = ["rank", "process", "graph_node_id"]
_GRAPH = ["rank", "process", "graph_id"]
_MOST_CLONES = 16  # of clones of clones; a chain that goes on is broken


def attribute_nodes(trace: Trace, tree: CallTree, work: pl.DataFrame) -> pl.DataFrame:
    """`work` of `find_launched` with the `node` of replayed kernels whose making is known, and `how`: `node_creation`.

    Args:
        trace: Needs `graph_nodes` and what chains are made of.
        tree: Grows by the chains around the making of nodes, below those of replays.
        work: Of `find_launched`.
    """
    made = trace.graph_nodes.filter(pl.col("graph_node_id").is_not_null()).collect()
    replayed = work.with_row_index("row").filter(pl.col("is_replay") & pl.col("graph_node_id").is_not_null())
    if not made.height or not replayed.height:
        return work
    origins = _origins(made, replayed.select(_NODE).unique())
    root = tree.child(ROOT, tree.number(Label("graph", "capture of the graphs")))
    moments = origins.rename({"start_ns": "called_ns"}).with_columns(pl.lit(None, dtype=pl.Int64).alias("path_id"))
    known = origins.select(*_NODE, pl.Series("made", chains_at(trace, tree, moments, root=root), dtype=pl.Int64))
    tied = replayed.select("row", "node", "graph_id", *_NODE).join(
        known.filter(pl.col("made") != root), on=_NODE, nulls_equal=True
    )
    chains = ReplayChains(tree, [tied["made"].to_numpy()], names=["created"])
    numbered = tied.with_row_index("place").with_columns(pl.col("place").cast(pl.Int64))
    parts = [_below(chains, graph) for graph in numbered.partition_by(_GRAPH)]
    return _filled(work, pl.concat(parts)) if parts else work


def _below(chains: ReplayChains, graph: pl.DataFrame) -> pl.DataFrame:
    """Of the launches of one graph, `row` and `below`, the node of its making below that of its replay."""
    place = graph["place"].to_numpy()
    nodes = chains.below(graph["node"].to_numpy(), np.zeros(len(place), dtype=np.int64), place)
    return graph.select("row", pl.Series("below", nodes, dtype=pl.Int64))


def _filled(work: pl.DataFrame, found: pl.DataFrame) -> pl.DataFrame:
    is_found = pl.col("below").is_not_null()
    return (
        work.with_row_index("row")
        .join(found, on="row", how="left", maintain_order="left")
        .with_columns(
            pl.coalesce("below", "node").alias("node"),
            pl.when(is_found).then(pl.lit("node_creation", dtype=HOWS)).otherwise("how").alias("how"),
        )
        .drop("row", "below")
    )


def _origins(made: pl.DataFrame, wanted: pl.DataFrame) -> pl.DataFrame:
    """For each node, the thread and moment of the making of the one that it was cloned from."""
    cloned = made.filter(pl.col("original_node_id").is_not_null()).unique(_NODE, keep="first", maintain_order=True)
    step = cloned.select(*_NODE, pl.col("original_node_id"))
    at = wanted.with_columns(pl.col("graph_node_id").alias("origin"))
    for _ in range(_MOST_CLONES):
        found = at.join(
            step.rename({"graph_node_id": "origin"}), on=["rank", "process", "origin"], how="left", nulls_equal=True
        )
        if found["original_node_id"].null_count() == found.height:
            break
        at = found.with_columns(pl.coalesce("original_node_id", "origin").alias("origin")).drop("original_node_id")
    first = made.sort("start_ns", maintain_order=True).unique(_NODE, keep="first", maintain_order=True)
    places = first.select("rank", "process", pl.col("graph_node_id").alias("origin"), "thread", "start_ns")
    return at.join(places, on=["rank", "process", "origin"], nulls_equal=True)
