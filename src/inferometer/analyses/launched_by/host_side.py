"""What a trace knows of its host: ranges of ops, modules, frames and names on each thread, as chains are made of.

Ranges on a device's own track are the tool's projection of host ranges, and are left out.
"""

import re
from collections.abc import Sequence

import numpy as np
import polars as pl

from inferometer.analyses.launched_by.chain_tree import ROOT, CallTree, Kind, Label
from inferometer.analyses.launched_by.chains import Ranges, find_chains
from inferometer.analyses.named_ranges import on_device
from inferometer.analyses.nesting import Numbers, holds_any, sort_points
from inferometer.analyses.numbering import number_by_first
from inferometer.trace.lean import has_one
from inferometer.trace.trace import Trace

THREAD = ["rank", "process", "thread"]
NEEDED = {  # the columns of each table that chains are made of
    "ops": ("op", *THREAD, "start_ns", "dur_ns", "external_id", "kernel_file", "kernel_hash"),
    "frames": ("frame", "module", *THREAD, "start_ns", "dur_ns"),
    "spans": ("span", "domain", *THREAD, "device", "stream", "start_ns", "dur_ns"),
    "call_paths": ("path_id", "parent_id", "frame", "module"),
}
_RANKS: dict[Kind, int] = {"span": 0, "module": 1, "frame": 1, "op": 2}
_NAMES = {"ops": ["op", "kernel_file", "kernel_hash"], "frames": ["frame", "module"], "spans": ["span"]}
_AT_ONCE = 2**17  # ranges, so that columns of all of them are never needed
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+(?=>)")  # of the object that a method belongs to: another in each run


def chains_at(
    trace: Trace,
    tree: CallTree,
    moments: pl.DataFrame,
    *,
    tables: Sequence[str] = ("spans", "frames", "ops"),
    root: int = ROOT,
) -> Numbers:
    """The node of the chain at each moment; `root` where nothing is known around it.

    A path recorded with the call itself (`path_id`) goes below what is around the call by time, and in place of
    Python frames, never twice.

    Args:
        trace: Needs the columns `NEEDED`.
        tree: Grows by what is found.
        moments: `rank`, `process`, `thread`, `called_ns` and `path_id` of each.
        tables: Whose ranges to take.
        root: The node that chains hang below.
    """
    if not moments.height:
        return np.empty(0, dtype=np.int64)
    places = moments.select(THREAD)
    threads = (places.head(1) if has_one(places, *THREAD) else places.unique().sort(places.columns)).with_row_index(
        "lane"
    )
    points = sort_points(lanes_of(moments, threads), moments["called_ns"].to_numpy())
    _, lanes, times = points
    parts = [_ranges(trace, tree, table, threads, lanes, times) for table in tables]
    columns = (np.concatenate([getattr(part, name) for part in parts]) for name in Ranges.__struct_fields__)
    nodes = find_chains(tree, Ranges(*columns), points, root=root)
    paths = moments["path_id"]
    return nodes if paths.null_count() == paths.len() else _below(trace, tree, nodes, paths)


def lanes_of(rows: pl.DataFrame, threads: pl.DataFrame) -> Numbers:
    """The number of each row's thread; -1 for threads that nothing is asked of."""
    if threads.height == 1 and rows.height:
        same = (pl.col(name).eq_missing(pl.lit(threads[name][0], dtype=pl.Int64)) for name in THREAD)
        return rows.select(pl.all_horizontal(same).cast(pl.Int64) - 1).to_series().to_numpy()
    joined = rows.select(THREAD).join(threads, on=THREAD, how="left", nulls_equal=True, maintain_order="left")
    return joined["lane"].cast(pl.Int64).fill_null(-1).to_numpy()


def _ranges(trace: Trace, tree: CallTree, table: str, threads: pl.DataFrame, lane: Numbers, time: Numbers) -> Ranges:
    """The ranges of a table that hold any of the moments, which are sorted: most Python frames launch nothing."""
    frame = trace.compact(table)
    if table == "spans":
        frame = frame.filter(~on_device())
    recorded = frame.select(*_NAMES[table], *THREAD, "start_ns", "dur_ns").collect()
    if recorded["dur_ns"].null_count():
        recorded = recorded.filter(pl.col("dur_ns").is_not_null())
    columns = [np.empty((5, 0), dtype=np.int64)]
    for some in recorded.iter_slices(_AT_ONCE):
        of, start = lanes_of(some, threads), some["start_ns"].to_numpy()
        end = start + some["dur_ns"].to_numpy()
        rows = np.flatnonzero(holds_any(of, start, end, lane, time) & (of >= 0))
        columns.append(
            np.stack([of[rows], start[rows], end[rows], *_labels(tree, table, some.select(_NAMES[table])[rows])])
        )
    of, start, end, label, rank = np.concatenate(columns, axis=1)
    return Ranges(of, start, end, label, np.full(len(of), table == "spans"), rank)


def _labels(tree: CallTree, table: str, names: pl.DataFrame) -> tuple[Numbers, Numbers]:
    """The label of each of these rows, and its place among ranges with equal times."""
    number, first = number_by_first(names)
    labels = [_label(table, values) for values in names[first].iter_rows()]
    label = np.array([tree.number(each) for each in labels], dtype=np.int64)
    rank = np.array([_RANKS[each.kind] for each in labels], dtype=np.int64)
    return label[number], rank[number]


def _label(table: str, values: Sequence[str | None]) -> Label:
    if table == "ops":
        return Label("op", values[0] or "", *values[1:])
    if table == "frames":
        return Label("module" if values[1] else "frame", name_frame(*values))
    return Label("span", values[0] or "")


def name_frame(frame: str | None, module: str | None) -> str:
    """What a row of `frames` is called: its module, or else the frame without the addresses of objects."""
    return module or _ADDRESS.sub("", frame or "")


def _below(trace: Trace, tree: CallTree, nodes: Numbers, paths: pl.Series) -> Numbers:
    """The chains with each call's own path below them, where there are no frames yet."""
    known = trace.call_paths.select("path_id", "parent_id", "frame", "module").collect()
    rows = {path: (parent, _step(tree, frame, module)) for path, parent, frame, module in known.iter_rows()}
    has_frames = _with_frames(tree, set(nodes.tolist()))
    made: dict[tuple[int, int], int] = {}
    found = nodes.copy()
    for i, (node, path) in enumerate(zip(nodes.tolist(), paths.to_list(), strict=True)):
        if path is None or node in has_frames:
            continue
        if (node, path) not in made:
            made[node, path] = _extend(tree, node, path, rows)
        found[i] = made[node, path]
    return found


def _step(tree: CallTree, frame: str | None, module: str | None) -> int | None:
    if frame:
        return tree.number(Label("frame", frame))
    return tree.number(Label("module", module)) if module else None


def _with_frames(tree: CallTree, nodes: set[int]) -> set[int]:
    return {
        node
        for node in nodes
        if node != ROOT and any(tree.label_of(each).kind in ("frame", "module") for each in tree.chain(node))
    }


def _extend(tree: CallTree, node: int, path: int, rows: dict[int, tuple[int | None, int | None]]) -> int:
    steps: list[int] = []
    seen: set[int] = set()
    at: int | None = path
    while at is not None and at in rows and at not in seen:
        seen.add(at)
        at, label = rows[at]
        if label is not None:
            steps.append(label)
    for label in reversed(steps):
        node = tree.child(node, label)
    return node
