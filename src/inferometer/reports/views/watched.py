"""What a watch saw: each slowdown with its onset, how much slower, how long, and why."""

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.layout import Field, Section
from inferometer.reports.views.view import View
from inferometer.units import format_counted, format_duration, format_share
from inferometer.watch.normal import FEWEST
from inferometer.watch.watched import Slowdown, Watched
from inferometer.watch.watcher import Change, Kind

_DRIFT = 0.05  # normal steps that take so much longer than at first are worth a sentence
_SLOWDOWNS = (
    Field("since", "Since", "text", leads=True),
    Field("noticed", "Noticed", "text"),
    Field("ended", "Ended", "text"),
    Field("owner", "Of", "text", spare=3),
    Field("phase", "Phase", "text", spare=2),
    Field("ratio", "Times Expected", "ratio"),
    Field("steps_to_alarm", "Steps to Alarm", "count", spare=1),
    Field("cause", "Cause", "text"),
)
_PHASES = (
    Field("phase", "Phase", "text", leads=True),
    Field("steps", "Steps", "count"),
    Field("judged", "Judged", "count", spare=1),
    Field("median_ns", "Median", "ns"),
    Field("ratio", "Times Expected", "ratio"),
    Field("drift", "Normal, over First", "share", spare=2),
)


def sentence_of(slowdown: Slowdown, change: Change, first_ns: int) -> str:
    """What became of steps, in one sentence; times count from `first_ns`, the first step's."""
    of = f" of {change.owner}" if change.owner else ""
    since = format_duration(change.since_ns - first_ns)
    if change.kind is Kind.RECOVERED:
        slow = format_duration(change.since_ns - slowdown.alarm.since_ns)
        return f"Normal again since {since}, after {slow} in which {_times(change, of)}."
    if change.kind is Kind.WORSE:
        return f"Worse since {since}: {_times(change, of)}."
    onset = f"{format_duration(change.first_ns - first_ns)} to {format_duration(change.last_ns - first_ns)}"
    late = format_counted(change.steps, "step")
    return f"Slow since {since} (95 %: {onset}), noticed after {late}, in which {_times(change, of)}."


def _times(change: Change, of: str) -> str:
    most = change.slowdowns[0]
    interval = f" (98 %: {most.low:.2f} to {most.high:.2f})" if most.low is not None else ""
    phase = f"{most.phase} steps" if most.phase else "steps"
    return f"{phase}{of} took {most.ratio:.2f} times the expected time{interval}"


def _sections(watched: Watched) -> Sequence[Section]:
    rows = [_row(one, watched.first_ns) for one in watched.slowdowns]
    phases = watched.phases.with_columns(pl.col("phase").fill_null("unknown"), pl.col("drift").round(3) + 0.0)
    found = [Section("Steps by Phase", _PHASES, phases)]
    if not rows:
        return found
    frame = pl.DataFrame(rows, infer_schema_length=None)
    fields = [field for field in _SLOWDOWNS if frame[field.column].null_count() < frame.height]
    return [Section("Slowdowns", fields, frame), *found]


def _row(one: Slowdown, first_ns: int) -> dict[str, Any]:
    return {
        "since": format_duration(one.alarm.since_ns - first_ns),
        "noticed": format_duration(one.alarm.at_ns - first_ns),
        "ended": format_duration(one.recovered.since_ns - first_ns) if one.recovered else "no",
        "owner": one.alarm.owner,
        "phase": one.slow[0].phase,
        "ratio": one.ratio,
        "steps_to_alarm": one.alarm.steps,
        "cause": (one.why.metric or one.why.verdict) if one.why else None,
    }


def _facts(watched: Watched) -> Iterator[tuple[str, str]]:
    length = format_duration(watched.last_ns - watched.first_ns)
    yield "Watched", f"{format_counted(watched.steps, watched.unit)} in {length}"
    yield "State", watched.state


def _remarks(watched: Watched) -> Iterator[str]:
    for one in watched.slowdowns:
        yield sentence_of(one, one.alarm, watched.first_ns)
        for worse in one.worse:
            yield sentence_of(one, worse, watched.first_ns)
        if one.recovered:
            yield sentence_of(one, one.recovered, watched.first_ns)
        if one.why:
            yield f"Next to the normal time before: {one.why.verdict}. {one.why.sentence}"
    if not watched.judged:
        yield f"Nothing could be judged: {FEWEST} steps of a phase are learned from first."
    elif not watched.slowdowns:
        yield f"No slowdown of {format_share(watched.least)} or more was seen."
    unjudged = watched.steps - watched.judged
    if watched.judged and unjudged:
        counted = format_counted(unjudged, watched.unit)
        yield f"Not judged: {counted}, which were learned from first, or did much more work than any before."
    for phase, drift in watched.phases.select("phase", "drift").drop_nulls("drift").iter_rows():
        if drift >= _DRIFT:
            name = f"{phase} steps" if phase else "steps"
            yield f"Slow drift: normal {name} take {format_share(drift)} longer than those that were learned first."


VIEW = View(schema=Schema("watch", 1), sections=_sections, facts=_facts, remarks=_remarks, remarks_in_json=True)
"""How a watch is shown."""
