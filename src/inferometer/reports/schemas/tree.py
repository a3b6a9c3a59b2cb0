"""`tree`: device time along the call tree."""

from typing import Annotated

from inferometer.reports.schemas.fields import Document, Launches, Losses, Part, Remarks, Share, Source, TotalNs, says


class Node(Part):
    """A node. Kernels are leaves; the outermost nodes' totals add up to the document's."""

    node: Annotated[int, says("Its number.")]
    parent: Annotated[int | None, says("Number of the node above; null for the outermost.")]
    depth: Annotated[int, says("0 for the outermost.")]
    kind: Annotated[str, says("`span`, `frame`, `module`, `op`, `graph`, `kernel` or `unknown`.")]
    name: Annotated[str, says("What it is called.")]
    count: Launches
    self_ns: Annotated[int, says("Without callees, ns: only kernels have any.")]
    total_ns: Annotated[int, says("With all callees, ns.")]
    direct_ns: Annotated[int, says("Time of kernels right below, ns.")]
    share: Share


class CallTree(Document):
    """Device time along the call tree; nodes depth first, callees longest first."""

    source: Source
    layers: Annotated[str, says("`pooled` where all layers are one node, or `apart`.")]
    frames: Annotated[str, says("Which Python frames are nodes: `auto`, `none`, `user` or `all`.")]
    launches: Launches
    total_ns: TotalNs
    attributed_ns: Annotated[int, says("Of `total_ns` what has any chain, ns.")]
    unattributed_ns: Annotated[int, says("And what has none, ns.")]
    nodes: list[Node]
    remarks: Remarks
    losses: Losses


DOCUMENT = CallTree
