"""Groups from launches: what pairs and runs say."""

from collections import Counter

import numpy as np
import polars as pl

from inferometer.analyses.groups.evidence import evidence_of
from inferometer.analyses.groups.learned import Lessons
from inferometer.analyses.groups.members import Group, Member, MemberKernel, Refusal, Site
from inferometer.analyses.groups.names import call_sentence, group_name
from inferometer.analyses.groups.ordered_launches import NONE, Numbers, Ordered, order_launches
from inferometer.analyses.groups.pairs import Edges, find_edges
from inferometer.analyses.groups.rules import GROUPED
from inferometer.analyses.groups.runs import RunGroup, Runs, find_runs
from inferometer.analyses.groups.sequences import find_sequences
from inferometer.analyses.launched_by.captured import captured_launches
from inferometer.analyses.launched_by.chain_tree import CallTree
from inferometer.analyses.launched_by.host_side import chains_at
from inferometer.analyses.launched_by.sites import find_sites
from inferometer.analyses.launched_by.user_frames import UserCode
from inferometer.analyses.selection import Selection
from inferometer.trace.trace import Trace

_SITE = ("op", "module", "frame")
_EDGE = (
    *("count", "known", "same", "forward", "backward", "confidence", "host_gap_ns", "device_gap_ns", "contexts"),
    *("ruling", "learned_on", "declared"),
)


def groups_of_launches(
    trace: Trace, selection: Selection, lessons: Lessons, *, min_support: int | None = None
) -> tuple[list[Group], list[Refusal], Ordered]:
    """Groups, most time first; what was refused; and the launches that they were found in."""
    launches = selection.apply(trace, compact=True)
    work = order_launches(launches, captured_launches(trace, selection), trace.compact("calls"), trace.ops)
    edges = find_edges(work, lessons, min_support=min_support)
    runs = find_runs(work, edges.together)
    sites = _sites(trace, work, runs)
    groups, refused = [], []
    for found in runs.groups:
        group = _group(work, edges, runs, found, sites, lessons)
        if group.count < (min_support or GROUPED[group.verdict]):
            refused.append(_rare(group))
        else:
            groups.append(group)
    order = sorted(groups, key=lambda group: (-group.total_ns, -group.count, group.name))
    return order, [*find_sequences(work, edges), *refused], work


def _rare(group: Group) -> Refusal:
    kernels = tuple(kernel for member in group.members for kernel in member.kernels)
    times = "once" if group.count == 1 else f"{group.count:,} times"
    return Refusal(kernels, group.count, f"Seen only {times}.", group.total_ns)


def _sites(trace: Trace, work: Ordered, runs: Runs) -> pl.DataFrame:
    """How many runs of each signature have an op, a module and a frame: `signature`, these, and `count`.

    The module and the frame are the innermost around all launches of a run; its calls have to be known.
    """
    call = work.call[runs.rows]
    is_unknown = (call == NONE) | work.in_graph[runs.rows]
    is_known = np.bincount(runs.run[is_unknown], minlength=len(runs.signature)) == 0
    asked = is_known[runs.run]
    tree = CallTree()
    chains = chains_at(trace, tree, work.calls[call[asked]], tables=("frames",))
    nodes = _around(tree, runs.run[asked], chains)
    first = runs.rows[np.searchsorted(runs.run, np.flatnonzero(is_known))]
    op = work.op_name[first]
    where = nodes.join(find_sites(tree, UserCode()), on="node", how="left", maintain_order="left")
    frame = pl.DataFrame(
        {
            "signature": runs.signature[is_known],
            "op": pl.Series([work.ops[row] if row != NONE else None for row in op.tolist()], dtype=pl.String),
            "module": where["module_pooled"],
            "frame": where["user_frame"],
        }
    )
    return frame.group_by("signature", *_SITE).agg(pl.len().cast(pl.Int64).alias("count"))


def _around(tree: CallTree, run: Numbers, node: Numbers) -> pl.DataFrame:
    """The innermost `node` around all launches of each run, in order. Few sets of nodes are distinct."""
    of_run = pl.DataFrame({"run": run, "node": node}).group_by("run").agg(pl.col("node").unique().sort())
    sets = of_run.group_by("node").agg("run")
    shared = pl.Series("node", [tree.shared(nodes) for nodes in sets["node"].to_list()], dtype=pl.Int64)
    return sets.select("run", shared).explode("run").sort("run").select("node")


def _group(work: Ordered, edges: Edges, runs: Runs, found: RunGroup, sites: pl.DataFrame, lessons: Lessons) -> Group:
    members = tuple(_member(work, runs, found, key) for key in found.roles)
    pairs = _pairs(work, edges, found)
    verdict = next(verdict for verdict in GROUPED if verdict in pairs["ruling"])
    keys, ops, where = list(found.roles), [op for op, _ in found.ops.most_common()], _sites_of(found, sites)
    source = None
    if verdict == "learned call":
        source, where = lessons.sites(kernel for member in members for kernel in member.kernels)
        ops = list(dict.fromkeys(site.op for site in where if site.op))
    return Group(
        name=group_name(keys, members),
        verdict=verdict,
        members=members,
        count=found.count,
        confidence=pairs["confidence"].min(),  # type: ignore[arg-type]
        evidence=tuple(evidence_of(pairs, found, members)),
        call=call_sentence(keys, members, ops, is_parted=found.is_parted),
        sites=tuple(where),
        by_name=found.by_name,
        learned_on=source,
        edges=tuple(pairs.select("from", "to", *_EDGE).to_dicts()),
    )


def _member(work: Ordered, runs: Runs, found: RunGroup, key: str) -> Member:
    every = np.bincount(work.kernel, minlength=len(work.kernels))
    ran = np.bincount(work.kernel[~work.is_captured], minlength=len(work.kernels))
    parts = [
        MemberKernel(work.kernels[kernel], count, int(every[kernel]), found.ns[kernel] if ran[kernel] else None)
        for kernel, count in sorted(found.kernels[key].items(), key=lambda item: (-item[1], work.kernels[item[0]]))
    ]
    return Member(runs.roles[key].label, tuple(parts), optional=found.present[key] < found.count)


def _pairs(work: Ordered, edges: Edges, found: RunGroup) -> pl.DataFrame:
    """The neighbours in the group, the most frequent first, with their names."""
    own = pl.DataFrame(sorted(found.pairs), schema={"a": pl.Int64, "b": pl.Int64}, orient="row")
    pairs = own.join(edges.frame, on=["a", "b"], maintain_order="left").sort(
        "count", descending=True, maintain_order=True
    )
    names = [
        pl.Series(name, [work.folded[i] for i in pairs[column]], dtype=pl.String)
        for name, column in (("from", "a"), ("to", "b"))
    ]
    return pairs.with_columns(names)


def _sites_of(found: RunGroup, sites: pl.DataFrame) -> list[Site]:
    own = sites.filter(pl.col("signature").is_in(found.signatures))
    counts: Counter[tuple[str | None, ...]] = Counter()
    for *site, count in own.select(*_SITE, "count").iter_rows():
        if any(site):
            counts[tuple(site)] += count
    ordered = sorted(counts.items(), key=lambda item: (-item[1], *(part or "" for part in item[0])))
    return [Site(op, module, frame, count, found.count) for (op, module, frame), count in ordered]
