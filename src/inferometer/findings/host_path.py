"""What the launching thread did while a device waited: the chain of frames and ops that was open for most of that time.

A gap is looked at `_SAMPLES` times between the moment at which the device ran dry and the call that queued its next
work, as a sampling profiler would. From the outermost frame inwards, the chain is followed for as long as one callee
is open in more than half of all samples, weighted by time. Ranges that users name are left out: their names differ
from step to step.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from inferometer.analyses.call_sites.host_side import THREAD, chains_at
from inferometer.analyses.call_sites.sites import find_sites
from inferometer.analyses.call_sites.tree import ROOT, CallTree
from inferometer.analyses.call_sites.user_frames import UserCode
from inferometer.analyses.nesting import Numbers, find_innermost
from inferometer.names.apis import canonical_api
from inferometer.trace.trace import Trace

_SAMPLES = 8  # a gap
_GAPS = 256  # the longest: they hold nearly all of the time where gaps are long
_MOST = 0.5  # of the time: what is open for no more is no answer
_SHOWN = 3  # links of the chain, the innermost
_LONG_CALL_NS = 10_000  # a launch takes 2 to 10 μs on the host; what takes longer does something else
Weights = NDArray[np.float64]


@dataclass(frozen=True)
class HostPath:
    """`name`: the innermost link of the user's own code, or of any code where none is. `text`: the last links to it.

    `share` of the time was spent in `name`. `call`: the host call that took most of the time, with its share, where one
    stands out.
    """

    name: str | None
    text: str | None
    share: float
    call: tuple[str, float] | None


def find_host_path(trace: Trace, gaps: pl.DataFrame) -> HostPath | None:
    """What was open during most of the time of these gaps.

    Args:
        trace: Needs the columns of `host_side.NEEDED`, and `calls`.
        gaps: Rows of `LaunchEvidence.gaps`.

    Returns:
        None where the launching thread isn't known, or was in the very call that launched all the time.
    """
    until = pl.min_horizontal(pl.col("gap_start_ns") + pl.col("gap_ns"), pl.col("called_ns"))
    parts = gaps.with_columns((until - pl.col("gap_start_ns")).alias("part_ns"))
    longest = parts.filter(pl.col("part_ns") > 0, pl.col("thread").is_not_null()).top_k(_GAPS, by="part_ns")
    if longest.is_empty():
        return None
    moments = _moments(longest)
    weights = moments["part_ns"].to_numpy().astype(np.float64)
    tree = CallTree()
    nodes = chains_at(trace, tree, moments, tables=("frames", "ops"))
    below = _weight_below(tree, nodes, weights)
    links = _told(tree, _hot_path(tree, below, _MOST * float(weights.sum())))
    call = _longest_call(trace, moments, weights)
    if not links:
        return HostPath(None, None, 0.0, call)
    names = [tree.label_of(node).name for node in links]
    share = float(below[links[-1]] / weights.sum())
    return HostPath(names[-1], " > ".join(names[-_SHOWN:]), share, call)


def find_sites_at(trace: Trace, moments: pl.DataFrame) -> pl.DataFrame:
    """`moments` with what stood around each: the columns of `sites.find_sites`.

    Args:
        trace: Needs the columns of `host_side.NEEDED`.
        moments: `rank`, `process`, `thread`, `called_ns`.
    """
    tree = CallTree()
    nodes = chains_at(trace, tree, moments.with_columns(pl.lit(None, dtype=pl.Int64).alias("path_id")))
    sites = find_sites(tree, UserCode())
    placed = moments.with_columns(pl.Series("node", nodes, dtype=pl.Int64))
    return placed.join(sites, on="node", how="left", maintain_order="left")


def describe_site(op_chain: str | None, user_frame: str | None) -> str | None:
    """`aten::item in serving/penalties.py(31): rescore`: the outermost op and the user's frame, as far as known."""
    op = op_chain.split(" > ")[0] if op_chain else None
    return " in ".join(part for part in (op, user_frame) if part) or None


def _moments(gaps: pl.DataFrame) -> pl.DataFrame:
    """Some moments a gap, each in the middle of one of its equal parts."""
    parts = pl.DataFrame({"part": range(_SAMPLES)}, schema={"part": pl.Int64})
    at = pl.col("gap_start_ns") + pl.col("part_ns") * (2 * pl.col("part") + 1) // (2 * _SAMPLES)
    every = gaps.select(*THREAD, "gap_start_ns", "part_ns").join(parts, how="cross")
    no_path = pl.lit(None, dtype=pl.Int64).alias("path_id")
    return every.select(*THREAD, at.alias("called_ns"), "part_ns", no_path)


def _weight_below(tree: CallTree, nodes: Numbers, weights: Weights) -> Weights:
    """The weight of all moments at or below each node."""
    known = nodes != ROOT
    sums: Weights = np.bincount(nodes[known], weights=weights[known], minlength=len(tree)).astype(np.float64)
    for node in range(len(tree) - 1, -1, -1):  # a caller stands before its callees
        if tree.parent[node] != ROOT:
            sums[tree.parent[node]] += sums[node]
    return sums


def _hot_path(tree: CallTree, below: Weights, least: float) -> list[int]:
    """The nodes with most of the weight, the outermost first."""
    children: dict[int, list[int]] = {}
    for node, parent in enumerate(tree.parent):
        children.setdefault(parent, []).append(node)
    path: list[int] = []
    node = ROOT
    while callees := children.get(node):
        node = max(callees, key=lambda callee: float(below[callee]))
        if below[node] <= least:
            break
        path.append(node)
    return path


def _told(tree: CallTree, path: list[int]) -> list[int]:
    """The links worth telling: the user's own frames, or all where there are none."""
    code = UserCode()
    labels = [(node, tree.label_of(node)) for node in path]
    return [node for node, label in labels if label.kind == "frame" and code.is_own(label.name)] or path


def _longest_call(trace: Trace, moments: pl.DataFrame, weights: Weights) -> tuple[str, float] | None:
    """The call that was open in most of the time, canonical, with its share; None where none stands out."""
    threads = moments.select(THREAD).unique(maintain_order=True).with_row_index("lane")
    long = trace.calls.filter(pl.col("dur_ns") >= _LONG_CALL_NS).select(*THREAD, "api", "start_ns", "dur_ns")
    calls = long.join(threads.lazy(), on=THREAD, nulls_equal=True).collect()
    lanes = moments.select(THREAD).join(threads, on=THREAD, nulls_equal=True, how="left", maintain_order="left")["lane"]
    start, dur = (calls[name].to_numpy() for name in ("start_ns", "dur_ns"))
    lane, of = (column.cast(pl.Int64).to_numpy() for column in (calls["lane"], lanes))
    found = find_innermost(lane, start, start + dur, of, moments["called_ns"].to_numpy())
    inside = found >= 0
    if not inside.any():
        return None
    apis = calls["api"].gather(found[inside])
    sums = pl.DataFrame({"api": apis, "ns": weights[inside]}).group_by("api").agg(pl.col("ns").sum())
    api, ns = sums.sort("ns", "api", descending=[True, False]).row(0)
    share = float(ns / weights.sum())
    return (canonical_api(api), share) if share >= _MOST / 2 else None
