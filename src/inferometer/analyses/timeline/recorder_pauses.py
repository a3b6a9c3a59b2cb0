"""When a recording of ours wasn't recording: its profiler ended one window and began the next, or a step was left out.

The program stands still for most of the former, and device work in either is not in the file: neither is the program's
doing.
"""

from collections.abc import Sequence

import polars as pl

from inferometer.trace.trace import Trace

GAP, PAUSE, UNOBSERVED = "profiler_gap", "profiler_pause", "ops_gap"
"""Metrics of `counters`, ns, at the begin: how long nothing was recorded, how long the program may have stood still,
and how long no op was observed where launches are ops."""

UNOBSERVED_STEP = "unobserved"
"""In `steps.source`: a step that was left out."""

SCHEMA = {"process": pl.Int64, "from_ns": pl.Int64, "to_ns": pl.Int64}


def recorder_pauses(trace: Trace) -> pl.DataFrame:
    """Rows of `SCHEMA` in order of time, none of which touches another of its process.

    None of other tools' files, nor where counters weren't read.
    """
    return _times_of(trace, (GAP, PAUSE, UNOBSERVED))


def unobserved_times(trace: Trace) -> pl.DataFrame:
    """The same, of steps alone that the recording left out."""
    return _times_of(trace, (UNOBSERVED,))


def _times_of(trace: Trace, metrics: Sequence[str]) -> pl.DataFrame:
    if trace.facts.format != "recording" or "counters" not in trace.scope:
        return pl.DataFrame(schema=SCHEMA)
    begun = pl.col("time_ns").alias("from_ns")
    found = (
        trace.counters.filter(pl.col("metric").is_in(metrics))
        .select("process", begun, (pl.col("time_ns") + pl.col("value").cast(pl.Int64)).alias("to_ns"))
        .collect()
        .sort("process", "from_ns")
    )
    until = pl.col("to_ns").cum_max().over("process")
    starts = (pl.col("from_ns") > until.shift(1).over("process")).fill_null(value=True)
    return (
        found.with_columns(starts.cum_sum().alias("pause"))
        .group_by("process", "pause")
        .agg(pl.col("from_ns").min(), pl.col("to_ns").max())
        .select(pl.col(name).cast(dtype) for name, dtype in SCHEMA.items())
        .sort("from_ns")
    )


def meet_pauses(ranges: pl.DataFrame, pauses: pl.DataFrame) -> pl.Series:
    """Whether each of `ranges` (`start_ns`, `end_ns`, `process`) has a part in a pause. Booleans, in their order."""
    numbered = ranges.with_row_index("range")
    return numbered["range"].is_in(
        _meets(numbered, "range", ("start_ns", "end_ns"), pauses)["range"].unique().implode()
    )


def _meets(ranges: pl.DataFrame, number: str, ends: tuple[str, str], pauses: pl.DataFrame) -> pl.DataFrame:
    """A row for each pause that a range has a part in: its `number`, its two `ends`, `from_ns`, `to_ns`."""
    begin, end = ends
    met = ranges.select(number, *ends, pl.col("process").alias("owner")).join_where(
        pauses, pl.col(begin) < pl.col("to_ns"), pl.col(end) > pl.col("from_ns")
    )
    return met.filter((pl.col("owner") == pl.col("process")).fill_null(value=True))


def part_pauses(gaps: pl.DataFrame, pauses: pl.DataFrame, cause: str) -> pl.DataFrame:
    """`gaps` with what of them lies in a pause as rows of their own, whose cause is `cause`; the rest keeps its own.

    Args:
        gaps: `dry_ns`, `start_ns`, `process`, `cause` and any others. Without a process, every pause counts.
        pauses: As `recorder_pauses` has them.
        cause: A category of `cause`.
    """
    if pauses.is_empty():
        return gaps
    numbered = gaps.with_row_index("gap")
    meets = _meets(numbered, "gap", ("dry_ns", "start_ns"), pauses).sort("gap", "from_ns")
    if meets.is_empty():
        return gaps
    within = meets.select(
        "gap",
        pl.max_horizontal("dry_ns", "from_ns").alias("begin"),
        pl.min_horizontal("start_ns", "to_ns").alias("end"),
    )
    ended = pl.col("to_ns").cum_max().over("gap").shift(1).over("gap")
    before = meets.select("gap", pl.max_horizontal(ended, "dry_ns").alias("begin"), pl.col("from_ns").alias("end"))
    after = meets.group_by("gap").agg(pl.col("to_ns").max().alias("begin"), pl.col("start_ns").first().alias("end"))
    rest = pl.concat([before, after]).filter(pl.col("end") > pl.col("begin"))
    paused = pl.lit(cause).cast(gaps.schema["cause"])
    parts = pl.concat([within.with_columns(is_pause=True), rest.with_columns(is_pause=False)])
    parted = (
        parts.join(numbered, on="gap", maintain_order="left")
        .with_columns(
            pl.col("begin").alias("dry_ns"),
            pl.col("end").alias("start_ns"),
            pl.when("is_pause").then(paused).otherwise("cause").alias("cause"),
        )
        .select(gaps.columns)
    )
    whole = numbered.join(meets.select("gap").unique(), on="gap", how="anti", maintain_order="left").select(
        gaps.columns
    )
    return pl.concat([whole, parted])
