"""First remarks as sentences: what stands out in a trace, with its size; idle devices first, they cost the most.

Each rule says nothing below its threshold. They point at what to look into; `findings` go further.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any

import numpy as np
import polars as pl

from inferometer.analyses.absent_work import say_why_none
from inferometer.analyses.tables.kernel_remarks import tell_printed_sums, tell_whole_graphs
from inferometer.analyses.tables.kernels import KernelTable
from inferometer.analyses.timeline.gaps import find_gaps
from inferometer.analyses.timeline.work import at_place, find_work, place_name
from inferometer.names import decode
from inferometer.names.apis import api_kind
from inferometer.trace.trace import Trace
from inferometer.units import format_count, format_duration, format_share

_CALL = ("rank", "process", "correlation_id")
_IDLE_SHARE = 0.2
_SHORT_NS = 5_000
_SHORT_SHARE = 0.5
_DOMINANT_SHARE = 0.3
_EXPOSED_COPY_SHARE = 0.05
MakeRows = Callable[[], pl.DataFrame]
"""Gives the idle gaps of all launches, as `timeline.gaps.find_gaps` does."""

_STACKS = 3
_DENSE = 4  # numbers up to the last for each id, up to which counting all is quicker than grouping
_GRAPH_LAUNCHES = 16  # more device work than this behind one host call is a graph


def find_remarks(
    trace: Trace, devices: pl.DataFrame, kernels: KernelTable, gaps: MakeRows | None = None
) -> Iterator[str]:
    """Sentences about the trace; `devices` as `device_times` gives it, `gaps` those of `find_gaps`, made elsewhere."""
    if kernels.basis == "totals":
        yield from _about_totals(trace, kernels)
    else:
        yield from _about_launches(trace, devices, kernels, gaps)
    yield from trace.facts.notes


def _about_launches(trace: Trace, devices: pl.DataFrame, kernels: KernelTable, gaps: MakeRows | None) -> Iterator[str]:
    if devices.is_empty() or (kernels.kernels == 0 and not kernels.whole_graphs):
        yield say_why_none(trace, "kernels")
        return
    others = chain(  # first, since gaps may be waited for
        [*tell_whole_graphs(kernels)],
        [*_short_kernels(trace)],
        _copies(devices),
        _dominant(kernels),
        [*_graphs(trace)],
        _before_window(trace),
        _suspect_times(trace),
    )
    yield from _idle(trace, devices, gaps)
    yield from others


def _about_totals(trace: Trace, kernels: KernelTable) -> Iterator[str]:
    yield from _dominant(kernels)
    yield from tell_printed_sums(kernels)
    yield from _stacks(trace)
    yield from _named_kernels(trace)


def _stacks(trace: Trace) -> Iterator[str]:
    """The call stacks next to a table: how many, and where each ends."""
    if trace.path_totals.select(pl.len()).collect().item():  # nodes with times of their own
        return
    paths = trace.call_paths.select("path_id", "parent_id", "frame", "name", "depth", "rank").collect()
    leaves = paths.filter(~pl.col("path_id").is_in(paths["parent_id"].drop_nulls().implode()))
    for leaf in leaves.head(_STACKS).iter_rows(named=True):
        rank = "" if leaf["rank"] is None else f" of rank {leaf['rank']}"
        yield f"A call stack{rank}, {leaf['depth'] + 1:,} deep, ends at {leaf['frame'] or leaf['name']}."
    if leaves.height > _STACKS:
        yield f"{leaves.height - _STACKS:,} more call stacks are in the table call_paths."


def _named_kernels(trace: Trace) -> Iterator[str]:
    n = trace.log.filter(pl.col("fields").str.contains('"kernels":[', literal=True)).select(pl.len()).collect().item()
    if n:
        lines = "One line of text names" if n == 1 else f"{n:,} lines of text name"
        yield f"{lines} kernels of the tables: --json has the lines with the names in full, under log."


def _idle(trace: Trace, devices: pl.DataFrame, make_gaps: MakeRows | None) -> Iterator[str]:
    idle = devices.filter(pl.col("window_ns") > 0, pl.col("idle_ns") / pl.col("window_ns") >= _IDLE_SHARE)
    if idle.is_empty():
        return
    gaps = make_gaps() if make_gaps else find_gaps(trace, find_work(trace))
    for row in idle.sort("idle_ns", descending=True, maintain_order=True).iter_rows(named=True):
        share = row["idle_ns"] / row["window_ns"]
        of = f"{format_share(share)} of its window ({format_duration(row['idle_ns'])})"
        yield f"{_place(row, devices)} is idle {of}." + _why_idle(at_place(gaps, row.get("rank"), row["device"]))


def _place(row: Mapping[str, Any], devices: pl.DataFrame) -> str:
    """The device, with its rank where there are several."""
    has_ranks = "rank" in row and devices["rank"].n_unique() > 1
    return place_name(row["rank"] if has_ranks else None, row["device"])


def _why_idle(gaps: pl.DataFrame) -> str:
    """How much of the idle time the host was late, if that is most of it; and the longest gap, whatever its causes."""
    if not gaps.height:
        return ""
    idle_ns = int(gaps["gap_ns"].sum())
    late_ns = int(gaps.filter(pl.col("cause").is_in(["host_late", "sync"]))["gap_ns"].sum())
    if late_ns < 0.5 * idle_ns:
        return ""
    begins = pl.col("gap_start_ns") != (pl.col("gap_start_ns") + pl.col("gap_ns")).shift(1, fill_value=-1)
    whole = gaps.group_by(begins.cum_sum().alias("gap"), maintain_order=True).agg(
        pl.col("gap_ns").sum(), pl.col("kernel").last()
    )
    longest = whole.sort("gap_ns", descending=True, maintain_order=True).row(0, named=True)
    return (
        f" For {format_share(late_ns / idle_ns)} of that the host was late: its call for the next work returned only "
        f"after the device had gone idle. Longest gap: {format_duration(longest['gap_ns'])}, ended by "
        f"{_short(longest['kernel'])}."
    )


def _short_kernels(trace: Trace) -> Iterator[str]:
    kernels = trace.compact("launches").filter(pl.col("kind") == "kernel")
    n_short = (pl.col("dur_ns") < _SHORT_NS).sum().alias("short")
    n, n_short, median = kernels.select(pl.len(), n_short, pl.col("dur_ns").median()).collect().row(0)
    if n >= 100 and n_short / n > _SHORT_SHARE:
        yield (
            f"{format_share(n_short / n)} of {n:,} kernels take less than {_SHORT_NS // 1000} μs (median "
            f"{format_duration(median)}): the cost of launches may matter, which CUDA graphs or fusion reduce."
        )


def _copies(devices: pl.DataFrame) -> Iterator[str]:
    for row in devices.iter_rows(named=True):
        exposed_ns = row["copy_busy_ns"] - row["overlap_ns"]
        if row["window_ns"] and exposed_ns / row["window_ns"] > _EXPOSED_COPY_SHARE:
            alone = f"{format_share(exposed_ns / row['window_ns'])} of the window of {_place(row, devices)}"
            yield f"Copies run alone for {alone} ({format_duration(exposed_ns)})."


def _dominant(kernels: KernelTable) -> Iterator[str]:
    if not kernels.frame.height:
        return
    first = kernels.frame.row(0, named=True)
    if (first["share"] or 0) > _DOMINANT_SHARE and kernels.kernels > 1:
        launches = {None: "", 1: " in 1 launch"}.get(first["count"], f" in {format_count(first['count'])} launches")
        yield f"{_short(first['kernel'])} takes {format_share(first['share'])} of the kernel time{launches}."


def _graphs(trace: Trace) -> Iterator[str]:
    kernels = trace.compact("launches").filter((pl.col("kind") == "kernel") & pl.col("correlation_id").is_not_null())
    often = _often(kernels.select("correlation_id").collect().to_series(), _GRAPH_LAUNCHES)
    together = (
        kernels.filter(pl.col("correlation_id").is_in(often.implode()))
        .group_by(_CALL)
        .len()
        .filter(pl.col("len") > _GRAPH_LAUNCHES)
        .join(_submits(trace), on=_CALL, how="anti", nulls_equal=True)
    )
    sums = together.select(pl.col("len").sum().alias("kernels"), pl.len().alias("calls"))
    replays = sums.collect().row(0, named=True)
    if replays["calls"]:
        calls = "one graph launch" if replays["calls"] == 1 else f"{replays['calls']:,} graph launches"
        yield (
            f"{replays['kernels']:,} kernels come from {calls}, so no framework op is recorded for each. A profile of "
            "the graph's capture or of an eager run has these: inferometer launches --capture."
        )


def _often(ids: pl.Series, times: int) -> pl.Series:
    """The ids that occur more often than so many times."""
    least, most = (int(ids.min() or 0), int(ids.max() or 0))  # type: ignore[arg-type]
    if most - least >= _DENSE * ids.len():
        return ids.value_counts().filter(pl.col("count") > times).to_series()
    counts = np.bincount((ids - least).to_numpy(), minlength=1)
    return pl.Series(np.flatnonzero(counts > times) + least, dtype=ids.dtype)


def _submits(trace: Trace) -> pl.LazyFrame:
    """Calls that hand over a list of commands, as WebGPU's `queue.submit`: by their names neither launch nor graph."""
    if "calls" not in trace.scope:
        return pl.LazyFrame(schema=dict.fromkeys(_CALL, pl.Int64))
    calls = trace.compact("calls")
    names = calls.select(pl.col("api").unique()).collect()["api"].cast(pl.String)
    others = [name for name in names if api_kind(name) == "other"]
    return calls.filter(pl.col("api").is_in(others)).select(_CALL)


def _before_window(trace: Trace) -> Iterator[str]:
    n = trace.losses.total("launch_before_window")
    if n == 1:
        yield "1 launch was queued before the profiling window: its host call is not in the file."
    elif n:
        yield f"{n:,} launches were queued before the profiling window: their host calls are not in the file."


def _suspect_times(trace: Trace) -> Iterator[str]:
    for loss in trace.losses:
        if loss.name == "overflows_stream":
            launches = "One launch outlasts" if loss.count == 1 else f"{loss.count:,} launches outlast"
            its, end = ("its", "its end is") if loss.count == 1 else ("their", "their ends are")
            yield (
                f"{launches} two or more later ones on {its} own stream ({loss.example}): {end} wrong, or the "
                f"profiler reports several queues as one stream. Durations and busy time depend on which it is."
            )


def _short(name: str, length: int = 60) -> str:
    """What the name says; of one that shows nothing its beginning."""
    known = decode(name)
    if known.is_known:
        return known.short_name
    return name if len(name) <= length else name[: length - 1] + "…"
