"""A counter of both runs over time in one chart, on the same axes, each run from its own start.

A point is what the comparison judged: one value per tick (of cores the median, of devices that the source doesn't say
apart the most harmful) or a cycle.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl

from inferometer.analyses.compare.causes.causes import Cause
from inferometer.analyses.compare.causes.counters import Entity
from inferometer.analyses.compare.comparison import Comparison
from inferometer.reports.page.blocks import Chart
from inferometer.reports.page.drawing import axis
from inferometer.reports.page.look import SIDES
from inferometer.reports.page.sampling import Values, keep_extremes, rounded
from inferometer.reports.page.sections._two_runs import line, marker
from inferometer.trace.trace import Trace
from inferometer.units import format_sample

MOST_CAUSES = 6
"""Ranked causes with a curve next to their score."""

MOST_SAMPLES = 300
"""Samples of one metric in one run."""

CURVES = "Times count from the start of each run. Dashed: the medians that the comparison uses, over all ticks drawn."
_NS = 1e9
Pair = tuple[Entity, Entity]


def curved_causes(found: Comparison) -> list[Cause]:
    """The causes whose curves stand next to their scores: the first that changed for the worse, with times."""
    if found.comparable.stops:
        return []
    timed = [
        {entity.key for entity in run if entity.times_ns is not None}
        for run in (found.series.base, found.series.candidate)
    ]
    worse = [cause for cause in found.causes if cause.severity > 0]
    return [cause for cause in worse[:MOST_CAUSES] if all((cause.metric, cause.device) in run for run in timed)]


def run_start(trace: Trace) -> int:
    """The first moment that the run covers, ns."""
    columns = (("counters", "time_ns"), ("steps", "start_ns"), ("launches", "start_ns"))
    firsts = [trace.tables[table].select(pl.col(column).min()).collect().item() for table, column in columns]
    return min((first for first in firsts if first is not None), default=0)


def curve(found: Comparison, pair: Pair, starts_ns: Sequence[int], *, rank: int = 0) -> Iterator[Chart]:
    """The chart; none where a run doesn't say when its values are of. `rank`: its place among the causes, from 1."""
    seconds = [
        None if entity.times_ns is None else (entity.times_ns - start_ns) / _NS
        for entity, start_ns in zip(pair, starts_ns, strict=True)
    ]
    if seconds[0] is None or seconds[1] is None:
        return
    medians = _medians(found, *pair)
    data: list[dict[str, Any]] = []
    for side, (entity, times) in enumerate(zip(pair, (seconds[0], seconds[1]), strict=True)):
        data += _lines(side, entity.values, times, medians[side])
    base = pair[0]
    unit = f", {base.unit}" if base.unit else ""
    title = f"{f'{rank}. ' if rank else ''}{base.metric} on {base.device}{unit}"
    windows = (
        _window(SIDES[side], entity, times, medians[side])
        for side, (entity, times) in enumerate(zip(pair, (seconds[0], seconds[1]), strict=True))
    )
    role = base.role.cause_class or base.role.kind
    layout = {"xaxis": axis("Since the run's start, s"), "yaxis": {"rangemode": "tozero"}}
    yield Chart(title, f"Median {', '.join(windows)} ({role}).", data, layout, height=230)


def _window(side: str, entity: Entity, seconds: Values, median: float) -> str:
    """What the comparison takes of a run: the median, of how many ticks, and when these were."""
    ticks = f"{len(entity.values):,} tick{'s' if len(entity.values) != 1 else ''}"
    unit = f" {entity.unit}" if entity.unit else ""
    first, last = (format_sample(round(float(at), 2)) for at in (seconds.min(), seconds.max()))
    when = f"{first} to {last} s"
    return f"{format_sample(median)}{unit} in the {side} ({ticks}, {when})"


def _lines(side: int, values: Values, seconds: Values, median: float) -> Iterator[dict[str, Any]]:
    """A run's values over time, and their median."""
    kept = keep_extremes(values, MOST_SAMPLES)
    yield {
        "type": "scatter",
        "mode": "lines+markers",
        "name": SIDES[side],
        "x": rounded(seconds[kept], 5),
        "y": rounded(values[kept], 5),
        "marker": marker(side, 6),
        "line": line(side, width=1),
        "hovertemplate": f"{SIDES[side]} at %{{x}} s: %{{y}}<extra></extra>",
    }
    yield {
        "type": "scatter",
        "mode": "lines",
        "x": rounded([seconds.min(), seconds.max()], 5),
        "y": rounded([median] * 2, 5),
        "line": line(side, dash="dash", width=1.5),
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _medians(found: Comparison, base: Entity, candidate: Entity) -> tuple[float, float]:
    """Those of the cause where it is one: what scores come from."""
    cause = next((one for one in found.causes if (one.metric, one.device) == base.key), None)
    if cause is not None:
        return cause.base, cause.candidate
    return float(np.median(base.values)), float(np.median(candidate.values))
