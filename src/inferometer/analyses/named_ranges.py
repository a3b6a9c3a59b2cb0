"""Named ranges of the host and the launches called for, with names, threads and devices numbered, ready to be searched.

A span is a range of the host unless it is on a device's track, as synchronisation is. Names whose ranges take no time
at all are marks: they hold nothing and are counted only.
"""

import msgspec
import polars as pl

from inferometer.analyses.correlation import tie_launches

_THREAD = ["rank", "process", "thread"]
_DEVICE = ["rank", "device"]


class NamedRanges(msgspec.Struct, frozen=True):
    """`ranges`: `name`, a row of `names`; `rank`, `process`, `thread`, `start_ns`, `dur_ns`. `names`: their host times.

    `on_device` spans and `marks` are in neither.
    """

    ranges: pl.DataFrame
    names: pl.DataFrame
    on_device: int
    marks: int


def on_device() -> pl.Expr:
    """Whether a span is on a device's track. A synchronisation of a whole context names neither device nor stream."""
    is_sync = pl.col("domain").cast(pl.String).eq_missing(pl.lit("cuda_sync"))
    return pl.col("device").is_not_null() | pl.col("stream").is_not_null() | is_sync


def named_ranges(spans: pl.LazyFrame, *, fold: bool) -> NamedRanges:
    """Ranges of the host by domain and name; with `fold`, each number in a name becomes `N`, which may join names."""
    every = spans.select("span", "domain", *_THREAD, "device", "stream", "start_ns", "dur_ns").collect()
    host = every.filter(~on_device())
    if fold:
        host = host.with_columns(pl.col("span").str.replace_all("[0-9]+", "N"))
    duration = pl.col("dur_ns")
    names = (
        host.group_by("domain", "span", maintain_order=True)
        .agg(
            pl.len().cast(pl.Int64).alias("instances"),
            duration.sum().alias("host_total_ns"),
            duration.mean().alias("host_mean_ns"),
        )
        .filter(pl.col("host_total_ns") > 0)
        .with_row_index("name")
        .with_columns(pl.col("name").cast(pl.Int64))
    )
    ranges = host.join(names.select("domain", "span", "name"), on=["domain", "span"], nulls_equal=True)
    return NamedRanges(
        ranges=ranges.select("name", *_THREAD, "start_ns", "dur_ns"),
        names=names,
        on_device=every.height - host.height,
        marks=host.height - ranges.height,
    )


def called_work(launches: pl.LazyFrame, calls: pl.LazyFrame) -> pl.DataFrame:
    """Launches with `thread` and `called_ns` of their calls; both are null where the call is not in the file."""
    called = calls.select(*_THREAD, "start_ns", "correlation_id").with_row_index("call")
    work = launches.select(*_DEVICE, "process", "start_ns", "dur_ns", "correlation_id")
    return (
        tie_launches(work, called)
        .join(called.select("call", "thread", pl.col("start_ns").alias("called_ns")), on="call", how="left")
        .drop("call", "correlation_id")
        .collect()
    )


def with_numbers(ranges: pl.DataFrame, work: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Both with `lane`, the number of their thread. `work` with `place`, that of its device; by lane and call."""
    lanes = _numbered(pl.concat([ranges.select(_THREAD), work.select(_THREAD)]), "lane")
    places = _numbered(work.select(_DEVICE), "place")
    return (
        ranges.join(lanes, on=_THREAD, nulls_equal=True),
        work.join(lanes, on=_THREAD, nulls_equal=True)
        .join(places, on=_DEVICE, nulls_equal=True)
        .sort("lane", "called_ns", "start_ns"),
    )


def _numbered(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    return frame.unique().with_row_index(name).with_columns(pl.col(name).cast(pl.Int64))
