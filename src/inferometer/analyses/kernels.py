"""The kernel table: time, launches and statistics of each kernel, as Nsight Systems prints it.

Sums, counts and extremes are exact integers; the deviation is the sample's (n - 1), 0 for a single launch as Nsight has
it. Shares are of all device time selected, before `match` and `top` pick the rows to show.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from inferometer.analyses.result import Field, Result, Section
from inferometer.analyses.selection import Selection
from inferometer.errors import InputError
from inferometer.names.demangle import demangle
from inferometer.trace.losses import Losses
from inferometer.trace.trace import Trace
from inferometer.units import format_share

SortKey = Literal["total", "count", "mean", "median", "min", "max", "stddev", "name"]
_SORT_COLUMNS: dict[SortKey, str] = {
    "total": "total_ns",
    "count": "count",
    "mean": "mean_ns",
    "median": "median_ns",
    "min": "min_ns",
    "max": "max_ns",
    "stddev": "stddev_ns",
    "name": "kernel",
}
SORT_KEYS: tuple[SortKey, ...] = tuple(_SORT_COLUMNS)
FIELDS = (
    Field("share", "Time", "share"),
    Field("total_ns", "Total Time", "ns"),
    Field("count", "Instances", "count", spare=1),
    Field("mean_ns", "Avg", "ns", spare=2),
    Field("median_ns", "Med", "ns", spare=5),
    Field("min_ns", "Min", "ns", spare=4),
    Field("max_ns", "Max", "ns", spare=3),
    Field("stddev_ns", "StdDev", "ns", spare=6),
    Field("kernel", "Name", "name"),
)
_KIND = Field("kind", "Kind", "text")


@dataclass(frozen=True)
class KernelTable(Result):
    """One row a kernel: `share` (0 to 1), `total_ns`, `count`, `mean_ns`, …, `kernel`, and `kind` where copies are in.

    `total_ns` is the sum over everything selected; `shown_ns` over the rows of `frame`.
    """

    source: str
    frame: pl.DataFrame
    total_ns: int
    shown_ns: int
    kernels: int
    losses: Losses
    with_copies: bool = False

    def sections(self) -> Sequence[Section]:
        fields = (*FIELDS[:-1], _KIND, FIELDS[-1]) if self.with_copies else FIELDS
        return [Section("Kernels", fields, self.frame)]

    def remarks(self) -> Sequence[str]:
        if self.kernels == 0:
            return ["No device work in the selection."]
        if self.frame.height < self.kernels:
            share = self.shown_ns / self.total_ns if self.total_ns else 0.0
            what = "kernel and copy time" if self.with_copies else "kernel time"
            return [f"{self.frame.height:,} of {self.kernels:,} rows shown, {format_share(share)} of the {what}."]
        return []

    def as_json(self) -> dict[str, Any]:
        columns = [field.column for field in self.sections()[0].fields if field.column != "kernel"]
        return {
            "source": self.source,
            "total_ns": self.total_ns,
            "shown_ns": self.shown_ns,
            "kernels": self.kernels,
            "rows": self.frame.select("kernel", *columns).to_dicts(),
            "losses": self.losses.as_dict(),
        }


def kernel_table(
    trace: Trace,
    selection: Selection | None = None,
    *,
    sort: SortKey = "total",
    top: int | None = None,
    match: str | None = None,
    raw: bool = False,
    copies: bool = False,
) -> KernelTable:
    """Time by kernel.

    Args:
        trace: Needs `launches`.
        selection: Which launches count; all by default.
        sort: Largest first; by `name` from A to Z. Equal rows stand by name.
        top: Show so many rows.
        match: Show kernels whose name this regular expression finds; upper and lower case count.
        raw: Names as in the file; otherwise C++ names are demangled, which may join rows.
        copies: Memory copies and sets as rows of their own.

    Raises:
        InputError: `match` is no regular expression, or the selection names something that is not there.
    """
    pattern = _pattern(match)
    launches = (selection or Selection()).apply(trace)
    if not copies:
        launches = launches.filter(pl.col("kind") == "kernel")
    launches = launches.select("kind", "kernel", "dur_ns")
    if not raw:
        launches = _demangled(launches)
    duration = pl.col("dur_ns")
    rows = (
        launches.group_by("kind", "kernel")
        .agg(
            duration.sum().alias("total_ns"),
            pl.len().cast(pl.Int64).alias("count"),
            duration.mean().alias("mean_ns"),
            duration.median().alias("median_ns"),
            duration.min().alias("min_ns"),
            duration.max().alias("max_ns"),
            duration.std(ddof=1).fill_null(0.0).alias("stddev_ns"),
        )
        .collect()
    )
    total_ns = int(rows["total_ns"].sum())
    shown = rows.with_columns((pl.col("total_ns") / total_ns if total_ns else pl.lit(0.0)).alias("share"))
    if pattern:
        found = [bool(pattern.search(name)) for name in shown["kernel"]]
        shown = shown.filter(pl.Series(found, dtype=pl.Boolean))
    shown = shown.sort(_SORT_COLUMNS[sort], "kernel", "kind", descending=[sort != "name", False, False])
    shown = shown if top is None else shown.head(top)
    columns = [field.column for field in FIELDS[:-1]]
    return KernelTable(
        source=trace.facts.source,
        frame=shown.select(*columns, "kernel", "kind") if copies else shown.select(*columns, "kernel"),
        total_ns=total_ns,
        shown_ns=int(shown["total_ns"].sum()),
        kernels=rows.height,
        losses=trace.losses,
        with_copies=copies,
    )


def _pattern(match: str | None) -> re.Pattern[str] | None:
    try:
        return re.compile(match) if match else None
    except re.error as error:
        raise InputError(
            f"match: want a regular expression, found {match!r} ({error})",
            hint="Put a backslash before characters like ( [ * to find them as they are.",
        ) from error


def _demangled(launches: pl.LazyFrame) -> pl.LazyFrame:
    mangled = launches.select(pl.col("kernel").unique()).filter(pl.col("kernel").str.starts_with("_Z")).collect()
    if not mangled.height:
        return launches
    names = {name: demangle(name) for name in mangled["kernel"]}
    return launches.with_columns(pl.col("kernel").replace(names))
