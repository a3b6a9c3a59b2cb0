"""Driver and runtime calls: the table that Nsight Systems prints, launch delay, the device's queue, and waits.

Times of calls are summed: several threads count several times, and a runtime call includes the driver call that it
makes, where a tool records both. Parts by subject: `delays`, `timeline.queue`, `timeline.waits`; what stands out in
them: `call_remarks`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from inferometer.analyses.correlation import tie_launches
from inferometer.analyses.result import Field, Result, Section
from inferometer.analyses.rows import (
    SortKey,
    compile_match,
    duration_statistics,
    matching,
    ordered,
    sort_column,
    statistics_fields,
)
from inferometer.analyses.tables.call_remarks import find_call_remarks
from inferometer.analyses.tables.delays import launch_delays
from inferometer.analyses.tables.host_selection import HostSelection
from inferometer.analyses.timeline.queue import draw_strip, queue_depths
from inferometer.analyses.timeline.waits import find_waits
from inferometer.names.apis import canonical_api
from inferometer.trace.losses import Losses
from inferometer.trace.trace import Trace
from inferometer.units import format_duration, format_share

NEEDED = {  # the columns of each table that the question touches
    "calls": ("api", "rank", "process", "start_ns", "dur_ns", "correlation_id"),
    "launches": ("rank", "process", "device", "start_ns", "dur_ns", "correlation_id"),
}
_FIELDS = statistics_fields("Num Calls", "api")
_DELAY_FIELDS = (
    Field("calls", "Calls", "count"),
    Field("launches", "Launches", "count", spare=2),
    Field("delay_median_ns", "Delay Med", "ns"),
    Field("delay_p95_ns", "p95", "ns", spare=3),
    Field("delay_p99_ns", "p99", "ns", spare=1),
    Field("delay_max_ns", "Max", "ns", spare=4),
    Field("queued_median_ns", "After Call Med", "ns", spare=5),
    Field("queued_p99_ns", "After Call p99", "ns", spare=6),
    Field("api", "Name", "name"),
)
_QUEUE_FIELDS = (
    Field("device", "Device", "text"),
    Field("queued_launches", "Launches", "count", spare=2),
    Field("mean_depth_text", "Mean Depth", "number"),
    Field("max_depth", "Max", "count"),
    Field("window_ns", "Window", "ns", spare=1),
    Field("busy_ns", "Busy", "ns", spare=3),
    Field("queued_idle_ns", "Idle, Queued", "ns"),
    Field("starved_ns", "Starved", "ns"),
)
_WAIT_FIELDS = (
    Field("total_ns", "Total Time", "ns"),
    Field("count", "Waits", "count"),
    Field("of_calls", "Of Calls", "count", spare=2),
    Field("max_ns", "Longest", "ns", spare=1),
    Field("idle_ns", "Device Idle", "ns"),
    Field("idle_share", "Idle", "share", spare=3),
    Field("api", "Name", "name"),
)
_STRIPS = 16  # more devices than this get no strip of their own


@dataclass(frozen=True)
class CallTable(Result):
    """`frame`: one row an API; `delays`, `queues` with their `series`, and `waits` as the modules of these names say.

    `total_ns` is the sum over all calls selected, `shown_ns` over the rows of `frame`. `launches` counts device work
    selected, `without_call` that whose call is not in the file.
    """

    source: str
    frame: pl.DataFrame
    total_ns: int
    shown_ns: int
    apis: int
    launches: int
    without_call: int
    delays: pl.DataFrame
    queues: pl.DataFrame
    series: pl.DataFrame
    waits: pl.DataFrame
    notable: tuple[str, ...]
    losses: Losses

    def sections(self) -> Sequence[Section]:
        sections = [Section("Host calls", _FIELDS, self.frame)]
        if self.delays["calls"][-1]:
            sections.append(self._delay_section())
        if self.queues.height:
            sections.append(self._queue_section())
        if self.waits.height:
            sections.append(Section("Waits of the host", _WAIT_FIELDS, self.waits))
        return sections

    def _delay_section(self) -> Section:
        every = self.delays.with_columns(pl.col("api").fill_null("(all)"))
        return Section("Launch delay: from a call to the start of its first device work", _DELAY_FIELDS, every)

    def _queue_section(self) -> Section:
        depth = pl.Series("mean_depth_text", [f"{mean:,.1f}" for mean in self.queues["mean_depth"]], dtype=pl.String)
        ranked = self.queues["rank"].null_count() < self.queues.height
        fields = (Field("rank", "Rank", "number"), *_QUEUE_FIELDS) if ranked else _QUEUE_FIELDS
        title = "Queue of the device: launches called for but not begun"
        return Section(title, fields, self.queues.with_columns(depth), self._strips())

    def _strips(self) -> list[str]:
        lines = []
        for (rank, device), bins in self.series.group_by("rank", "device", maintain_order=True):
            place = f"{device or 'unnamed device'}" + (f" of rank {rank}" if rank is not None else "")
            width = format_duration(bins["end_ns"][0] - bins["start_ns"][0])
            depths = bins["mean_depth"].to_list()
            lines += [f"Depth of {place} over time, {width} a mark, highest {max(depths):,.1f}:", draw_strip(depths)]
        if self.queues.height > _STRIPS:
            return [*lines[: 2 * _STRIPS], f"The depth of {self.queues.height - _STRIPS:,} more is in --json."]
        return lines

    def remarks(self) -> Sequence[str]:
        shown = []
        if self.frame.height < self.apis:
            share = self.shown_ns / self.total_ns if self.total_ns else 0.0
            shown = [f"{self.frame.height:,} of {self.apis:,} APIs shown, {format_share(share)} of the call time."]
        return [*shown, *self.notable]

    def as_json(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "total_ns": self.total_ns,
            "shown_ns": self.shown_ns,
            "apis": self.apis,
            "launches": self.launches,
            "launches_without_call": self.without_call,
            "rows": self.frame.select("api", pl.exclude("api")).to_dicts(),
            "launch_delay": self.delays.to_dicts(),
            "queues": self.queues.to_dicts(),
            "queue_series": self.series.to_dicts(),
            "waits": self.waits.to_dicts(),
            "remarks": list(self.notable),
            "losses": self.losses.as_dict(),
        }


def call_table(
    trace: Trace,
    selection: HostSelection | None = None,
    *,
    sort: SortKey = "total",
    top: int | None = None,
    match: str | None = None,
    raw: bool = False,
) -> CallTable:
    """Host calls by API, and what came of them on the device.

    Args:
        trace: Needs `calls` and `launches`.
        selection: Which rank and window; all by default. Calls count by their beginning.
        sort: Largest first; by `name` from A to Z. Equal rows stand by name.
        top: Show so many rows of each table by API.
        match: Show APIs whose name this regular expression finds. Shares, the queue and remarks are of all calls.
        raw: Names as in the file; otherwise versions are taken off (`cudaLaunchKernel_v7000`), which may join rows.

    Raises:
        InputError: `match` is no regular expression, or the selection names something that is not there.
    """
    pattern = compile_match(match)
    chosen = selection or HostSelection()
    window = chosen.window(trace)
    calls, launches = _tied(chosen, trace, raw=raw)
    begins = pl.lit(True) if window is None else pl.col("start_ns").is_between(*window, closed="left")
    selected, work = calls.filter(begins), launches.filter(begins)
    total_ns = int(selected["dur_ns"].sum())
    rows = (
        selected.group_by("api")
        .agg(duration_statistics())
        .with_columns((pl.col("total_ns") / total_ns if total_ns else pl.lit(0.0)).alias("share"))
        .select(field.column for field in _FIELDS)
    )
    shown = ordered(matching(rows, "api", pattern), sort_column(sort, "api"), "api", top=top)
    delays, waits = launch_delays(selected), find_waits(selected, launches)
    queues, series = queue_depths(launches, window)
    without_call = work["called_ns"].null_count()
    return CallTable(
        source=trace.facts.source,
        frame=shown,
        total_ns=total_ns,
        shown_ns=int(shown["total_ns"].sum()),
        apis=rows.height,
        launches=work.height,
        without_call=without_call,
        delays=_shown(delays, shown, whole=delays.filter(pl.col("api").is_null())),
        queues=queues,
        series=series,
        waits=_shown(waits, shown),
        notable=tuple(find_call_remarks(selected, rows, delays, queues, waits, work.height, without_call)),
        losses=trace.losses,
    )


def _tied(chosen: HostSelection, trace: Trace, *, raw: bool) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Calls with what their device work did, and launches with when they were called for."""
    every_call, every_launch = chosen.of_rank(trace, "calls", "launches")
    calls = every_call.select(NEEDED["calls"]).with_row_index("call")
    launches = tie_launches(every_launch.select(NEEDED["launches"]), calls)
    began = calls.select("call", pl.col("start_ns").alias("called_ns"))
    work = (
        launches.filter(pl.col("call").is_not_null())
        .group_by("call")
        .agg(
            pl.len().cast(pl.Int64).alias("launches"),
            pl.col("start_ns").min().alias("first_ns"),
            (pl.col("start_ns") + pl.col("dur_ns")).max().alias("ended_ns"),
        )
    )
    done, tied = pl.collect_all(
        [
            calls.join(work, on="call", how="left").drop("correlation_id", "call"),
            launches.join(began, on="call", how="left").drop("correlation_id", "call"),
        ]
    )
    return (done if raw else _canonical(done)), tied


def _canonical(calls: pl.DataFrame) -> pl.DataFrame:
    names = {name: canonical_api(name) for name in calls["api"].unique()}
    return calls.with_columns(pl.col("api").replace(names))


def _shown(frame: pl.DataFrame, shown: pl.DataFrame, *, whole: pl.DataFrame | None = None) -> pl.DataFrame:
    """The rows of the APIs shown, in the frame's own order, and those of `whole`."""
    rows = frame.filter(pl.col("api").is_in(shown["api"].implode()))
    return rows if whole is None else pl.concat([rows, whole])
