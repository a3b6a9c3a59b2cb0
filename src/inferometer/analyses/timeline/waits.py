"""Host calls that wait for the device, and for how much of that time the device had nothing to do either.

What counts as a wait:

- calls that synchronize by their name (`cudaStreamSynchronize`, `hipDeviceSynchronize`, …), all of them;
- copies that returned only after their own copy had ended on the device: their times prove it, whatever their name. A
  `cudaMemcpyAsync` to pageable memory is one of these, an asynchronous one that returned at once isn't;
- copies that block by their name (`cudaMemcpy`) and whose device work is not in the file.

Allocations may wait too (`cudaFree`), but nothing proves for how long: they are left out. While a call waits, the
device is idle when no launch runs on any device of its process: intersected interval by interval, nothing is sampled.
"""

import polars as pl

from inferometer.analyses.correlation import CALL_KEY
from inferometer.analyses.cover import Cover
from inferometer.names.apis import api_kind, is_blocking_copy
from inferometer.trace.trace import Trace

SCHEMA = {
    "api": pl.String,
    "kind": pl.String,
    "count": pl.Int64,
    "of_calls": pl.Int64,
    "total_ns": pl.Int64,
    "max_ns": pl.Int64,
    "idle_ns": pl.Int64,
    "idle_share": pl.Float64,
}


def find_waits(calls: pl.DataFrame, launches: pl.DataFrame) -> pl.DataFrame:
    """Waits by API, longest total first.

    Args:
        calls: `api`, `rank`, `process`, `start_ns`, `dur_ns`, and `ended_ns`, the end of the last device work, or null.
        launches: `rank`, `process`, `start_ns`, `dur_ns`.

    Returns:
        `kind` is `synchronize` or `copy`; `count` of the API's `of_calls` calls waited, `total_ns` together; no device
        worked for `idle_ns` of that, null where there are no launches at all.
    """
    waits = keep_waiting(calls.with_columns(pl.len().over("api").cast(pl.Int64).alias("of_calls")))
    return (
        _with_idle(waits, launches)
        .group_by("api", "kind")
        .agg(
            pl.len().cast(pl.Int64).alias("count"),
            pl.col("of_calls").first(),
            pl.col("dur_ns").sum().alias("total_ns"),
            pl.col("dur_ns").max().alias("max_ns"),
            pl.when(pl.col("idle_ns").null_count() == 0).then(pl.col("idle_ns").sum()).alias("idle_ns"),
        )
        .with_columns((pl.col("idle_ns") / pl.col("total_ns")).fill_nan(None).alias("idle_share"))
        .sort("total_ns", "api", descending=[True, False])
        .select(pl.col(name).cast(dtype) for name, dtype in SCHEMA.items())
    )


def waiting_calls(trace: Trace) -> pl.DataFrame:
    """The calls of a trace that waited: `rank`, `process`, `thread`, `correlation_id`, `api`, `start_ns`, `dur_ns`."""
    every = trace.compact("calls")
    names = every.select(pl.col("api").unique()).collect()["api"]
    able = [name for name in names if api_kind(name) in ("wait", "copy")]
    ended = (
        trace.compact("launches")
        .filter((pl.col("kind") != "kernel") & pl.col("correlation_id").is_not_null())
        .group_by(CALL_KEY)
        .agg((pl.col("start_ns") + pl.col("dur_ns")).max().alias("ended_ns"))
    )
    calls = every.filter(pl.col("api").is_in(able)).select(
        *CALL_KEY, "thread", pl.col("api").cast(pl.String), "start_ns", "dur_ns"
    )
    return keep_waiting(calls.join(ended, on=CALL_KEY, how="left", nulls_equal=True).collect())


def keep_waiting(calls: pl.DataFrame) -> pl.DataFrame:
    """Those of `calls` that waited, with their `kind`. Needs `api`, `start_ns`, `dur_ns` and `ended_ns`, as above."""
    names = calls["api"].unique().to_list()
    kinds = {name: {"wait": "synchronize", "copy": "copy"}.get(api_kind(name)) for name in names}
    blocking = [name for name in names if is_blocking_copy(name)]
    returned = pl.col("start_ns") + pl.col("dur_ns")
    proven = (returned >= pl.col("ended_ns")) | (pl.col("ended_ns").is_null() & pl.col("api").is_in(blocking))
    kind = pl.col("api").replace_strict(kinds, default=None, return_dtype=pl.String)
    return calls.with_columns(kind.alias("kind")).filter(
        (pl.col("kind") == "synchronize") | ((pl.col("kind") == "copy") & proven)
    )


def _with_idle(waits: pl.DataFrame, launches: pl.DataFrame) -> pl.DataFrame:
    """`waits` with `idle_ns`: how long no device of the same process worked meanwhile.

    Where launches don't show their process, it is the rank's devices.
    """
    unknown = waits.with_columns(pl.lit(None, dtype=pl.Int64).alias("idle_ns"))
    if not launches.height or not waits.height:
        return unknown
    by = ["rank", "process"] if launches["process"].null_count() == 0 else ["rank"]
    work = launches.partition_by(by, as_dict=True)
    nothing = launches.clear()
    parts = waits.partition_by(by, as_dict=True).items()
    return pl.concat([_idle_of(part, work.get(place, nothing)) for place, part in parts])


def _idle_of(waits: pl.DataFrame, launches: pl.DataFrame) -> pl.DataFrame:
    start, dur = launches["start_ns"].to_numpy(), launches["dur_ns"].to_numpy()
    first, length = waits["start_ns"].to_numpy(), waits["dur_ns"].to_numpy()
    busy = Cover.of(start, start + dur).within(first, first + length)
    return waits.with_columns(pl.Series("idle_ns", length - busy, dtype=pl.Int64))
