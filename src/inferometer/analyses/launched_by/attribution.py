"""Who launched it: every launch of a trace with its chain of ops, modules, frames and ranges.

Parts by subject: `launched` (launches and their calls), `host_side` and `chains` (what is around a call),
`chain_tree` and `sites` (what a chain says), `user_frames`, and `replays` (what graphs launched).
"""

from collections.abc import Sequence

import msgspec
import numpy as np
import polars as pl

from inferometer.analyses.absent_work import say_no_launches
from inferometer.analyses.launched_by.captured import has_captured
from inferometer.analyses.launched_by.chain_tree import ROOT, CallTree, Label
from inferometer.analyses.launched_by.host_side import THREAD, lanes_of
from inferometer.analyses.launched_by.launched import SIZES, find_launched
from inferometer.analyses.launched_by.op_calls import LAUNCH_SHAPE, OWNER, OpCalls, or_null
from inferometer.analyses.launched_by.replays.counterparts import Reference, ReplayFit, attribute_replays
from inferometer.analyses.launched_by.replays.created_nodes import attribute_nodes
from inferometer.analyses.launched_by.sites import find_sites
from inferometer.analyses.launched_by.user_frames import UserCode
from inferometer.analyses.nesting import shared_lanes
from inferometer.analyses.selection import Selection
from inferometer.names.apis import api_kind
from inferometer.trace.losses import Losses
from inferometer.trace.trace import Trace

_CAPTURING = r"^(?:cuda|cu|hip)Stream(?:Begin|End)Capture"


class Attribution(msgspec.Struct, frozen=True):
    """`launches`: a row per launch, of `find_launched`. `sites`: a row per node of `tree`, of `sites.find_sites`.

    `fits`: what each capture gave to replays; `unfitted`: replays that fit none. `has_totals`: the source has sums by
    kernel. `why_none` says why there is no launch, where there is none. `op_calls`, where asked for: the ops of the
    trace and of each capture; `launches` then say whose (`op_source`) and which (`op_call`) owns each, null for none.
    """

    source: str
    format: str
    tree: CallTree
    launches: pl.DataFrame
    sites: pl.DataFrame
    losses: Losses
    has_totals: bool
    fits: tuple[ReplayFit, ...] = ()
    unfitted: int = 0
    why_none: str = ""
    op_calls: tuple[OpCalls, ...] = ()

    def each(self) -> pl.DataFrame:
        """A row per launch, in order of time, with all that is known of who launched it.

        What and where it ran, `how` its chain is known, and the columns of `sites`.
        """
        launches = self.launches.with_columns(pl.col("how").cast(pl.String))
        known = launches.join(self.sites, on="node", how="left", maintain_order="left")
        return known.sort("start_ns", maintain_order=True)


def attribute(
    trace: Trace,
    selection: Selection | None = None,
    *,
    captures: Sequence[Trace] = (),
    code: UserCode | None = None,
    with_op_calls: bool = False,
    with_sizes: bool = True,
) -> Attribution:
    """Find who launched the selected launches.

    Args:
        trace: Needs the tables and columns of `launched.NEEDED`; any may be empty.
        selection: Which launches; all by default.
        captures: Traces that show the kernels of replayed graphs with their chains: of the graph's capture, where its
            launches are calls alone that name their kernels (ROCm records them so), or of an eager run of the same
            batch. Captures in `trace` itself are used, too.
        code: What is the user's own code.
        with_op_calls: Find the call of an op that owns each launch, too, and keep the columns `op_calls.LAUNCH_SHAPE`.
        with_sizes: Keep the columns `launched.SIZES`, a third of the memory; False: where captures need them alone.

    Raises:
        InputError: The selection names something that is not there.
    """
    selection = selection or Selection()
    tree = CallTree()
    needs_sizes = with_sizes or len(captures) > 0 or has_captured(trace)
    shape = (*(SIZES if needs_sizes else ()), *(LAUNCH_SHAPE if with_op_calls else ()))
    work = attribute_nodes(trace, tree, find_launched(trace, selection, tree, more=shape))
    captured = [
        find_launched(each, Selection(), tree, root=_capture_root(tree, number), more=SIZES)
        for number, each in enumerate(captures)
    ]
    op_calls = tuple(OpCalls(each) for each in (trace, *captures)) if with_op_calls else ()
    if op_calls:
        work, *captured = (
            rows.with_columns(_owners(calls, number, rows))
            for number, (calls, rows) in enumerate(zip(op_calls, (work, *captured), strict=True))
        )
    references = [_reference(each, rows, _nameless(each)) for each, rows in zip(captures, captured, strict=True)]
    own = work.filter("is_captured")
    if own.height:
        references.append(_reference(trace, own))
    replays = attribute_replays(tree, work, references)
    return Attribution(
        source=trace.facts.source,
        format=trace.facts.format,
        tree=tree,
        launches=replays.work,
        sites=find_sites(tree, code or UserCode()),
        losses=trace.losses,
        has_totals=trace.totals.head(1).collect().height > 0,
        fits=replays.fits,
        unfitted=replays.unfitted,
        why_none="" if replays.work.height else say_no_launches(trace),
        op_calls=op_calls,
    )


def _owners(calls: OpCalls, number: int, rows: pl.DataFrame) -> list[pl.Series]:
    """The columns `op_source` and `op_call` of these launches, which are of the trace with this number."""
    call = or_null("op_call", calls.owning(rows))
    return [
        pl.select(pl.when(call.is_not_null()).then(pl.lit(number, dtype=pl.Int64))).to_series().alias("op_source"),
        call,
    ]


def _capture_root(tree: CallTree, number: int) -> int:
    """Chains of each capture hang below a node of their own: equal names in two traces may mean different modules."""
    return tree.child(ROOT, tree.number(Label("graph", f"capture {number}")))


def _reference(trace: Trace, work: pl.DataFrame, nameless: int | None = None) -> Reference:
    """What the trace shows with chains of its own, in the order of calls; each capture on each thread is a part."""
    known = work.filter(pl.col("called_ns").is_not_null() & ~pl.col("is_replay"))
    placed = _with_capture(known, trace).sort(*THREAD, "called_ns", maintain_order=True)
    part = pl.struct(*THREAD, "is_captured", "capture").rank("dense").cast(pl.Int64).alias("part")
    owner = [name for name in OWNER if name in placed.columns]
    return Reference(trace.facts.source, placed.select("kernel", "grid", "block", "node", *owner, part), nameless)


def _with_capture(rows: pl.DataFrame, trace: Trace) -> pl.DataFrame:
    """`rows` with `capture`: beginnings and ends of captures on the thread until `called_ns`; odd within one."""
    marks = trace.calls.filter(pl.col("api").str.contains(_CAPTURING)).select(*THREAD, "start_ns").collect()
    threads = pl.concat([marks.select(THREAD), rows.select(THREAD)]).unique().sort(THREAD).with_row_index("lane")
    lane, time = lanes_of(marks, threads), marks["start_ns"].to_numpy()
    order = np.lexsort((time, lane))
    asked, called = lanes_of(rows, threads), rows["called_ns"].to_numpy()
    points = np.argsort(asked, kind="stable")
    count = np.zeros(rows.height, dtype=np.int64)
    for of_marks, of_points in shared_lanes(lane[order], asked[points]):
        some = points[of_points]
        count[some] = np.searchsorted(time[order][of_marks], called[some], side="right")
    return rows.with_columns(pl.Series("capture", count, dtype=pl.Int64))


def _nameless(trace: Trace) -> int:
    """Launch calls of captures that don't name their kernel."""
    calls = trace.calls.filter(pl.col("kernel").is_null())
    launching = [api for api in calls.select("api").unique().collect()["api"] if api_kind(api) == "launch"]
    rows = calls.filter(pl.col("api").is_in(launching)).select(*THREAD, pl.col("start_ns").alias("called_ns"))
    return _with_capture(rows.collect(), trace).filter(pl.col("capture") % 2 == 1).height
