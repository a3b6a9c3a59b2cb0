"""Steps: one after the other, how their times are spread, how they grow with context, and which were disturbed."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from inferometer.analyses.steps.growth import ALL, format_slope
from inferometer.analyses.steps.serving.latency import serving_of
from inferometer.analyses.steps.sources import UNKNOWN_PHASE
from inferometer.analyses.steps.table import StepTable
from inferometer.reports.page.blocks import Block, Chart, Grid, Part, Point, Points, Words
from inferometer.reports.page.drawing import TimeUnit, axis, color, kernel_labels
from inferometer.reports.page.look import RunData
from inferometer.reports.page.sampling import distribution, keep_extremes, rounded
from inferometer.reports.page.section import RunSection
from inferometer.reports.views.view import remarks_of, sections_of
from inferometer.units import format_duration, format_share

POINTS = 1_200
"""Of one series over steps: three of them stay below what a chart may hold."""

MARKED = 300
QUANTILES = 200
GROWING = 6
_PHASES = 4
_FAR = 20  # times the median, from which on a linear axis would hide the usual steps
_TITLE = "Steps"
_LACKING = (
    "The trace would need its steps. In PyTorch, call profiler.step() once a step; vLLM, SGLang and TensorRT-LLM name "
    "their steps while they are profiled; a WebGPU engine's log has them where it prints a profile report a step."
)
_ELSEWHERE = ("Steps", "Classes of kernels")  # in charts, and in a section of their own
_SERIES = (("wall_ns", "wall", "var(--ink)"), ("gpu_busy_ns", "GPU busy", color(0)), ("gap_ns", "gap", color(1)))


def build(run: RunData) -> Block | None:
    """What stands out, charts over steps and context, and the tables: phases, growth, disturbed steps, trends."""
    table = run.steps
    if table is None:
        return Block("steps", _TITLE, lacking=_LACKING)
    logged = serving_of(run.trace, table.run)
    table = table if logged is None else table.with_serving(logged)
    runs = f"Run {table.run} of {len(table.runs)} in the file: inferometer steps --run shows the others."
    parts: list[Part] = [Words(runs, "note")] if len(table.runs) > 1 else []
    parts += [Points([Point(text) for text in remarks_of(table)])] if remarks_of(table) else []
    alone = _alone(table)
    parts += [alone] if alone else [*_strip(table), *_distributions(table), *_growth(table)]
    tables = {section.title: section for section in sections_of(table)}
    return Block("steps", _TITLE, [*parts, *(Grid(each) for title, each in tables.items() if title not in _ELSEWHERE)])


def _alone(table: StepTable) -> Words | None:
    """Of a single step its times, since a curve has more points; None where there are more steps."""
    if table.steps.height != 1:
        return None
    step = table.steps.row(0, named=True)
    times = [f"{name} {format_duration(step[column])}" for column, name, _ in _SERIES if step[column] is not None]
    return Words(f"One step: {', '.join([*times, _text(step)])}.")


def _strip(table: StepTable) -> Iterator[Chart]:
    steps = table.steps
    known = [series for series in _SERIES if steps[series[0]].null_count() < steps.height]
    if not known:
        return
    values = steps[known[0][0]].drop_nulls()
    largest, usual = float(np.max(values.to_numpy())), float(np.median(values.to_numpy()))
    is_log = largest > _FAR * max(usual, 1.0)
    unit = TimeUnit.of(largest)
    data = [_line(steps, *series, unit, is_log=is_log) for series in known]
    if (disturbed := _marks(steps, known[0][0], unit)) is not None:
        data.append(disturbed)
    layout = {"xaxis": axis("Step"), "yaxis": unit.axis("Time", type="log" if is_log else "linear")}
    yield Chart("Time of each step", _alt(table), data, layout)


def _line(steps: pl.DataFrame, column: str, name: str, shade: str, unit: TimeUnit, *, is_log: bool) -> dict[str, Any]:
    times = pl.when(pl.col(column) > 0).then(pl.col(column)) if is_log else pl.col(column)
    rows = steps.with_columns(times.alias(column))
    rows = rows[keep_extremes(rows[column].cast(pl.Float64).fill_null(float("nan")).to_numpy(), POINTS)]
    return {
        "type": "scatter",
        "mode": "lines+markers" if rows.height <= 2 * QUANTILES else "lines",
        "name": name,
        "x": rows["step"].to_list(),
        "y": unit.scaled(rows[column]),
        "customdata": [_text(row) for row in rows.iter_rows(named=True)],
        "line": {"color": shade, "width": 1.5},
        "marker": {"color": shade, "size": 4},
        "hovertemplate": f"step %{{x}}: {name} %{{y}} {unit.name}<br>%{{customdata}}<extra></extra>",
    }


def _text(row: dict[str, Any]) -> str:
    words = [row["phase"] or "phase not known"]
    words += [f"{row['tokens']:,} tokens"] if row["tokens"] is not None else []
    words += [f"context {row['context_len']:,}"] if row["context_len"] is not None else []
    words += [f"{row['launches']:,} launches"] if row["launches"] is not None else []
    share = row["launch_bound_share"]
    words += [f"launch-bound for {format_share(share)}"] if share is not None else []
    return ", ".join(words)


def _marks(steps: pl.DataFrame, column: str, unit: TimeUnit) -> dict[str, Any] | None:
    """Disturbed steps, those with the largest excess where they are many."""
    rows = steps.filter("disturbed", pl.col(column) > 0)
    if rows.is_empty():
        return None
    beyond = pl.sum_horizontal("excess_ns", "gap_excess_ns")
    rows = rows.sort(beyond, descending=True, maintain_order=True).head(MARKED).sort("step")
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "disturbed",
        "x": rows["step"].to_list(),
        "y": unit.scaled(rows[column]),
        "customdata": rows["why"].fill_null("").to_list(),
        "marker": {"color": "var(--bad)", "size": 10, "symbol": "circle-open", "line": {"width": 2}},
        "hovertemplate": "step %{x} was disturbed<br>%{customdata}<extra></extra>",
    }


def _alt(table: StepTable) -> str:
    stated = []
    for row in table.phases.iter_rows(named=True):
        times = [
            f"{format_duration(row[column])} {words}"
            for column, words in (("wall_median_ns", "wall"), ("gpu_median_ns", "GPU busy"))
            if row[column] is not None
        ]
        phase = row["phase"] or UNKNOWN_PHASE
        stated.append(f"{row['steps']:,} {phase}" + (f" (median {', '.join(times)})" if times else ""))
    disturbed = f"{len(table.disturbed):,} of {table.steps.height:,} steps are disturbed"
    return f"Steps by phase: {'; '.join(stated)}. {disturbed}."


def _distributions(table: StepTable) -> Iterator[Part]:
    """Of undisturbed steps, as the table's medians are; phases with one step have none, and that is reported."""
    quiet = table.steps.filter(~pl.col("disturbed"))
    longest = [quiet[column].max() for column, _, _ in _SERIES[:2]]
    unit = TimeUnit.of(max((float(time) for time in longest if isinstance(time, int)), default=0.0))
    data: list[dict[str, Any]] = []
    without: list[str] = []
    for i, phase in enumerate(table.phases["phase"].head(_PHASES)):
        curves = [*_curves(quiet.filter(pl.col("phase").eq_missing(phase)), phase or UNKNOWN_PHASE, color(i), unit)]
        data += curves
        without += [] if curves else [phase or UNKNOWN_PHASE]
    if data:
        layout = {"xaxis": unit.axis("Time of a step"), "yaxis": axis("Share of steps", tickformat=".0%", range=[0, 1])}
        yield Chart("Distribution of undisturbed steps", _spread_alt(table), data, layout)
    if without:
        none = f"Of {' and '.join(without)} steps no distribution is drawn"
        yield Words(f"{none}: that takes two undisturbed ones whose times are known.", "note")


def _curves(steps: pl.DataFrame, phase: str, shade: str, unit: TimeUnit) -> Iterator[dict[str, Any]]:
    for column, name, dash in (("wall_ns", "wall", "solid"), ("gpu_busy_ns", "GPU busy", "dot")):
        times = steps[column].drop_nulls()
        if times.len() < 2:
            continue
        values, shares = distribution(times.to_numpy(), QUANTILES)
        yield {
            "type": "scatter",
            "mode": "lines",
            "name": f"{phase}, {name}",
            "x": unit.scaled(values),
            "y": rounded(shares),
            "line": {"shape": "hv", "color": shade, "dash": dash},
            "hovertemplate": f"%{{y:.0%}} of steps within %{{x}} {unit.name}<extra></extra>",
        }


def _spread_alt(table: StepTable) -> str:
    stated = [
        f"{row['phase'] or UNKNOWN_PHASE} steps take {format_duration(row['wall_median_ns'])} wall at the median and "
        f"{format_duration(row['wall_p95_ns'])} at the 95th percentile"
        for row in table.phases.iter_rows(named=True)
        if row["wall_median_ns"] is not None and row["used"] > 1
    ]
    words = "; ".join(stated) or "only GPU busy times are known"
    return f"{words[0].upper()}{words[1:]}."


def _growth(table: StepTable) -> Iterator[Part]:
    decode = table.steps.filter(pl.col("phase") == "decode")
    if decode.is_empty():
        return
    if table.growth.is_empty():
        words = "How steps grow with context isn't shown: the source doesn't tell how long the context was."
        yield Words(words, "note")
        return
    growing = table.growth.filter(pl.col("class") != ALL, pl.col("low_ns") > 0).head(GROWING)
    if growing.is_empty():
        yield Words("No class of kernels grows with the context beyond doubt, in decode steps.", "note")
        return
    labels = kernel_labels(growing["class"].to_list())
    steps = decode.filter(~pl.col("disturbed"), pl.col("mean_kv").is_not_null(), pl.col("tokens") > 0)
    per_token = (pl.col("total_ns") / pl.col("tokens")).alias("each_ns")
    times = table.class_steps.join(steps.select("step", "tokens", "mean_kv"), on="step").with_columns(per_token)
    times = times.filter(pl.col("class").is_in(growing["class"].to_list())).sort("mean_kv", "step")
    unit = TimeUnit.of(float(times["each_ns"].to_numpy().max()))
    data: list[dict[str, Any]] = []
    for i, row in enumerate(growing.iter_rows(named=True)):
        own = times.filter(pl.col("class") == row["class"])
        data += _points_and_line(own, row, labels[row["class"]], color(i), unit)
    first = growing.row(0, named=True)
    alt = (
        f"{labels[first['class']]} grows most: by {format_slope(first['slope_ns'])} per token for each KV position "
        f"more, from {format_duration(first['intercept_ns'])} at position 0 (line of {first['steps']:,} undisturbed "
        "decode steps)."
    )
    layout = {"xaxis": axis("KV positions that a token attends to, mean"), "yaxis": unit.axis("Time per token")}
    yield Chart("Growth with context, decode", alt, data, layout, height=400)


def _points_and_line(
    own: pl.DataFrame, row: dict[str, Any], label: str, shade: str, unit: TimeUnit
) -> Iterator[dict[str, Any]]:
    """Times a token of a class, and its line as the analysis fitted it."""
    kept = own[keep_extremes(own["each_ns"].to_numpy(), POINTS // GROWING * 2)]
    yield {
        "type": "scatter",
        "mode": "markers",
        "name": label,
        "x": rounded(kept["mean_kv"], 6),
        "y": unit.scaled(kept["each_ns"]),
        "customdata": kept["step"].to_list(),
        "marker": {"color": shade, "size": 5},
        "hovertemplate": f"step %{{customdata}}: %{{y}} {unit.name} per token<extra></extra>",
    }
    ends = [float(own["mean_kv"][0]), float(own["mean_kv"][-1])]
    yield {
        "type": "scatter",
        "mode": "lines",
        "x": rounded(ends, 6),
        "y": unit.scaled(row["intercept_ns"] + row["slope_ns"] * at for at in ends),
        "line": {"color": shade, "width": 1.5},
        "showlegend": False,
        "hoverinfo": "skip",
    }


SECTION = RunSection("steps", build, after="compared_steps")
