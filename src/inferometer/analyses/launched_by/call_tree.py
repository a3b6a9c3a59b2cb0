"""The tree of who launched what, with the device time of each node: its own and with all below it.

The kernels are the leaves. Layers may be one node (`layers.*`) or each its own; Python frames may be left out, since
modules and ops say most of what they do. Launches of unknown origin come at the top, by reason: time is conserved.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec
import numpy as np
import polars as pl

from inferometer.analyses.launched_by.attribution import Attribution
from inferometer.analyses.launched_by.call_tree_nodes import Frames, as_frame, build_nodes
from inferometer.analyses.launched_by.remarks import site_remarks
from inferometer.analyses.launched_by.site_times import Layers
from inferometer.analyses.launched_by.user_frames import UserCode
from inferometer.analyses.result import Result
from inferometer.analyses.rows import compile_match, finds_kernel
from inferometer.trace.losses import Losses


class TreeOptions(msgspec.Struct, frozen=True):
    """What a tree is made of, and which of its nodes to show; each as `call_tree` has it."""

    layers: Layers = "pooled"
    frames: Frames = "auto"
    code: UserCode = msgspec.field(default_factory=UserCode)
    depth: int | None = None
    min_share: float = 0.0
    match: str | None = None


@dataclass(frozen=True)
class CallTreeTable(Result):
    """`frame`: a row per node, depth first, callees longest first.

    `node`, `parent` (null for the outermost), `depth`, `kind` (`span`, `frame`, `module`, `op`, `graph`, `kernel`,
    `unknown`), `name`, `count` of launches, `self_ns`, `total_ns` with all callees, `share` of all device time, and
    `direct_ns`, the time of kernels right below. Kernels are leaves, so only they have `self_ns`. The outermost nodes'
    totals add up to `total_ns`; those of kind `unknown` to `unattributed_ns`. `shown`: the nodes that were asked for.
    """

    view: ClassVar[str] = "call_tree"
    source: str
    frame: pl.DataFrame
    shown: pl.DataFrame
    layers: Layers
    frames: Frames
    launches: int
    total_ns: int
    unattributed_ns: int
    notable: tuple[str, ...]
    losses: Losses

    @property
    def attributed_ns(self) -> int:
        """Time of launches with any chain."""
        return self.total_ns - self.unattributed_ns

    def to_polars(self) -> pl.DataFrame:
        """One row per node that was asked for."""
        return self.shown

    def as_json(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "layers": self.layers,
            "frames": self.frames,
            "launches": self.launches,
            "total_ns": self.total_ns,
            "attributed_ns": self.attributed_ns,
            "unattributed_ns": self.unattributed_ns,
            "nodes": self.frame.to_dicts(),
            "losses": self.losses.as_dict(),
        }


def call_tree(
    found: Attribution,
    *,
    layers: Layers = "pooled",
    frames: Frames = "auto",
    code: UserCode | None = None,
    depth: int | None = None,
    min_share: float = 0.0,
    match: str | None = None,
) -> CallTreeTable:
    """The call tree of attributed launches.

    Args:
        found: Of `attribute`.
        layers: `pooled` makes one node of all layers, and of ranges whose names differ in numbers only.
        frames: Which Python frames are nodes: those of user code where calls part or launch (`auto`), all of user code,
            all, or none.
        code: What is the user's own code.
        depth: Show so many levels.
        min_share: Show nodes with at least this share of the device time, 0 to 1.
        match: Show only nodes whose name this regular expression finds (of a kernel also its short name), and those
            above them.

    Raises:
        InputError: `match` is no regular expression.
    """
    asked = TreeOptions(layers, frames, code or UserCode(), depth, min_share, match)
    rows = as_frame(build_nodes(found, layers=asked.layers, frames=asked.frames, code=asked.code))
    total_ns = int(found.launches["dur_ns"].sum())
    share = (pl.col("total_ns") / total_ns if total_ns else pl.lit(0.0)).alias("share")
    frame = rows.with_columns(share)
    return CallTreeTable(
        source=found.source,
        frame=frame,
        shown=shown_nodes(frame, asked),
        layers=asked.layers,
        frames=asked.frames,
        launches=found.launches.height,
        total_ns=total_ns,
        unattributed_ns=int(frame.filter(pl.col("kind") == "unknown")["total_ns"].sum()),
        notable=tuple(site_remarks(found, None)),
        losses=found.losses,
    )


def shown_nodes(frame: pl.DataFrame, asked: TreeOptions) -> pl.DataFrame:
    """The nodes that were asked for; `frame` has `parent`, `depth`, `name` and `share`, callers before callees.

    Raises:
        InputError: `match` is no regular expression.
    """
    pattern = compile_match(asked.match)
    keep = frame["share"].to_numpy() >= asked.min_share
    if asked.depth is not None:
        keep &= frame["depth"].to_numpy() < asked.depth
    if pattern is not None:
        nodes = frame.select("kind", "name").iter_rows()
        found = [
            finds_kernel(pattern, name) if kind == "kernel" else bool(pattern.search(name)) for kind, name in nodes
        ]
        keep &= _with_callers(frame, found)
    return frame.filter(pl.Series(keep, dtype=pl.Boolean))


def _with_callers(frame: pl.DataFrame, found: Sequence[bool]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """The nodes found, and all above them. Rows stand depth first, so callers come before callees."""
    keep = np.array(found, dtype=bool)
    parents = frame["parent"].fill_null(-1).to_list()
    for node in range(len(parents) - 1, -1, -1):
        if keep[node] and parents[node] >= 0:
            keep[parents[node]] = True
    return keep
