"""Counters of devices and the host over time, one chart per metric."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
import polars as pl

from inferometer.analyses.compare.causes.metric_roles import role_of_metric
from inferometer.analyses.compare.causes.ticks import tick_starts
from inferometer.reports.page.blocks import MOST_POINTS, Block, Chart, Words
from inferometer.reports.page.drawing import SERIES, axis, color
from inferometer.reports.page.look import RunData
from inferometer.reports.page.sampling import Indices, Values, rounded
from inferometer.reports.page.section import RunSection
from inferometer.units import format_sample

CHARTS = 12
SLICES = 200
"""Of one line, fewer where lines are many. More samples are shown as medians, between the smallest and largest."""

_TITLE = "Counters"
_LACKING = (
    "The trace would need samples of device or host metrics, as LatencyPrism and profilers that sample clocks, power "
    "or load record them."
)
_BAND = "rgba(128,128,128,0.25)"  # seen on light and dark
_NAMED = 60
_ORDER = {"cause": 0, "effect": 1, "context": 2}


class _Line(msgspec.Struct, frozen=True):
    """Samples of one device in order of time. Shape (n,) each."""

    name: str
    seconds: Values
    values: Values


def build(run: RunData) -> Block | None:
    """A chart for each of the metrics that move, those that may be a cause first; the others are named."""
    samples = _read(run)
    if samples.is_empty():
        return Block("counters", _TITLE, lacking=_LACKING)
    metrics = _in_order(samples)
    charts = [_chart(samples.filter(pl.col("metric") == metric), metric) for metric in metrics[:CHARTS]]
    return Block("counters", _TITLE, [*charts, *_others(samples, metrics[CHARTS:])])


def _others(samples: pl.DataFrame, metrics: Sequence[str]) -> Iterator[Words]:
    """The metrics without a chart, each with its range."""
    if not metrics:
        return
    value = pl.col("value")
    ranges = samples.group_by("metric").agg(value.min().alias("low"), value.max().alias("high"))
    known = {metric: (low, high) for metric, low, high in ranges.iter_rows()}
    text = [f"{metric} ({_span(*known[metric])})" for metric in metrics[:_NAMED]]
    more = f" and {len(metrics) - _NAMED:,} more" if len(metrics) > _NAMED else ""
    yield Words(f"{len(metrics):,} more metrics: {', '.join(text)}{more}.", "note")


def _span(low: float, high: float) -> str:
    return format_sample(low) if low == high else f"{format_sample(low)} to {format_sample(high)}"


def _read(run: RunData) -> pl.DataFrame:
    if "counters" not in run.trace.scope:
        return pl.DataFrame()
    finite = pl.col("value").is_not_null() & pl.col("value").is_finite()
    columns = ("metric", "device", "host", "rank", "process", "time_ns", "value", "unit")
    samples = run.trace.counters.filter(finite).select(columns).sort("time_ns", maintain_order=True).collect()
    first_ns = (run.trace.window() or (0, 0))[0]
    return samples.with_columns(((pl.col("time_ns") - first_ns) / 1e9).alias("seconds"))


def _in_order(samples: pl.DataFrame) -> list[str]:
    spread = pl.col("value").max() - pl.col("value").min()
    size = pl.col("value").abs().max()
    moved = pl.when(size > 0).then(spread / size).otherwise(0.0)
    rows = dict(samples.group_by("metric").agg(moved.alias("moved")).iter_rows())

    def order(metric: str) -> tuple[bool, int, float, str]:
        return rows[metric] == 0, _ORDER[role_of_metric(metric).kind], -rows[metric], metric

    return sorted(rows, key=order)


def _chart(samples: pl.DataFrame, metric: str) -> Chart:
    lines = _lines(samples)
    unit = samples["unit"].drop_nulls().unique(maintain_order=True)
    slices = min(SLICES, MOST_POINTS // (3 * min(len(lines), SERIES)))
    data = [trace for i, line in enumerate(lines[:SERIES]) for trace in _drawn(line, color(i), slices)]
    for trace in data if len(lines) == 1 else ():
        trace["showlegend"] = False
    is_band = any("fill" in trace for trace in data)
    band = " The line is the median of the samples at a time, the band reaches from the smallest to the largest."
    more = f"; {len(lines) - SERIES:,} more lines are not drawn" if len(lines) > SERIES else ""
    low, high, middle = (format_sample(number) for number in _range(samples["value"].to_numpy()))
    of = f" {unit[0]}" if len(unit) == 1 else ""
    alt = f"{metric} lies between {low} and {high}{of}, its median is {middle}; {samples.height:,} samples{more}."
    alt += band if is_band else ""
    title = f"{metric}, {unit[0]}" if len(unit) == 1 else metric
    layout = {"xaxis": axis("Since the start of the trace, s"), "yaxis": {"automargin": True}}
    return Chart(title, alt, data, layout, height=240)


def _range(values: Values) -> tuple[float, float, float]:
    return float(values.min()), float(values.max()), float(np.median(values))


def _lines(samples: pl.DataFrame) -> Sequence[_Line]:
    """One a device, host, rank and process, as far as these differ."""
    keys = ["device", "host", "rank", "process"]
    telling = [key for key in keys if samples[key].n_unique() > 1]
    parts = samples.partition_by(keys, as_dict=True, maintain_order=True)
    found = []
    for values, rows in parts.items():
        words = [_word(key, value) for key, value in zip(keys, values, strict=True) if key in telling]
        found.append(_Line(", ".join(words) or "all", rows["seconds"].to_numpy(), rows["value"].to_numpy()))
    return found


def _word(key: str, value: Any) -> str:
    if key == "device":
        return "no device" if value is None else str(value)
    return f"{key} {'unknown' if value is None else value}"


def _drawn(line: _Line, shade: str, most: int) -> Iterator[dict[str, Any]]:
    """The samples; where they are many, or several of one tick, medians of slices and a band around them."""
    base: dict[str, Any] = {"type": "scatter", "mode": "lines", "name": line.name, "line": {"color": shade}}
    base["hovertemplate"] = "%{fullData.name}: %{y} at %{x} s<extra></extra>"
    begins = _slices(line.seconds, most)
    at = rounded(line.seconds[begins], 6)
    if len(begins) == len(line.seconds):
        marker = {"color": shade, "size": 4}
        yield {**base, "mode": "lines+markers", "marker": marker, "x": at, "y": rounded(line.values)}
        return
    parts = np.split(line.values, begins[1:])
    edge = {"type": "scatter", "mode": "lines", "x": at, "line": {"width": 0}, "showlegend": False, "hoverinfo": "skip"}
    yield {**edge, "y": rounded(part.min() for part in parts)}
    yield {**edge, "y": rounded(part.max() for part in parts), "fill": "tonexty", "fillcolor": _BAND}
    yield {**base, "x": at, "y": rounded(float(np.median(part)) for part in parts)}


def _slices(seconds: Values, most: int) -> Indices:
    """Where the samples of each slice begin: of a tick where these are few, else of equal parts of the time."""
    ticks = tick_starts(seconds)
    if len(ticks) <= most:
        return ticks
    edges = np.linspace(seconds[0], seconds[-1], most + 1)[:-1]
    return np.unique(np.searchsorted(seconds, edges, side="left"))


SECTION = RunSection("counters", build, after="groups")
