"""Counters over time of both runs, each run from its own start: the ranked causes first.

Where the samples of a metric are its ticks, or every cycle has one value, the line is what the comparison judged. Where
a tick has several samples (of cores, disks, devices that the source doesn't tell apart), each sample is a point.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from inferometer.analyses.cause_roles import OTHERS_CPU, OTHERS_GPU
from inferometer.analyses.compare import Comparison
from inferometer.analyses.run_activity import HOST
from inferometer.analyses.run_counters import POOLED, Entity
from inferometer.reports.page.blocks import Block, Chart, Part, Words
from inferometer.reports.page.drawing import axis
from inferometer.reports.page.look import Look
from inferometer.reports.page.sampling import Values, keep_extremes, rounded
from inferometer.reports.page.section import PageSection
from inferometer.reports.page.sections._two_runs import SIDES, line, marker
from inferometer.trace.trace import Trace
from inferometer.units import format_sample

MOST_METRICS = 12
MOST_SAMPLES = 300
"""Of one metric in one run."""

_TITLE = "Counters of both runs"
_NS = 1e9
_NAMED = 20  # metrics that are listed and not drawn
_WHOLE = {OTHERS_CPU: "host_cpu_usage", OTHERS_GPU: "gpu_usage"}  # whose ticks a derived series has
_LACKING = "A counter that both runs have, with times: clocks, load, traffic or memory of the host or the devices."
_KEY = ["metric", "device"]
_Key = tuple[str, str]
_Samples = dict[tuple[str, str | None], pl.DataFrame]


@dataclass(frozen=True)
class Series:
    """A metric over time. Shape (n,) each; `time_s` since the run's start. `is_line`: one value a tick or cycle."""

    time_s: Values
    values: Values
    is_line: bool

    @property
    def is_flat(self) -> bool:
        """Whether nothing can be seen in it."""
        return float(np.ptp(self.values)) == 0


def build(look: Look) -> Block | None:
    """A chart a metric, the ranked causes first, and which metrics are not drawn."""
    found = look.comparison
    if found is None or look.candidate is None:
        return None
    entities = look.entities
    clocks = _Clock(look.trace), _Clock(look.candidate)
    by_key = [{entity.key: entity for entity in run} for run in entities]
    drawn: list[Part] = []
    flat, untimed, others = [], [], []
    for key in _ranked(found, *by_key):
        if len(drawn) == MOST_METRICS:
            others.append(key)
            continue
        pair = [clock.series(run[key]) for clock, run in zip(clocks, by_key, strict=True)]
        known = [one for one in pair if one is not None]
        if len(known) < len(SIDES):
            untimed.append(key)
        elif all(one.is_flat for one in known) and known[0].values[0] == known[1].values[0]:
            flat.append(key)
        else:
            drawn.append(_chart(found, by_key[0][key], known))
    if not drawn:
        return Block("compared_counters", _TITLE, lacking=_LACKING)
    words = Words("Times count from the start of each run. Dashed: the medians that the comparison uses.", "note")
    return Block("compared_counters", _TITLE, [words, *drawn, *_not_drawn(flat, untimed, others)])


def _ranked(found: Comparison, base: dict[_Key, Entity], candidate: dict[_Key, Entity]) -> list[_Key]:
    """Causes in their order, then effects, then context; of what both runs have, in one unit."""
    causes = [(cause.metric, cause.device) for cause in found.causes]
    kinds = {kind: i for i, kind in enumerate(("cause", "effect", "context"))}
    rest = sorted((key for key in base if key not in causes), key=lambda key: kinds[base[key].role.kind])
    both = [key for key in [*causes, *rest] if key in base and key in candidate]
    return [key for key in both if base[key].unit == candidate[key].unit and len(base[key].values)]


class _Clock:
    """When a run's metrics were sampled, from its start."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.start_ns = _start(trace)

    def series(self, entity: Entity) -> Series | None:
        """The metric over time; None where its samples have none."""
        metric = _WHOLE.get(entity.metric, entity.metric)
        pools = entity.device in (HOST, POOLED)
        sources = (self._counters, self._cycles) if pools else (self._cycles, self._counters)
        keys = [(metric, entity.device), *([(metric, None)] if pools else [])]
        for samples in (_longest(source[key]) for source in sources for key in keys if key in source):
            time_s = (samples["time_ns"].to_numpy() - self.start_ns) / _NS
            if len(time_s) == len(entity.values):
                return Series(time_s, entity.values, is_line=True)
            if metric == entity.metric:
                return Series(time_s, samples["value"].to_numpy(), is_line=False)
        return None

    @cached_property
    def _counters(self) -> _Samples:
        """`process`, `time_ns`, `value` by metric and device, in order of time."""
        known = pl.col("value").is_finite() & pl.col("time_ns").is_not_null()
        rows = self.trace.counters.filter(known).select(*_KEY, "process", "time_ns", "value")
        return _by_key(rows.sort("time_ns").collect())

    @cached_property
    def _cycles(self) -> _Samples:
        """The same of metrics that were sampled while functions ran: one value a cycle, when that began."""
        columns = ("process", pl.col("step").alias("cycle"), pl.col("start_ns").alias("time_ns"))
        starts = self.trace.steps.select(columns).drop_nulls("time_ns").unique(["process", "cycle"], keep="first")
        rows = self.trace.function_metrics.filter(pl.col("mu").is_finite())
        values = rows.group_by(*_KEY, "process", "cycle").agg(pl.col("mu").median().alias("value"))
        timed = values.join(starts, on=["process", "cycle"], nulls_equal=True).sort("cycle")
        return _by_key(timed.select(*_KEY, "process", "time_ns", "value").collect())


def _by_key(samples: pl.DataFrame) -> _Samples:
    return {(key[0], key[1]): rows for key, rows in samples.partition_by(_KEY, as_dict=True).items()}


def _longest(samples: pl.DataFrame) -> pl.DataFrame:
    """The samples of the process that has most, as the comparison takes them."""
    if samples["process"].n_unique() < 2:
        return samples
    process = samples["process"].value_counts(sort=True)["process"][0]
    return samples.filter(pl.col("process").eq_missing(process))


def _start(trace: Trace) -> int:
    """The first moment that the run tells of, ns."""
    columns = (("counters", "time_ns"), ("steps", "start_ns"), ("launches", "start_ns"))
    firsts = [trace.tables[table].select(pl.col(column).min()).collect().item() for table, column in columns]
    return min((first for first in firsts if first is not None), default=0)


def _chart(found: Comparison, entity: Entity, pair: Sequence[Series]) -> Chart:
    medians = _medians(found, entity, pair)
    data: list[dict[str, Any]] = []
    for side, series in enumerate(pair):
        kept = keep_extremes(series.values, MOST_SAMPLES)
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers" if series.is_line else "markers",
                "name": SIDES[side],
                "x": rounded(series.time_s[kept], 5),
                "y": rounded(series.values[kept], 5),
                "marker": marker(side, 6 if series.is_line else 5),
                "line": line(side, width=1),
                "hovertemplate": f"{SIDES[side]} at %{{x}} s: %{{y}}<extra></extra>",
            }
        )
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "x": rounded([series.time_s.min(), series.time_s.max()], 5),
                "y": rounded([medians[side]] * 2, 5),
                "line": line(side, dash="dash", width=1.5),
                "hoverinfo": "skip",
                "showlegend": False,
            }
        )
    unit = f" {entity.unit}" if entity.unit else ""
    role = entity.role.cause_class or entity.role.kind
    alt = f"Median {format_sample(medians[0])}{unit} in the base, {format_sample(medians[1])}{unit} in the candidate"
    title = f"{entity.metric} on {entity.device}{f', {entity.unit}' if entity.unit else ''}"
    layout = {"xaxis": axis("Since the run's start, s"), "yaxis": {"rangemode": "tozero"}}
    return Chart(title, f"{alt} ({role}).", data, layout, height=230)


def _medians(found: Comparison, entity: Entity, pair: Sequence[Series]) -> tuple[float, float]:
    """Those of the cause where it is one: what scores come from."""
    cause = next((one for one in found.causes if (one.metric, one.device) == entity.key), None)
    if cause is not None:
        return cause.base, cause.candidate
    return float(np.median(pair[0].values)), float(np.median(pair[1].values))


def _not_drawn(flat: Sequence[_Key], untimed: Sequence[_Key], others: Sequence[_Key]) -> Iterator[Part]:
    for words, keys in (
        ("One value all the time, the same in both runs", flat),
        ("Derived, or sampled without times", untimed),
        (f"Not drawn, since {MOST_METRICS} are", others),
    ):
        if keys:
            more = f" and {len(keys) - _NAMED:,} more" if len(keys) > _NAMED else ""
            yield Words(
                f"{words}: {', '.join(f'{metric} on {device}' for metric, device in keys[:_NAMED])}{more}.", "note"
            )


SECTION = PageSection("compared_counters", 35, build)
