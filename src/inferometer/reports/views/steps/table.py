"""The steps of a run: phases, growth, disturbed steps, trends, and classes of kernels."""

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl
from msgspec.structs import replace

from inferometer.analyses.steps.drift import CONTEXT
from inferometer.analyses.steps.outliers import REST
from inferometer.analyses.steps.sources import UNKNOWN_PHASE
from inferometer.analyses.steps.table import StepTable
from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.layout import Field, Section, say_rest
from inferometer.reports.views.steps.serving import latency_remarks, latency_section
from inferometer.reports.views.view import View
from inferometer.units import format_count

_IS_CLASS = "is_class"
_PHASE = Field("phase", "Phase", "text")
_STEP = Field("step", "Step", "number")
_TOKENS = Field("tokens", "Tokens", "count", spare=6)
_BUSY = Field("gpu_busy_ns", "GPU busy", "ns")
_LAUNCH_BOUND = Field("launch_bound_share", "Launch-bound", "share", spare=3)
_PHASE_FIELDS = (
    _PHASE,
    Field("steps", "Steps", "count"),
    Field("used", "Used", "count"),
    Field("tokens", "Tokens", "count", spare=5),
    Field("wall_median_ns", "Wall Med", "ns"),
    Field("wall_p95_ns", "Wall p95", "ns", spare=4),
    Field("wall_mad_ns", "Wall MAD", "ns", spare=7),
    Field("gpu_median_ns", "GPU Med", "ns"),
    Field("gpu_p95_ns", "GPU p95", "ns", spare=3),
    Field("gpu_mad_ns", "GPU MAD", "ns", spare=8),
    Field("window_median_ns", "Window Med", "ns", spare=6),
    Field("gap_median_ns", "Gap Med", "ns", spare=1),
    Field("wall_per_token_ns", "Wall/token", "ns", spare=2),
    Field("gpu_per_token_ns", "GPU/token", "ns", spare=9),
    Field("launches_median", "Launches", "count", spare=10),
    replace(_LAUNCH_BOUND, spare=3),
)
_PARTS = ("Parts of a step add up to what it took beyond the usual; the rest is small parts, less what ran at once.",)
_WINDOW = (
    "A step's window begins with its mark, or when the work before has ended, and lasts until its mark and its own "
    "work have ended."
)
_SLOPES = (
    "Of like steps, undisturbed ones. Over time: with the position in the decode run, or the context, held equal.",
)
_GROWTH_FIELDS = (
    Field("slope_ns", "A token and position", "ns"),
    Field("half_ns", "± (95 %)", "ns", spare=1),
    Field("intercept_ns", "At position 0", "ns"),
    Field("r2", "R²", "number"),
    Field("first_share", "First step", "share"),
    Field("last_share", "Last step", "share"),
    Field("steps", "Steps", "count", spare=2),
    Field("class", "Class", "kernel"),
)
_DISTURBED_FIELDS = (
    _STEP,
    _PHASE,
    _TOKENS,
    _BUSY,
    Field("excess_ns", "Beyond usual", "ns", spare=1),
    Field("gap_excess_ns", "Gap beyond usual", "ns", spare=2),
    Field("why", "What was slow", "name"),
)
_DIFFERENCE_FIELDS = (
    _STEP,
    Field("what", "What", "text"),
    Field("excess_ns", "Beyond usual", "ns"),
    Field("found_ns", "Found", "ns", spare=1),
    Field("usual_ns", "Usual", "ns", spare=2),
    Field("launches", "Launches", "count", spare=3),
    Field("usual_launches", "Usual launches", "number", spare=4),
    Field("class", "Class", "kernel", spare=5),
)
_TREND_FIELDS = (
    _PHASE,
    Field("tokens", "Tokens", "count", spare=2),
    Field("steps", "Steps", "count", spare=3),
    Field("over", "Over", "text"),
    Field("slope_ns", "A step", "ns"),
    Field("half_ns", "± (99 %)", "ns", spare=1),
    Field("change_ns", "In all", "ns", spare=4),
    Field("share", "Of the median", "share"),
    Field("is_trend", "Trend", "text"),
    Field("of", "Of", "kernel", kernel_where=_IS_CLASS),
)
_STEP_FIELDS = (
    _STEP,
    _PHASE,
    Field("batch", "Batch", "count", spare=8),
    _TOKENS,
    Field("context_len", "Context", "count", spare=3),
    Field("wall_ns", "Wall", "ns"),
    Field("window_ns", "Window", "ns", spare=7),
    replace(_BUSY, spare=1),
    Field("gap_ns", "Gap", "ns", spare=2),
    Field("excess_ns", "Beyond usual", "ns", spare=4),
    Field("gap_excess_ns", "Gap beyond usual", "ns", spare=5),
    Field("launches", "Launches", "count", spare=6),
    _LAUNCH_BOUND,
    Field("disturbed", "Disturbed", "text"),
    Field("state", "But", "text", spare=1),
)
_CLASS_FIELDS = (
    _PHASE,
    Field("share", "GPU Time", "share"),
    Field("total_ns", "Total", "ns"),
    Field("per_token_median_ns", "Med/token", "ns", spare=1),
    Field("per_layer_median_ns", "Med/layer", "ns", spare=3),
    Field("first_ns", "First step", "ns", spare=4),
    Field("last_ns", "Last step", "ns", spare=5),
    Field("layers", "Layers", "count", spare=2),
    Field("steps", "Steps", "count", spare=6),
    Field("class", "Class", "kernel"),
)


def _facts(table: StepTable) -> Sequence[tuple[str, str]]:
    by = f", by {table.anchor}" if table.anchor else ""
    lines = [("File", table.source), ("Model", table.model or ""), ("Steps", f"{table.steps.height:,}{by}")]
    if len(table.runs) > 1:
        lines.append(("Run", f"{table.run}, one of {', '.join(map(str, table.runs))}"))
    tokens = [(row["tokens"], row["phase"]) for row in table.phases.iter_rows(named=True) if row["tokens"]]
    lines.append(("Tokens", ", ".join(f"{format_count(n)} in {phase or 'unknown'} steps" for n, phase in tokens)))
    return [(label, text) for label, text in lines if text]


def _remarks(table: StepTable) -> Sequence[str]:
    hidden = table.top is not None and table.top < table.steps.height
    shown = [f"{table.top:,} of {table.steps.height:,} steps shown."] if hidden else []
    of_serving = [] if table.serving is None else latency_remarks(table.serving)
    return [*of_serving, *table.notable, *shown]


def _in_json(table: StepTable) -> dict[str, Any]:
    of_serving = [] if table.serving is None else [*latency_remarks(table.serving)]
    remarks: dict[str, Any] = {"remarks": [*of_serving, *table.notable]}
    return (
        remarks if table.serving is None else remarks | {"serving": table.serving.as_json() | {"remarks": of_serving}}
    )


def _sections(table: StepTable) -> Iterator[Section]:
    """Phases first and classes of kernels last; what the run doesn't have is left out."""
    notes = ["Of used steps; MAD is the median absolute deviation, not scaled."]
    phases, steps = table.phases, table.steps
    if steps["window_ns"].equals(steps["wall_ns"]):
        phases, steps = (_without_window(frame) for frame in (phases, steps))
    else:
        notes.append(_WINDOW)
    yield Section("Steps per phase", _PHASE_FIELDS, _named(phases), tuple(notes))
    if table.growth["slope_ns"].count():
        half = ((pl.col("high_ns") - pl.col("low_ns")) / 2).alias("half_ns")
        growth = table.growth.with_columns(half, pl.col("r2").round(5))
        yield Section("Growth with context, decode", _GROWTH_FIELDS, growth)
    yield from _disturbed(table)
    trends = table.trends.filter(pl.col("over") != CONTEXT)  # which growth with context says better
    if not trends.is_empty():
        yield Section("Over the run", _TREND_FIELDS, _trend_rows(trends), _SLOPES)
    if table.serving is not None:
        yield latency_section(table.serving)
    yield Section("Steps", _STEP_FIELDS, _named(steps).head(_rows(table)))
    if not table.classes.is_empty():
        yield Section("Classes of kernels", _CLASS_FIELDS, _named(table.classes).head(_rows(table)))


def _each_step(table: StepTable) -> Section:
    """All steps with all that is known of each; for spreadsheets."""
    more = (
        Field("mean_kv", "Mean KV positions", "number"),
        Field("start_ns", "Start", "ns"),
        Field("why", "What was slow", "text"),
        Field("launch_bound_ns", "Launch-bound time", "ns", spare=1),
        Field("layers", "Layers", "count", spare=1),
        Field("confidence", "Confidence", "number", spare=1),
    )
    return Section("Steps", (*_STEP_FIELDS, *more), _named(table.steps))


def _disturbed(table: StepTable) -> Iterator[Section]:
    disturbed = table.steps.filter("disturbed")
    if not disturbed.is_empty():
        lost_ns = pl.sum_horizontal("excess_ns", "gap_excess_ns")
        most = disturbed.filter(lost_ns.rank("ordinal", descending=True) <= _rows(table))
        rest = say_rest(most.height, disturbed.height, "disturbed steps")
        yield Section("Disturbed steps", _DISTURBED_FIELDS, _named(most), tuple(rest))
    if (table.differences["what"] != REST).any():
        differences = table.differences.head(_rows(table))
        yield Section("What was different in disturbed steps", _DIFFERENCE_FIELDS, differences, _PARTS)


def _rows(table: StepTable) -> int:
    """Rows of the longer tables."""
    return table.steps.height + table.classes.height + table.differences.height if table.top is None else table.top


def _without_window(frame: pl.DataFrame) -> pl.DataFrame:
    """For people: where each window is the step's wall time, it isn't shown twice."""
    return frame.with_columns(pl.lit(None, dtype=pl.Int64).alias(name) for name in frame.columns if "window" in name)


def _named(frame: pl.DataFrame) -> pl.DataFrame:
    """For people: an unknown phase, a disturbed step where that could be judged, and one that is no whole one."""
    words = [pl.col("phase").fill_null(UNKNOWN_PHASE)]
    if "disturbed" in frame.columns:
        is_judged = pl.col("excess_ns").is_not_null()
        words.append(pl.when("disturbed").then(pl.lit("yes")).when(is_judged).then(pl.lit("no")).alias("disturbed"))
        state = pl.when("is_partial").then(pl.lit("partial")).when("is_warm_up").then(pl.lit("warm-up"))
        words.append(state.alias("state"))
    return frame.with_columns(words)


def _trend_rows(trends: pl.DataFrame) -> pl.DataFrame:
    """For people: whole times and what carries them."""
    half = ((pl.col("high_ns") - pl.col("low_ns")) / 2).alias("half_ns")
    words = pl.when("is_trend").then(pl.lit("yes")).otherwise(pl.lit("no")).alias("is_trend")
    of = pl.coalesce("class", "of").alias("of")
    return _named(trends.with_columns(half, words, of, pl.col("class").is_not_null().alias(_IS_CLASS)))


VIEW = View(
    schema=Schema("steps", 1), facts=_facts, sections=_sections, remarks=_remarks, in_json=_in_json, table=_each_step
)
