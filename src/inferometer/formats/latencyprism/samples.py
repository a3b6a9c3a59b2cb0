"""counters_data.csv: one sample per row.

The samples of a process carry its id at the end of the metric's name (`process_cpu_usage_1571875`, also written
`_1.571875e+06`); it becomes the process. GPUs of a host are pooled without a device, cores share a time stamp: such
rows are all kept.
"""

import re
from collections.abc import Mapping

import polars as pl

from inferometer.formats.latencyprism.cells import Cells
from inferometer.formats.latencyprism.metric_units import unit_of_sample
from inferometer.formats.latencyprism.values import Reading, clean, keep, read_columns
from inferometer.trace.builder import TraceBuilder

REQUIRED = ("counter_name", "timestamp", "value")
_OPTIONAL = ("hostname",)
_TABLE = "counters"
_READINGS = (
    Reading("name", "counter_name", "text"),
    Reading("time_ns", "timestamp", "us"),
    Reading("value", "value", "number"),
    Reading("host", "hostname", "text"),
)
_REASONS: Mapping[str, pl.Expr] = {
    "without_name": pl.col("name").is_null(),
    "time_out_of_range": pl.col("is_far"),
    "without_timestamp": pl.col("time_ns").is_null(),
}
_OF_PROCESS = re.compile(r"(process_\w*?[a-z])_(\d{1,12}(?:\.\d{1,12})?(?:e\+?\d{1,2})?)")
_MOST_ID = 2**53


def read_samples(cells: Cells, name: str, out: TraceBuilder) -> None:
    """Fill counters.

    Raises:
        FormatError: A column is missing without which no row can be read.
    """
    cells.require(REQUIRED, name)
    titles = cells.frame.columns
    if not out.wants(_TABLE):
        return
    losses = out.losses
    losses.see(_TABLE, cells.frame.height + cells.broken)
    losses.count("unreadable_row", cells.broken, category=_TABLE, example=cells.example)
    for title in titles:
        if title not in (*REQUIRED, *_OPTIONAL):
            losses.count("unknown_column", example=f"{name}: {title[:80]}")
    if "hostname" not in titles:
        losses.count("missing_column", example=f"{name}: hostname")
    _add(cells.frame, out)


def parse_name(name: str) -> tuple[str, int | None]:
    """The metric and the process of a counter's name."""
    match = _OF_PROCESS.fullmatch(name)
    number = float(match[2]) if match else 0.5
    if match is None or not number.is_integer() or number > _MOST_ID:
        return name, None
    return match[1], int(number)


def _add(frame: pl.DataFrame, out: TraceBuilder) -> None:
    known = (
        frame if "hostname" in frame.columns else frame.with_columns(pl.lit(None, dtype=pl.String).alias("hostname"))
    )
    is_number = clean(pl.col("value")).cast(pl.Float64, strict=False).is_not_null()
    some = known.filter(is_number)
    out.losses.count("counter_without_value", known.height - some.height, category=_TABLE)
    found = keep(read_columns(some, _READINGS, out.losses, _TABLE), _REASONS, out.losses, _TABLE)
    few = found.join(_names(found, out), on="name", how="left", maintain_order="left").drop("name", "is_far")
    out.add(_TABLE, few.height, few.to_dict())


def _names(found: pl.DataFrame, out: TraceBuilder) -> pl.DataFrame:
    """Metric, process and unit of each name."""
    largest = found.group_by("name", maintain_order=True).agg(pl.col("value").abs().max())
    parsed = {name: parse_name(name) for name in largest["name"]}
    most: dict[str, float] = {}
    for name, value in largest.iter_rows():
        metric = parsed[name][0]
        most[metric] = max(most.get(metric, 0.0), value or 0.0)
    units: Mapping[str, str | None] = {metric: unit_of_sample(metric, value) for metric, value in most.items()}
    for metric, unit in units.items():
        if unit is None:
            out.losses.count("unknown_unit", category=_TABLE, example=metric[:80])
    return pl.DataFrame(
        {
            "name": largest["name"],
            "metric": pl.Series([metric for metric, _ in parsed.values()], dtype=pl.Categorical),
            "process": pl.Series([process for _, process in parsed.values()], dtype=pl.Int64),
            "unit": pl.Series([units[metric] for metric, _ in parsed.values()], dtype=pl.Categorical),
        }
    )
