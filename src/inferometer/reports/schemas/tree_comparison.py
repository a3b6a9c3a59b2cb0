"""`tree --base`: two runs, node by node of the call tree."""

from typing import Annotated

from inferometer.reports.schemas.fields import Document, Launches, Losses, Part, Remarks, Source, says


class TreeSide(Part):
    """One of the two runs."""

    source: Source
    steps: Annotated[int | None, says("Its steps; null where the whole run is compared.")]
    launches: Launches
    outside_ns: Annotated[int, says("Time of launches in no step, which are left out, ns.")]


class NodePair(Part):
    """A node of both runs, or of one of them."""

    node: Annotated[int, says("Its number.")]
    parent: Annotated[int | None, says("Number of the node above; null for the outermost.")]
    depth: Annotated[int, says("0 for the outermost.")]
    kind: Annotated[str, says("`span`, `frame`, `module`, `op`, `graph`, `kernel` or `unknown`.")]
    name: Annotated[str, says("What it is called.")]
    status: Annotated[str | None, says("`new` or `gone` where one run alone has it.")]
    base_ns: Annotated[int, says("Time with all callees in the base, ns per what `per` says.")]
    candidate_ns: Annotated[int, says("The same in the candidate, ns.")]
    delta_ns: Annotated[int, says("Candidate less base, ns.")]
    ratio: Annotated[float | None, says("Candidate over base; null where the base has none.")]
    base_count: Annotated[float, says("Launches in the base, per what `per` says.")]
    candidate_count: Annotated[float, says("The same in the candidate.")]
    base_self_ns: Annotated[int, says("Time without callees in the base, ns.")]
    candidate_self_ns: Annotated[int, says("The same in the candidate, ns.")]
    share: Annotated[float, says("The larger time, of the larger run's total, 0 to 1.")]


class TreeComparison(Document):
    """Two runs, node by node."""

    base: TreeSide
    candidate: TreeSide
    per: Annotated[str, says("What times and counts are of: `step`, or `run`.")]
    layers: Annotated[str, says("`pooled` where all layers are one node, or `apart`.")]
    frames: Annotated[str, says("Which Python frames are nodes: `auto`, `none`, `user` or `all`.")]
    base_ns: Annotated[int, says("All of the base, ns.")]
    candidate_ns: Annotated[int, says("All of the candidate, ns.")]
    delta_ns: Annotated[int, says("Candidate less base, ns.")]
    nodes: list[NodePair]
    remarks: Remarks
    losses: Losses


DOCUMENT = TreeComparison
