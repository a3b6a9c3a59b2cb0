"""Named ranges of the host (NVTX, record_function, ProfilerStep) and the device time that they queued.

A range holds the launches whose host calls began inside it on its own thread: what another thread queues meanwhile,
such as autograd's, isn't in it. Ranges on a device's own track are the tool's projection of host ranges, and are left
out. See `nesting` for which range is the innermost, and `projection` for what is inclusive and what is own.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import polars as pl

from inferometer.analyses.intervals import busy_by
from inferometer.analyses.named_ranges import called_work, named_ranges, with_numbers
from inferometer.analyses.result import Result
from inferometer.analyses.rows import compile_match, matching, ordered
from inferometer.analyses.tables.host_selection import HostSelection
from inferometer.analyses.tables.projection import NOWHERE, QUEUED, project
from inferometer.trace.losses import Losses
from inferometer.trace.trace import Trace

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
NEEDED = {  # the columns of each table that the question touches
    "spans": ("span", "domain", "rank", "process", "thread", "device", "stream", "start_ns", "dur_ns"),
    "calls": ("rank", "process", "thread", "start_ns", "correlation_id"),
    "launches": ("rank", "process", "device", "start_ns", "dur_ns", "correlation_id"),
}
_COLUMNS = (
    *("share", "busy_ns", "summed_ns", "projected_ns", "launches", "own_launches", "own_summed_ns", "instances"),
    *("host_total_ns", "host_mean_ns", "domain", "span"),
)


@dataclass(frozen=True)
class SpanTable(Result):
    """`frame`: one row per name and domain. `rest`: launches in no range, and those whose call is not in the file.

    Over all rows and `rest`, `own_launches` add up to `launches` and `own_summed_ns` to `summed_ns`. `on_device` spans
    on device tracks and `marks` without duration are in neither.
    """

    view: ClassVar[str] = "spans"
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

    def with_rest(self) -> pl.DataFrame:
        """The rows, and those of launches in no range where there are any."""
        rest = self.rest.filter(pl.col("launches") > 0)
        return pl.concat([self.frame, rest], how="diagonal").select(_COLUMNS)

    def to_polars(self) -> pl.DataFrame:
        """One row per range; launches in none come last."""
        return self.with_rest()

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
        sort: Largest first; by `name` from A to Z. Equal rows are ordered by host time, then by name.
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
    busy = busy_by(launches, ["rank", "device"])
    numbers = {"launches": launches.height, "summed_ns": launches["dur_ns"].sum(), "busy_ns": busy["busy_ns"].sum()}
    own = {"own_launches": launches.height, "own_summed_ns": launches["dur_ns"].sum()}
    return pl.DataFrame({"span": [label], **numbers, **own}, schema_overrides=dict.fromkeys([*numbers, *own], pl.Int64))
