"""Where steps spend their time: classes of kernels over the steps, and layers over the steps."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
from msgspec.structs import replace

from inferometer.analyses.steps.printed import printed_of_run
from inferometer.analyses.steps.sources import UNKNOWN_PHASE
from inferometer.analyses.steps.table import StepTable
from inferometer.names.engine_labels import class_of_label
from inferometer.reports.page.blocks import Block, Chart, Grid, Words
from inferometer.reports.page.drawing import REST_COLOR, TimeUnit, axis, color, kernel_labels, stacked
from inferometer.reports.page.look import RunData
from inferometer.reports.page.sampling import Indices, Values, bucket_means, buckets
from inferometer.reports.page.section import RunSection
from inferometer.reports.views.layout import Section
from inferometer.reports.views.view import sections_of
from inferometer.units import format_duration, format_share

CLASSES = 8
COLUMNS = 150
"""Bars side by side: with more steps, a bar is the mean of several."""

CELLS = 12_000
_PHASES = 3
_TITLE = "Kernel classes by step"
_LACKING = (
    "The trace would need the time of kernels in each step: launches with the host calls that queued them, or sums "
    "that an engine prints step by step."
)


def build(run: RunData) -> Block | None:
    """Nothing without steps: that section has it."""
    table = run.steps
    if table is None:
        return None
    if table.class_steps.is_empty():
        return Block("step_classes", _TITLE, lacking=_LACKING)
    charts = [*_stacks(table), *_layers(run, table)]
    grids = [Grid(_by_kernel(one), group="phase") for one in sections_of(table) if one.title == "Classes of kernels"]
    return Block("step_classes", _TITLE, [Words(" ".join(_notes(table)), "note"), *charts, *grids])


def _by_kernel(section: Section) -> Section:
    """A class is named after its kernels."""
    fields = [replace(field, kind="kernel") if field.column == "class" else field for field in section.fields]
    return replace(section, fields=fields)


def _notes(table: StepTable) -> Iterator[str]:
    yield "Times are sums over all streams: where kernels overlap, more than the GPU was busy."
    single = table.phases.filter(pl.col("steps") == 1)["phase"].fill_null(UNKNOWN_PHASE)
    if single.len():
        yield f"Of {' and '.join(single)} there is one step: it is in the table alone."
    if len(table.runs) > 1:
        rank = "" if table.rank is None else f" of rank {table.rank}"
        yield f"All of this is of run {table.run}{rank}."


def _stacks(table: StepTable) -> Iterator[Chart]:
    """One chart per phase with several steps, the phases with the most kernel time first."""
    sums = table.classes.group_by("phase", maintain_order=True).agg(pl.col("total_ns").sum())
    for phase in sums.sort("total_ns", descending=True, maintain_order=True)["phase"].head(_PHASES):
        steps = table.steps.filter(pl.col("phase").eq_missing(phase))["step"]
        if steps.len() > 1:
            yield _stack(table, phase, steps)


def _stack(table: StepTable, phase: str | None, steps: pl.Series) -> Chart:
    own = table.classes.filter(pl.col("phase").eq_missing(phase))
    first = own.head(CLASSES)["class"].to_list()
    times = table.class_steps.filter(pl.col("phase").eq_missing(phase))
    labels = kernel_labels(first)
    edges = buckets(steps.len(), COLUMNS)
    whole = _by_step(times, steps)
    largest = float(bucket_means(whole, edges).max())
    unit = TimeUnit.of(largest)
    data, rest = [], whole.copy()
    for i, name in enumerate(first):
        values = _by_step(times.filter(pl.col("class") == name), steps)
        rest -= values
        data.append(_bars(labels[name], steps, values, edges, unit, color(i)))
    others = own.height - len(first)
    if others:
        data.append(_bars(f"other {others:,} classes", steps, rest, edges, unit, REST_COLOR))
    size = f"; a bar is the mean of up to {int(np.diff(edges).max())} steps" if len(edges) - 1 < steps.len() else ""
    share, words = format_share(own["share"][0]), phase or UNKNOWN_PHASE
    alt = (
        f"{labels[first[0]]} takes {share} of the kernel time of {steps.len():,} {words} steps. Kernel time is "
        f"{format_duration(whole[0])} in the first step and {format_duration(whole[-1])} in the last{size}."
    )
    layout = stacked({"xaxis": axis("Step"), "yaxis": unit.axis("Kernel time per step")})
    return Chart(f"Classes of kernels, {words} steps", alt, data, layout, height=420)


def _by_step(times: pl.DataFrame, steps: pl.Series) -> Values:
    """Kernel time of each step, 0 where there is none."""
    sums = times.group_by("step").agg(pl.col("total_ns").sum())
    joined = steps.to_frame("step").join(sums, on="step", how="left", maintain_order="left")
    return joined["total_ns"].fill_null(0).cast(pl.Float64).to_numpy().copy()


def _bars(name: str, steps: pl.Series, values: Values, edges: Indices, unit: TimeUnit, shade: str) -> dict[str, Any]:
    return {
        "type": "bar",
        "name": name,
        "x": _named_buckets(steps, edges),
        "y": unit.scaled(bucket_means(values, edges)),
        "marker": {"color": shade, "line": {"width": 0}},
        "hovertemplate": f"step %{{x}}: %{{y}} {unit.name}",
    }


def _named_buckets(steps: pl.Series, edges: Indices) -> list[Any]:
    """Numbers of the steps, or as text the first and last of each bucket."""
    if len(edges) - 1 == steps.len():
        return steps.to_list()
    numbers = steps.to_list()
    pairs = ((numbers[a], numbers[b - 1]) for a, b in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
    return [str(a) if a == b else f"{a} to {b}" for a, b in pairs]


def _layers(run: RunData, table: StepTable) -> Iterator[Chart]:
    """Of the class with the most time in one phase, among those whose layers are reported."""
    known = table.classes.filter(pl.col("layers") > 1, pl.col("steps") > 1).sort("total_ns", "class", descending=True)
    if known.is_empty():
        return
    phase, name = known.select("phase", "class").row(0)
    steps = table.steps.filter(pl.col("phase").eq_missing(phase))["step"]
    cells = _layer_times(run, table, name).filter(pl.col("step").is_in(steps.to_list()))
    layers = sorted(cells["layer"].unique().to_list(), key=_layer_order)[: CELLS // 2]
    edges = buckets(steps.len(), min(300, CELLS // len(layers)))
    rows = [bucket_means(_by_step(cells.filter(pl.col("layer") == layer), steps), edges) for layer in layers]
    unit = TimeUnit.of(max(float(row.max()) for row in rows))
    means = [float(row.mean()) for row in rows]
    most = int(np.argmax(means))
    label = kernel_labels([name])[name]
    data = {
        "type": "heatmap",
        "x": _named_buckets(steps, edges),
        "y": layers,
        "z": [unit.scaled(row, 3) for row in rows],
        "colorscale": [[0.0, "rgba(128,128,128,0.10)"], [1.0, color(0)]],
        "colorbar": {"title": {"text": unit.name}},
        "hovertemplate": f"layer %{{y}}, step %{{x}}: %{{z}} {unit.name}<extra></extra>",
    }
    alt = (
        f"{label} in {len(layers):,} layers: layer {layers[most]} takes most, {format_duration(means[most])} per step, "
        f"the mean layer {format_duration(float(np.mean(means)))}."
    )
    layout = {"xaxis": axis("Step"), "yaxis": axis("Layer", type="category", automargin=True)}
    height = min(800, 160 + 14 * len(layers))
    yield Chart(f"Layers by step: {label}", alt, [data], layout, height=height)


def _layer_times(run: RunData, table: StepTable, name: str) -> pl.DataFrame:
    """`step`, `layer`, `total_ns` of a class in the run of the table."""
    rows = printed_of_run(run.trace, table.rank, table.process).filter(pl.col("layer").is_not_null())
    found = rows.select("step", "kernel", "layer", "total_ns").collect()
    labels = [label for label in found["kernel"].unique() if class_of_label(label) == name]
    return found.filter(pl.col("kernel").is_in(labels)).group_by("step", "layer").agg(pl.col("total_ns").sum())


def _layer_order(layer: str) -> tuple[int, str]:
    return (int(layer), "") if layer.isdecimal() else (10**9, layer)


SECTION = RunSection("step_classes", build, after="steps")
