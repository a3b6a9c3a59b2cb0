"""Which metrics may have slowed the candidate, which only follow from that, and which are next to it."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl

from inferometer.analyses.compare.causes.causes import Cause
from inferometer.analyses.compare.causes.counters import Entity
from inferometer.analyses.compare.comparison import Comparison
from inferometer.analyses.comparison_limits import AGREES, DISAGREES, UNKNOWN
from inferometer.reports.page.blocks import Block, Chart, Grid, Part, Words
from inferometer.reports.page.drawing import axis, color, cut, distinct, vertical_line
from inferometer.reports.page.look import SIDES, PageData
from inferometer.reports.page.sampling import rounded
from inferometer.reports.page.section import PageSection
from inferometer.reports.page.sections._counter_curves import CURVES, curve, curved_causes, run_start
from inferometer.reports.page.sections._two_runs import NOT_COMPARABLE
from inferometer.reports.views.layout import Field, Section
from inferometer.units import format_sample

MOST_BARS = 12

_TITLE = "Causes, effects, context"
_DIGITS = 3
_FIELDS = (
    Field("metric", "Metric", "name"),
    Field("role", "Role", "text"),
    Field("device", "Device", "text"),
    Field("score", "Score", "number"),
    Field("severity", "Severity", "number", spare=1),
    Field("agreement", "Agreement", "number", spare=1),
    Field("base", "Base", "text"),
    Field("candidate", "Candidate", "text"),
    Field("unit", "Unit", "text", spare=1),
    Field("ratio", "Ratio, 95 %", "text", spare=1),
    Field("q", "q", "text", spare=1),
    Field("ticks", "Ticks", "text", spare=1),
    Field("class", "Class", "text", spare=1),
)
_SCORE = (
    "Score = severity × agreement × (1 - q). Severity, 0 to 1, is in physical terms: the part of a clock that is gone, "
    "of a capacity that is used up. q: the chance that ticks stand so though nothing changed, over all metrics."
)
_AGREEMENT = (
    f"Agreement: {AGREES:g} where those functions slowed that the metric slows, {UNKNOWN:g} where nobody knows which "
    f"slowed, {DISAGREES:g} where others did, or a wait accounts for less than half of what a step takes longer."
)
_ROLES = (
    "An effect is the program's own use of a resource: it follows the step and never explains it. Context has no rule. "
    "Values are medians over ticks."
)


def build(look: PageData) -> Block | None:
    """The claim, the scores as bars with the level of false alarms, and every metric of both runs with its role."""
    found = look.comparison
    if found is None:
        return None
    if found.comparable.stops:
        return Block("causes", _TITLE, lacking=NOT_COMPARABLE)
    rows = [*_causes(found), *_others(*look.entities)]
    if not rows:
        lacking = "Counters of the host or the devices in both runs (clocks, load by others, traffic, memory)."
        return Block("causes", _TITLE, lacking=lacking)
    notes = (_SCORE, _AGREEMENT, _ROLES)
    table = Section("Metrics of both runs", _FIELDS, pl.DataFrame(rows, infer_schema_length=None), notes)
    parts: list[Part] = [Words(_claim(found)), *_calibration(found), *_scores(found), *_curves(look, found)]
    return Block("causes", _TITLE, [*parts, Grid(table)])


def _claim(found: Comparison) -> str:
    claimed = found.judged.claimed
    if claimed is None:
        return "No metric is claimed as the cause."
    change = f"{format_sample(claimed.base)} to {format_sample(claimed.candidate)} {claimed.unit or ''}".rstrip()
    assumed = f" Its severity assumes {claimed.assumed}." if claimed.assumed else ""
    is_named = "is named as the cause" if found.verdict == "cause named" else "is the likeliest cause, not claimed"
    where = f"{claimed.metric} on {claimed.device}"
    return f"{where} {is_named}: {change}, score {claimed.score:.3f}.{assumed}"


def _calibration(found: Comparison) -> Iterator[Part]:
    halves = found.calibration.halves
    if halves:
        level = f"{found.calibration.level:.3f}"
        yield Words(
            f"False alarms: {len(halves)} comparisons of normal runs with themselves score {level} at most.", "note"
        )


def _scores(found: Comparison) -> Iterator[Chart]:
    scored = [cause for cause in found.causes if cause.severity > 0]
    if not scored:
        return
    shown, level = scored[:MOST_BARS], found.calibration.level
    data = {
        "type": "bar",
        "orientation": "h",
        "y": distinct([cut(_place(cause)) for cause in shown]),
        "x": rounded(cause.score for cause in shown),
        "marker": {"color": [_colour(cause, found) for cause in shown]},
        "customdata": [
            f"severity {cause.severity:.3f}, agreement {cause.agreement:g}, q {cause.q:.2g}" for cause in shown
        ],
        "hovertemplate": "%{y}: score %{x}<br>%{customdata}<extra></extra>",
        "showlegend": False,
    }
    layout: dict[str, Any] = {
        "xaxis": axis("Score", range=[0, rounded([1.1 * max(level, shown[0].score, 0.05)])[0]]),
        "yaxis": {"autorange": "reversed", "automargin": True, "type": "category"},
    }
    if found.calibration.halves:
        layout["xaxis"]["title"]["text"] = "Score; dashed: false alarms"
        layout["shapes"] = [vertical_line(level)]
    first, second = shown[0], shown[1] if len(shown) > 1 else None
    than = f", {_place(second)} {second.score:.3f}" if second else ""
    above = sum(cause.score > level for cause in scored)
    alt = (
        f"{_place(first)} scores {first.score:.3f}{than}. {above} of {len(scored)} metrics that changed for the worse "
        f"score more than false alarms do ({level:.3f})."
        if found.calibration.halves
        else f"{_place(first)} scores {first.score:.3f}{than}. How high false alarms score isn't known."
    )
    yield Chart("Scores of metrics that changed for the worse", alt, [data], layout, 130 + 28 * len(shown))


def _curves(look: PageData, found: Comparison) -> Iterator[Part]:
    """What the ranked causes did over time in both runs, the first first."""
    causes = curved_causes(found)
    if not causes or look.candidate is None:
        return
    base, candidate = ({entity.key: entity for entity in run} for run in look.entities)
    starts_ns = run_start(look.base.trace), run_start(look.candidate.trace)
    yield Words(" ".join([CURVES, *_step_windows(found, starts_ns)]), "note")
    ranks = {id(cause): rank for rank, cause in enumerate(found.causes, start=1)}
    for cause in causes:
        key = (cause.metric, cause.device)
        yield from curve(found, (base[key], candidate[key]), starts_ns, rank=ranks[id(cause)])


def _step_windows(found: Comparison, starts_ns: Sequence[int]) -> Iterator[str]:
    """When the compared steps begin, where both runs say: counters of other times say less of them."""
    windows, pair = [], found.leading.pair
    for run, start_ns, side in zip((pair.base, pair.candidate), starts_ns, SIDES, strict=True):
        begins = run.cycles.filter("complete")["start_ns"].drop_nulls().to_numpy()
        if len(begins) < 2:
            return
        first, last = (format_sample(round(float(ns - start_ns) / 1e9, 2)) for ns in (begins.min(), begins.max()))
        windows.append(f"{first} and {last} s of the {side}")
    yield f"The compared steps begin between {' and between '.join(windows)}."


def _place(cause: Cause) -> str:
    return f"{cause.metric} on {cause.device}"


def _colour(cause: Cause, found: Comparison) -> str:
    return "var(--bad)" if cause is found.judged.claimed else color(0)


def _causes(found: Comparison) -> Iterator[dict[str, object]]:
    named = "cause, named" if found.verdict == "cause named" else "cause, likeliest"
    for cause in found.causes:
        interval = cause.interval
        yield {
            "role": named
            if cause is found.judged.claimed
            else "cause, possible"
            if cause.severity > 0
            else "cause, not for the worse",
            "metric": cause.metric,
            "device": cause.device,
            "score": round(cause.score, _DIGITS),
            "severity": round(cause.severity, _DIGITS),
            "agreement": cause.agreement,
            "base": format_sample(cause.base),
            "candidate": format_sample(cause.candidate),
            "unit": cause.unit,
            "ratio": f"{interval[0]:.3f} to {interval[1]:.3f}" if interval else None,
            "q": f"{cause.q:.2g}",
            "ticks": f"{cause.ticks[0]:,} and {cause.ticks[1]:,}",
            "class": cause.cause_class,
        }


def _others(base: Sequence[Entity], candidate: Sequence[Entity]) -> Iterator[dict[str, object]]:
    """Effects, then context, of both runs; medians alone, since nobody asks them whether they are to blame."""
    other = {entity.key: entity for entity in candidate}
    for role in ("effect", "context"):
        for one in base:
            two = other.get(one.key)
            if one.role.kind != role or two is None or not (len(one.values) and len(two.values)):
                continue
            yield dict.fromkeys(field.column for field in _FIELDS) | {
                "role": role,
                "metric": one.metric,
                "device": one.device,
                "base": format_sample(float(np.median(one.values))),
                "candidate": format_sample(float(np.median(two.values))),
                "unit": one.unit if one.unit == two.unit else f"{one.unit or '-'} and {two.unit or '-'}",
                "ticks": f"{len(one.values):,} and {len(two.values):,}",
            }


SECTION = PageSection("causes", build, after="contributions")
