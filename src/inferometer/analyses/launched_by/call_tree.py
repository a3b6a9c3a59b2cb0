"""The tree of who launched what, with the device time of each node: its own and with all below it.

The kernels are the leaves. Layers may be one node (`layers.*`) or each its own; Python frames may be left out, since
modules and ops say most of what they do. Launches of unknown origin stand at the top, by reason: time is conserved.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from inferometer.analyses.launched_by.attribution import Attribution
from inferometer.analyses.launched_by.call_tree_nodes import Frames, as_frame, build_nodes
from inferometer.analyses.launched_by.remarks import site_remarks
from inferometer.analyses.launched_by.site_times import Layers
from inferometer.analyses.launched_by.user_frames import UserCode
from inferometer.analyses.result import Field, Result, Section
from inferometer.analyses.rows import compile_match
from inferometer.names import decode
from inferometer.trace.losses import Losses
from inferometer.units import format_share

_FIELDS = (
    Field("share", "Time", "share"),
    Field("total_ns", "Total Time", "ns"),
    Field("direct_ns", "Launched Here", "ns", spare=2),
    Field("count", "Launches", "count", spare=1),
    Field("kind", "Kind", "text", spare=3),
    Field("indented", "Name", "name"),
)


@dataclass(frozen=True)
class CallTreeTable(Result):
    """`frame`: a row per node, depth first, callees longest first.

    `node`, `parent` (null for the outermost), `depth`, `kind` (`span`, `frame`, `module`, `op`, `graph`, `kernel`,
    `unknown`), `name`, `count` of launches, `self_ns`, `total_ns` with all callees, `share` of all device time, and
    `direct_ns`, the time of kernels right below. Kernels are leaves, so only they have `self_ns`. The outermost nodes'
    totals add up to `total_ns`; those of kind `unknown` to `unattributed_ns`. `shown`: the nodes that were asked for.
    """

    source: str
    frame: pl.DataFrame
    shown: pl.DataFrame
    layers: Layers
    frames: Frames
    launches: int
    total_ns: int
    unattributed_ns: int
    notes: tuple[str, ...]
    losses: Losses

    @property
    def attributed_ns(self) -> int:
        """Time of launches with any chain."""
        return self.total_ns - self.unattributed_ns

    def sections(self) -> Sequence[Section]:
        return [Section("Call tree", _FIELDS, _joined(self.shown))]

    def remarks(self) -> Sequence[str]:
        return list(self._remarks())

    def _remarks(self) -> Iterator[str]:
        if self.shown.height < self.frame.height:
            yield f"{self.shown.height:,} of {self.frame.height:,} nodes shown: --min-share 0 shows all."
        if self.total_ns:
            share = format_share(self.attributed_ns / self.total_ns)
            yield f"{share} of the device time is attributed to who launched it."
        yield from self.notes

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
            "remarks": list(self._remarks()),
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
        match: Show only nodes whose name this regular expression finds, and those above them.

    Raises:
        InputError: `match` is no regular expression.
    """
    pattern = compile_match(match)
    rows = as_frame(build_nodes(found, layers=layers, frames=frames, code=code or UserCode()))
    total_ns = int(found.launches["dur_ns"].sum())
    share = (pl.col("total_ns") / total_ns if total_ns else pl.lit(0.0)).alias("share")
    frame = rows.with_columns(share)
    keep = frame["share"].to_numpy() >= min_share
    if depth is not None:
        keep &= frame["depth"].to_numpy() < depth
    if pattern is not None:
        keep &= _with_callers(frame, [bool(pattern.search(name)) for name in frame["name"]])
    return CallTreeTable(
        source=found.source,
        frame=frame,
        shown=frame.filter(pl.Series(keep, dtype=pl.Boolean)),
        layers=layers,
        frames=frames,
        launches=found.launches.height,
        total_ns=total_ns,
        unattributed_ns=int(frame.filter(pl.col("kind") == "unknown")["total_ns"].sum()),
        notes=tuple(site_remarks(found, None)),
        losses=found.losses,
    )


def _with_callers(frame: pl.DataFrame, found: Sequence[bool]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """The nodes found, and all above them. Rows stand depth first, so callers come before callees."""
    keep = np.array(found, dtype=bool)
    parents = frame["parent"].fill_null(-1).to_list()
    for node in range(len(parents) - 1, -1, -1):
        if keep[node] and parents[node] >= 0:
            keep[parents[node]] = True
    return keep


def _joined(nodes: pl.DataFrame) -> pl.DataFrame:
    """Rows to read, `indented`: ops that call one op alone and launch nothing themselves stand on its line."""
    below = nodes.group_by("parent").agg(pl.col("node").first(), pl.col("total_ns").first().alias("inner_ns"), pl.len())
    only = {parent: (node, ns) for parent, node, ns, n in below.iter_rows() if n == 1}
    kinds, totals = (dict(zip(nodes["node"], nodes[name], strict=True)) for name in ("kind", "total_ns"))
    up: dict[int, int] = {}  # how many levels up the callees of a node move
    before: dict[int, str] = {}
    rows = []
    for row in nodes.iter_rows(named=True):
        node, parent = row["node"], row["parent"]
        up[node] = up.get(parent, 0) + (parent in before)
        name = decode(row["name"]).short_name if row["kind"] == "kernel" else row["name"]
        if parent in before:
            name = f"{before[parent]} > {name}"
        inner, ns = only.get(node, (None, None))
        if row["kind"] == "op" and inner is not None and kinds[inner] == "op" and ns == totals[node]:
            before[node] = name
        else:
            rows.append({**row, "indented": "  " * (row["depth"] - up[node]) + name})
    return pl.DataFrame(rows, schema={**nodes.schema, "indented": pl.String})
