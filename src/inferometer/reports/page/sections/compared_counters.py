"""Counters over time of both runs, each run from its own start: the ranked causes first.

A point is what the comparison judged: one value a tick (of cores the median, of devices that the source doesn't tell
apart the most harmful) or a cycle. The samples of a tick stand in `counters`, which shows one run.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl

from inferometer.analyses.compare.causes.counters import Entity
from inferometer.analyses.compare.comparison import Comparison
from inferometer.reports.page.blocks import Block, Chart, Part, Words
from inferometer.reports.page.drawing import axis
from inferometer.reports.page.look import SIDES, PageData
from inferometer.reports.page.sampling import Values, keep_extremes, rounded
from inferometer.reports.page.section import PageSection
from inferometer.reports.page.sections._two_runs import line, marker
from inferometer.trace.trace import Trace
from inferometer.units import format_sample

MOST_METRICS = 12
MOST_SAMPLES = 300
"""Of one metric in one run."""

_TITLE = "Counters of both runs"
_NS = 1e9
_NAMED = 20  # metrics that are listed and not drawn
_LACKING = "A counter that both runs have, with times: clocks, load, traffic or memory of the host or the devices."
_Key = tuple[str, str]


def build(look: PageData) -> Block | None:
    """A chart per metric, the ranked causes first, and which metrics are not drawn."""
    found = look.comparison
    if found is None or look.candidate is None:
        return None
    base, candidate = ({entity.key: entity for entity in run} for run in look.entities)
    starts_ns = _start(look.base.trace), _start(look.candidate.trace)
    drawn: list[Part] = []
    flat, untimed, others = [], [], []
    for key in _ranked(found, base, candidate):
        pair = base[key], candidate[key]
        seconds = [_seconds(entity, start_ns) for entity, start_ns in zip(pair, starts_ns, strict=True)]
        timed = [each for each in seconds if each is not None]
        if len(drawn) == MOST_METRICS:
            others.append(key)
        elif len(timed) < len(pair):
            untimed.append(key)
        elif _is_flat(*pair):
            flat.append(key)
        else:
            drawn.append(_chart(found, pair, timed))
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


def _is_flat(base: Entity, candidate: Entity) -> bool:
    """Whether nothing can be seen: one value in both runs."""
    return float(np.ptp(np.concatenate((base.values, candidate.values)))) == 0


def _seconds(entity: Entity, start_ns: int) -> Values | None:
    return None if entity.times_ns is None else (entity.times_ns - start_ns) / _NS


def _start(trace: Trace) -> int:
    """The first moment that the run tells of, ns."""
    columns = (("counters", "time_ns"), ("steps", "start_ns"), ("launches", "start_ns"))
    firsts = [trace.tables[table].select(pl.col(column).min()).collect().item() for table, column in columns]
    return min((first for first in firsts if first is not None), default=0)


def _chart(found: Comparison, pair: tuple[Entity, Entity], seconds: Sequence[Values]) -> Chart:
    medians = _medians(found, *pair)
    data: list[dict[str, Any]] = []
    for side, entity in enumerate(pair):
        data += _lines(side, entity.values, seconds[side], medians[side])
    base = pair[0]
    unit = f" {base.unit}" if base.unit else ""
    role = base.role.cause_class or base.role.kind
    alt = f"Median {format_sample(medians[0])}{unit} in the base, {format_sample(medians[1])}{unit} in the candidate"
    title = f"{base.metric} on {base.device}{f', {base.unit}' if base.unit else ''}"
    layout = {"xaxis": axis("Since the run's start, s"), "yaxis": {"rangemode": "tozero"}}
    return Chart(title, f"{alt} ({role}).", data, layout, height=230)


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


def _not_drawn(flat: Sequence[_Key], untimed: Sequence[_Key], others: Sequence[_Key]) -> Iterator[Part]:
    for words, keys in (
        ("One value all the time, the same in both runs", flat),
        ("Without times in one of the runs", untimed),
        (f"Not drawn, since {MOST_METRICS} are", others),
    ):
        if keys:
            more = f" and {len(keys) - _NAMED:,} more" if len(keys) > _NAMED else ""
            yield Words(
                f"{words}: {', '.join(f'{metric} on {device}' for metric, device in keys[:_NAMED])}{more}.", "note"
            )


SECTION = PageSection("compared_counters", build, after="causes")
