"""Named ranges of the host (NVTX, record_function, ProfilerStep) and the device time that they queued.

A range holds the launches whose host calls began inside it on its own thread: what another thread queues meanwhile,
such as autograd's, isn't in it. Ranges on a device's own track are the tool's projection of host ranges, and are left
out. See `nesting` for which range is the innermost, and `projection` for what is inclusive and what is own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from inferometer.analyses.intervals import busy_by
from inferometer.analyses.named_ranges import called_work, named_ranges, with_numbers
from inferometer.analyses.result import Field, Result, Section
from inferometer.analyses.rows import compile_match, matching, ordered
from inferometer.analyses.tables.host_selection import HostSelection
from inferometer.analyses.tables.projection import NOWHERE, QUEUED, project
from inferometer.trace.losses import Losses
from inferometer.trace.trace import Trace
from inferometer.units import format_share

SpanSortKey = Literal["busy", "summed", "projected", "launches", "instances", "host", "mean", "name"]
_SORT_COLUMNS: dict[SpanSortKey, str] = {
    "busy": "busy_ns",
    "summed": "summed_ns",
    "projected": "projected_ns",
    "launches": "launches",
    "instances": "instances",
    "host": "host_total_ns",
    "mean": "host_mean_ns",
    "name": "span",
}
SPAN_SORT_KEYS: tuple[SpanSortKey, ...] = tuple(_SORT_COLUMNS)
NEEDED = {  # the columns of each table that the question touches
    "spans": ("span", "domain", "rank", "process", "thread", "device", "stream", "start_ns", "dur_ns"),
    "calls": ("rank", "process", "thread", "start_ns", "correlation_id"),
    "launches": ("rank", "process", "device", "start_ns", "dur_ns", "correlation_id"),
}
_FIELDS = (
    Field("share", "Device Time", "share"),
    Field("busy_ns", "Device Busy", "ns"),
    Field("summed_ns", "Device Summed", "ns", spare=3),
    Field("projected_ns", "Projected", "ns", spare=4),
    Field("launches", "Launches", "count"),
    Field("own_launches", "Own Launches", "count", spare=5),
    Field("own_summed_ns", "Own Summed", "ns", spare=2),
    Field("instances", "Instances", "count", spare=1),
    Field("host_total_ns", "Host Total", "ns"),
    Field("host_mean_ns", "Host Avg", "ns", spare=6),
    Field("domain", "Domain", "text", spare=7),
    Field("span", "Name", "name"),
)
_COLUMNS = [field.column for field in _FIELDS]
_NO_RANGES = (
    'No ranges in the selection. In PyTorch, name them with torch.profiler.record_function("name") or profiler.step(); '
    "with Nsight Systems, with NVTX (torch.cuda.nvtx.range) and --trace=cuda,nvtx."
)


@dataclass(frozen=True)
class SpanTable(Result):
    """`frame`: one row a name and domain. `rest`: launches in no range, and those whose call is not in the file.

    Over all rows and `rest`, `own_launches` add up to `launches` and `own_summed_ns` to `summed_ns`. `on_device` spans
    on device tracks and `marks` without duration are in neither.
    """

    source: str
    frame: pl.DataFrame
    rest: pl.DataFrame
    ranges: int
    launches: int
    summed_ns: int
    on_device: int
    marks: int
    threads_differ: bool
    losses: Losses

    def sections(self) -> Sequence[Section]:
        rest = self.rest.filter(pl.col("launches") > 0)
        both = pl.concat([self.frame, rest], how="diagonal").select(_COLUMNS)
        fields = [field for field in _FIELDS if field.column != "domain" or both["domain"].n_unique() > 1]
        return [Section("Ranges", fields, both)]

    def remarks(self) -> Sequence[str]:
        return list(self._remarks())

    def _remarks(self) -> Iterator[str]:
        if not self.ranges:
            yield _NO_RANGES
        elif not self.launches:
            yield "No device work in the selection: only times of the host are known."
        if self.frame.height < self.ranges:
            yield f"{self.frame.height:,} of {self.ranges:,} ranges shown."
        outside, unplaced = self.rest.iter_rows(named=True)
        if self.ranges and outside["launches"]:
            share = format_share(outside["share"])
            yield f"Launches in no range: {outside['launches']:,} of {self.launches:,}, {share} of the device time."
        if self.threads_differ:
            yield "No range is on a thread that queued device work: processes or threads are numbered differently."
        if self.launches and unplaced["launches"] == self.launches:
            yield "No launch can be tied to a host call: which range queued it can't be known."
        elif unplaced["launches"]:
            n = f"{unplaced['launches']:,} of {self.launches:,}"
            yield f"Launches without a call in the file: {n}. Which range queued them can't be known."
        if self.on_device:
            yield f"Spans on device tracks: {self.on_device:,}, left out because they are not ranges of the host."

    def as_json(self) -> dict[str, Any]:
        outside, unplaced = self.rest.select("launches", "summed_ns", "busy_ns").iter_rows(named=True)
        return {
            "source": self.source,
            "ranges": self.ranges,
            "launches": self.launches,
            "summed_ns": self.summed_ns,
            "rows": self.frame.select("span", "domain", pl.exclude("span", "domain")).to_dicts(),
            "in_no_range": outside,
            "without_call": unplaced,
            "spans_on_devices": self.on_device,
            "marks": self.marks,
            "remarks": list(self._remarks()),
            "losses": self.losses.as_dict(),
        }


def span_table(
    trace: Trace,
    *,
    rank: int | None = None,
    sort: SpanSortKey = "busy",
    top: int | None = None,
    match: str | None = None,
    fold: bool = False,
) -> SpanTable:
    """Device time by named range.

    Args:
        trace: Needs `spans`, `calls` and `launches`.
        rank: Only this rank.
        sort: Largest first; by `name` from A to Z. Equal rows stand by host time, then by name.
        top: Show so many ranges.
        match: Show ranges whose name this regular expression finds. Shares are of all launches.
        fold: Join names that differ in numbers only; each number becomes `N`.

    Raises:
        InputError: `match` is no regular expression, or there is no such rank.
    """
    pattern = compile_match(match)
    spans, calls, launches = HostSelection(rank).of_rank(trace, "spans", "calls", "launches")
    found = named_ranges(spans, fold=fold)
    work = called_work(launches, calls)
    ranges, placed = with_numbers(found.ranges, work.filter(pl.col("called_ns").is_not_null()))
    owner, queued = project(ranges, placed)
    rest = [placed.filter(pl.Series(owner, dtype=pl.Int64) == NOWHERE), work.filter(pl.col("called_ns").is_null())]
    summed_ns = int(work["dur_ns"].sum())
    share = (pl.col("summed_ns") / summed_ns if summed_ns else pl.lit(0.0)).alias("share")
    table = found.names.join(queued, on="name", how="left").with_columns(pl.col(QUEUED).fill_null(0))
    shown = matching(table.with_columns(share).select(_COLUMNS), "span", pattern)
    return SpanTable(
        source=trace.facts.source,
        frame=ordered(shown, *dict.fromkeys((_SORT_COLUMNS[sort], "host_total_ns", "span", "domain")), top=top),
        rest=pl.concat(map(_totals, ("(in no range)", "(call not in the file)"), rest)).with_columns(share),
        ranges=table.height,
        launches=work.height,
        summed_ns=summed_ns,
        on_device=found.on_device,
        marks=found.marks,
        threads_differ=bool(ranges.height and placed.height) and set(ranges["lane"]).isdisjoint(placed["lane"]),
        losses=trace.losses,
    )


def _totals(label: str, launches: pl.DataFrame) -> pl.DataFrame:
    """One row for launches that no range owns."""
    busy = busy_by(launches.lazy(), ["rank", "device"]).collect()
    numbers = {"launches": launches.height, "summed_ns": launches["dur_ns"].sum(), "busy_ns": busy["busy_ns"].sum()}
    own = {"own_launches": launches.height, "own_summed_ns": launches["dur_ns"].sum()}
    return pl.DataFrame({"span": [label], **numbers, **own}, schema_overrides=dict.fromkeys([*numbers, *own], pl.Int64))
