"""perf_data.csv: a row per cycle, process, function, device and metric becomes three tables.

What the function did repeats in the row of each metric, what the cycle was in the row of each function. Of rows that
are alike one is kept and the others are counted, so that in each table rows in the file = rows + dropped. Rows that
contradict each other are all kept, and counted.
"""

from collections.abc import Mapping, Sequence

import polars as pl

from inferometer.formats.latencyprism.cells import Cells
from inferometer.formats.latencyprism.metric_units import scale_of_mean
from inferometer.formats.latencyprism.values import Reading, keep, read_columns
from inferometer.trace.builder import TraceBuilder
from inferometer.trace.losses import Losses

REQUIRED = ("cycle", "function_name", "device", "duration")
_PLACE = (
    Reading("cycle", "cycle", "whole"),
    Reading("process", "pid", "whole"),
    Reading("function", "function_name", "text"),
    Reading("device", "device", "device"),
)
_CYCLE = (Reading("anchor", "anchor_name", "text"), Reading("cycle_dur_ns", "anchor_dur_us", "us"))
_READINGS: Mapping[str, Sequence[Reading]] = {
    "function_times": (
        *_PLACE,
        Reading("class", "func_type", "text"),
        Reading("dur_ns", "duration", "us"),
        Reading("calls", "instances_count", "whole"),
        Reading("beta", "beta_pct", "number"),
        *_CYCLE,
    ),
    "function_metrics": (
        *_PLACE,
        Reading("metric", "metric_name", "text"),
        Reading("mu", "mu_pct", "number"),
        Reading("sigma", "sigma_pct", "number"),
        Reading("interpolation", "interpolation_status", "text"),
    ),
    "steps": (*_PLACE[:2], *_CYCLE, Reading("start_ns", "cycle_start_ts", "us")),
}
_ALSO_KNOWN = ("hostname", "simple_name")
_KEYS: Mapping[str, Sequence[str]] = {
    "function_times": ("cycle", "process", "function", "class", "device"),
    "function_metrics": ("cycle", "process", "function", "metric", "device"),
    "steps": ("process", "step"),
}
_NO_METRIC = ("N/A", "NA", "nan")
_NO_MARK = "(none)"
_INTERPOLATION = {_NO_MARK: "none", "*": "some", "**": "all"}
_REASONS: Mapping[str, pl.Expr] = {
    "without_name": pl.col("function").is_null(),
    "unreadable_row": pl.col("cycle").is_null() | pl.col("device").is_null(),
}
_TIME_REASONS: Mapping[str, pl.Expr] = {
    "time_out_of_range": pl.col("is_far"),
    "without_duration": pl.col("dur_ns").is_null(),
    "negative_duration": pl.col("dur_ns") < 0,
}


def read_perf(cells: Cells, name: str, out: TraceBuilder) -> None:
    """Fill function_times, function_metrics and steps as far as they are wanted.

    Raises:
        FormatError: A column is missing without which no row can be read.
    """
    cells.require(REQUIRED, name)
    titles = cells.frame.columns
    wanted = [table for table in _READINGS if out.wants(table)]
    _count_columns(titles, wanted, name, out.losses)
    lacked = {each.title for table in wanted for each in _READINGS[table]} - set(titles)
    frame = cells.frame.with_columns(pl.lit(None, dtype=pl.String).alias(title) for title in sorted(lacked))
    for table in wanted:
        out.losses.see(table, frame.height + cells.broken)
        out.losses.count("unreadable_row", cells.broken, category=table, example=cells.example)
        _fill(table, frame, out)


def _count_columns(titles: Sequence[str], wanted: Sequence[str], name: str, losses: Losses) -> None:
    for title in dict.fromkeys(each.title for table in wanted for each in _READINGS[table]):
        if title not in titles:
            losses.count("missing_column", example=f"{name}: {title}")
    known = {each.title for readings in _READINGS.values() for each in readings} | set(_ALSO_KNOWN)
    for title in titles if wanted else ():
        if title not in known:
            losses.count("unknown_column", example=f"{name}: {title[:80]}")


def _fill(table: str, frame: pl.DataFrame, out: TraceBuilder) -> None:
    losses = out.losses
    rows = frame.select(each.title for each in _READINGS[table])
    if table != "function_metrics":  # where a row repeats only by mistake
        rows = rows.unique(maintain_order=True)
        losses.count("repeated_row", frame.height - rows.height, category=table)
    found = {"function_times": _times, "function_metrics": _metrics, "steps": _steps}[table](rows, losses)
    keys = pl.struct(_KEYS[table])
    if found.height > found.select(keys.n_unique()).item():
        distinct = found.unique(maintain_order=True)
        losses.count("repeated_row", found.height - distinct.height, category=table)
        found = distinct
        losses.count("contradicting_rows", int(found.select(keys.is_duplicated().sum()).item()), category=table)
    out.add(table, found.height, found.to_dict())


def _times(rows: pl.DataFrame, losses: Losses) -> pl.DataFrame:
    found = read_columns(rows, _READINGS["function_times"], losses, "function_times")
    found = keep(found, {**_REASONS, **_TIME_REASONS}, losses, "function_times")
    # Polars divides by one number by multiplying with its reciprocal, which rounds twice.
    shares = pl.Series("beta", found["beta"].to_numpy() / 100.0).fill_nan(None)
    return found.with_columns(shares).drop("is_far")


def _metrics(rows: pl.DataFrame, losses: Losses) -> pl.DataFrame:
    """The means in the unit of their metric. A blank mark of interpolation says that samples were dense enough."""
    has_metric = ~pl.col("metric_name").str.strip_chars().is_in(["", *_NO_METRIC])
    some = rows.filter(has_metric)
    losses.count("without_metric", rows.height - some.height, category="function_metrics")
    marks = pl.col("interpolation_status")
    is_blank = marks.str.strip_chars() == ""
    some = some.with_columns(pl.when(is_blank).then(pl.lit(_NO_MARK)).otherwise(marks).alias("interpolation_status"))
    found = read_columns(some, _READINGS["function_metrics"], losses, "function_metrics")
    found = keep(found, _REASONS, losses, "function_metrics").drop("is_far")
    found = found.with_columns(pl.col("interpolation").cast(pl.String).replace(_INTERPOLATION).cast(pl.Categorical))
    return _in_units(found, losses)


def _steps(rows: pl.DataFrame, losses: Losses) -> pl.DataFrame:
    found = read_columns(rows, _READINGS["steps"], losses, "steps").rename({"cycle": "step", "cycle_dur_ns": "dur_ns"})
    reasons = {
        "unreadable_row": pl.col("step").is_null(),
        **_TIME_REASONS,
        "without_timestamp": pl.col("start_ns").is_null(),
    }
    found = keep(found, reasons, losses, "steps").drop("is_far")
    losses.count("zero_length_cycle", int((found["dur_ns"] == 0).sum()), category="steps")
    return found.with_columns(pl.lit("recorded").alias("source"))


def _in_units(found: pl.DataFrame, losses: Losses) -> pl.DataFrame:
    """Means and spreads in the unit of their metric; those of unknown metrics as recorded."""
    largest = found.group_by("metric", maintain_order=True).agg(pl.col("mu").abs().max())
    scales = {metric: scale_of_mean(metric, most or 0.0) for metric, most in largest.iter_rows()}
    for metric, scale in scales.items():
        if scale.unit is None:
            losses.count("unknown_unit", category="function_metrics", example=metric[:80])
    units = pl.DataFrame(
        {
            "metric": largest["metric"],
            "unit": pl.Series([scale.unit for scale in scales.values()], dtype=pl.Categorical),
            "divisor": pl.Series([scale.divisor for scale in scales.values()], dtype=pl.Float64),
        }
    )
    joined = found.join(units, on="metric", how="left", maintain_order="left")
    return joined.with_columns(pl.col("mu", "sigma") / pl.col("divisor")).drop("divisor")
