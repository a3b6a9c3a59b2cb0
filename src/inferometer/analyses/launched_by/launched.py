"""Launches, each with the moment of its host call and the chain around that.

A launch is tied to its call by the correlation id of its process. Without a call, the framework's id of the op that
queued it (`external_id`) shows the op. A call that queued a whole graph says nothing of the kernels within: its chain
is that of the replay. Kernels of a capture are calls alone and take no time.
"""

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
import polars as pl

from inferometer.analyses.correlation import CALL, CALL_KEY, calls_of_launches, find_calls, known_rows
from inferometer.analyses.launched_by.captured import captured_launches
from inferometer.analyses.launched_by.chain_tree import ROOT, CallTree
from inferometer.analyses.launched_by.host_side import NEEDED as HOST_NEEDED
from inferometer.analyses.launched_by.host_side import THREAD, chains_at
from inferometer.analyses.selection import Selection
from inferometer.names.apis import api_kind
from inferometer.trace.lean import collect_lean, gather
from inferometer.trace.shared_columns import read_columns
from inferometer.trace.trace import Trace

How = Literal[
    "call",
    "external_id",
    "captured",
    "graph_launch",
    "graph_alignment",
    "graph_node",
    "node_creation",
    "launch_before_window",
    "call_missing",
    "no_call",
]
HOWS = pl.Enum(get_args(How))
SIZES = ("grid", "block")
NEEDED = {
    **HOST_NEEDED,
    "totals": ("kernel",),
    "graph_nodes": ("graph_node_id", "original_node_id", *THREAD, "start_ns"),
    "launches": (
        *("kind", "kernel", "device", "stream", "rank", "process", "start_ns", "dur_ns", "correlation_id"),
        *("external_id", "graph_id", "graph_node_id", *SIZES),
    ),
    "calls": ("api", *THREAD, "start_ns", "correlation_id", "path_id", "kernel", "grid", "block"),
}


def find_launched(
    trace: Trace, selection: Selection, tree: CallTree, *, root: int = ROOT, more: Sequence[str] = ()
) -> pl.DataFrame:
    """One row per launch or captured kernel, with its host call and chain.

    The columns `NEEDED` of `launches` but `SIZES`; its `call`, the row in the trace's calls, with `thread` and
    `called_ns` of that, null where it is unknown; `node` of the tree, `root` where nothing is known around the call;
    `how` (of `HOWS`) that was found; `is_replay`: one call queued it with others; `is_captured`.

    Args:
        trace: Needs the columns `NEEDED`.
        selection: Which launches.
        tree: Grows by their chains.
        root: The node that chains hang below.
        more: Further columns of `launches` to keep.
    """
    columns = [name for name in NEEDED["calls"] if name not in ("kernel", *SIZES)]
    work, is_whole = _work(trace, selection, more)
    calls = read_columns(trace, "calls", columns)
    call = calls_of_launches(trace) if is_whole else find_calls(work, calls)
    called = _moments(trace, tree, calls, known_rows(call), root)
    joined = pl.concat([work, called], how="horizontal")
    has_calls = calls.height > 0
    del work, calls, called, call
    queued = joined.with_columns(_replays(joined))
    del joined
    how = _how(queued, has_calls=has_calls)
    return _from_ops(trace, tree, root, queued.drop("is_graph").with_columns(how))


def _work(trace: Trace, selection: Selection, more: Sequence[str]) -> tuple[pl.DataFrame, bool]:
    """The launches selected, captured ones last; and whether they are those of the trace, no more and no less."""
    names = [*(name for name in NEEDED["launches"] if name not in SIZES), *more]
    launches = selection.apply(trace, compact=True).select(names)
    sizes = [name for name in more if name in SIZES]
    captured = captured_launches(trace, selection, *sizes).drop("thread").collect()
    ran = pl.lit(value=False).alias("is_captured")
    if captured.height:
        kind = pl.lit("kernel").cast(pl.Categorical).alias("kind")
        both = [launches.with_columns(ran), captured.lazy().with_columns(kind, pl.lit(value=True).alias("is_captured"))]
        return collect_lean(pl.concat(both, how="diagonal_relaxed"), [*names, "is_captured"]), False
    if selection.conditions(trace):
        return collect_lean(launches, names).with_columns(ran), False
    return read_columns(trace, "launches", names).with_columns(ran), True


def _moments(trace: Trace, tree: CallTree, calls: pl.DataFrame, call: pl.Series, root: int) -> pl.DataFrame:
    """`call`, `thread`, `called_ns`, `node` and `is_graph` of the call of each launch; all but `node` null without."""
    is_used = np.zeros(calls.height, dtype=np.bool_)
    is_used[call.drop_nulls().to_numpy()] = True
    moments = calls.select(*THREAD, "path_id", called_ns="start_ns").filter(pl.Series(is_used))
    node = np.full(calls.height, root, dtype=np.int64)
    node[is_used] = chains_at(trace, tree, moments, root=root)
    graphs = [api for api in calls["api"].unique().cast(pl.String) if api_kind(api) == "graph"]
    of_calls = calls.select("thread", called_ns="start_ns", node=pl.Series(node), is_graph=pl.col("api").is_in(graphs))
    return gather(of_calls, call).with_columns(call.alias(CALL), pl.col("node").fill_null(root))


def _replays(work: pl.DataFrame) -> pl.Expr:
    """Whether a launch is part of a replayed graph: by the call's name, by its node, or since its call queued more.

    Where the call is not in the file, its id still shows what it queued together.
    """
    by_call = pl.col("is_graph")
    if work["is_graph"].null_count():
        uncalled = work.with_row_index("row").filter(
            pl.col("is_graph").is_null(), pl.col("correlation_id").is_not_null()
        )
        shared = uncalled.filter((pl.len() > 1).over(CALL_KEY))["row"].to_numpy()
        together = np.zeros(work.height, dtype=np.bool_)
        together[shared] = True
        by_call = by_call.fill_null(pl.Series(together))
    return ((by_call | pl.col("graph_node_id").is_not_null()) & ~pl.col("is_captured")).alias("is_replay")


def _how(work: pl.DataFrame, *, has_calls: bool) -> pl.Series:
    """How a launch's chain is known, or why it isn't.

    In a stream, work runs in the order in which it was queued: what has no call and runs before all that has one was
    queued before the window. Later, the call was lost.
    """
    how = (
        pl.when("is_captured")
        .then(_lit("captured"))
        .when(pl.col("called_ns").is_not_null() & pl.col("is_replay"))
        .then(_lit("graph_launch"))
        .when(pl.col("called_ns").is_not_null())
        .then(_lit("call"))
    )
    if has_calls and work["called_ns"].null_count():
        first = pl.col("start_ns").filter(pl.col("called_ns").is_not_null()).min().over("rank", "device", "stream")
        before = first.is_null() | (pl.col("start_ns") < first)
        has_id = pl.col("correlation_id").is_not_null()
        how = how.when(has_id & before).then(_lit("launch_before_window")).when(has_id).then(_lit("call_missing"))
    return work.select(how.otherwise(_lit("no_call")).alias("how"))["how"]


def _lit(how: How) -> pl.Expr:
    return pl.lit(how, dtype=HOWS)


def _from_ops(trace: Trace, tree: CallTree, root: int, work: pl.DataFrame) -> pl.DataFrame:
    """Launches without a call, by the op whose id they carry."""
    lost = work.with_row_index("row").filter(
        pl.col("called_ns").is_null() & pl.col("external_id").is_not_null() & ~pl.col("is_replay")
    )
    if not lost.height:
        return work
    ids = ["rank", "process", "external_id"]
    ops = trace.ops.select("op", *THREAD, "start_ns", "external_id").filter(pl.col("external_id").is_not_null())
    wanted = ops.join(lost.lazy().select(ids).unique(), on=ids, how="semi", nulls_equal=True)
    found = wanted.sort("start_ns", maintain_order=True).unique(ids, keep="first", maintain_order=True).collect()
    moments = found.rename({"start_ns": "called_ns"}).with_columns(pl.lit(None, dtype=pl.Int64).alias("path_id"))
    nodes = chains_at(trace, tree, moments, root=root)
    at_op = [_up_to(tree, node, op) for node, op in zip(nodes.tolist(), found["op"], strict=True)]
    known = found.select(*ids, pl.Series("node_of_op", at_op, dtype=pl.Int64)).filter(pl.col("node_of_op") != ROOT)
    rows = lost.select("row", *ids).join(known, on=ids, nulls_equal=True).select("row", "node_of_op")
    is_known = pl.col("node_of_op").is_not_null()
    return (
        work.with_row_index("row")
        .join(rows, on="row", how="left", maintain_order="left")
        .with_columns(
            pl.when(is_known).then("node_of_op").otherwise("node").alias("node"),
            pl.when(is_known).then(_lit("external_id")).otherwise("how").alias("how"),
        )
        .drop("row", "node_of_op")
    )


def _up_to(tree: CallTree, node: int, op: str) -> int:
    """The innermost node of this op in a chain."""
    while node != ROOT and tree.label_of(node)[:2] != ("op", op):
        node = tree.parent[node]
    return node
