"""Driver and runtime calls: the table that Nsight Systems prints, launch delay, the device's queue, and waits.

Times of calls are summed: several threads count several times, and a runtime call includes the driver call that it
makes, where a tool records both. Parts by subject: `delays`, `timeline.queue`, `timeline.waits`; what stands out in
them: `call_remarks`.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from inferometer.analyses.correlation import tie_launches
from inferometer.analyses.recording_advice import say_how_calls_are_recorded
from inferometer.analyses.result import Result
from inferometer.analyses.rows import (
    STATISTICS,
    SortKey,
    compile_match,
    duration_statistics,
    matching,
    ordered,
    sort_column,
)
from inferometer.analyses.tables.call_remarks import find_call_remarks
from inferometer.analyses.tables.delays import launch_delays
from inferometer.analyses.tables.host_selection import HostSelection
from inferometer.analyses.timeline.queue import queue_depths
from inferometer.analyses.timeline.waits import find_waits
from inferometer.names.apis import canonical_api
from inferometer.trace.losses import Losses
from inferometer.trace.trace import Trace

NEEDED = {  # the columns of each table that the question touches
    "calls": ("api", "rank", "process", "start_ns", "dur_ns", "correlation_id"),
    "launches": ("rank", "process", "device", "start_ns", "dur_ns", "correlation_id"),
}


@dataclass(frozen=True)
class CallTable(Result):
    """`frame`: one row an API; `delays`, `queues` with their `series`, and `waits` as the modules of these names say.

    `total_ns` is the sum over all calls selected, `shown_ns` over the rows of `frame`. `launches` counts device work
    selected, `without_call` that whose call is not in the file.
    """

    view: ClassVar[str] = "calls"
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

    def to_polars(self) -> pl.DataFrame:
        """One row an API."""
        return self.frame

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
        sort: Largest first; by `name` from A to Z. Equal rows are ordered by name.
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
        .select(*STATISTICS, "api")
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
        notable=(
            tuple(find_call_remarks(selected, rows, delays, queues, waits, work.height, without_call))
            if rows.height
            else (f"No host calls in the selection. {say_how_calls_are_recorded(trace)}",)
        ),
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
