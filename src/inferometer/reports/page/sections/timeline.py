"""Over time: how busy each device and stream is, where its time goes, and why it waits."""

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from inferometer.analyses.timeline.gaps import CAUSES
from inferometer.analyses.timeline.lanes.events import Lanes
from inferometer.analyses.timeline.timeline import Timeline
from inferometer.analyses.timeline.work import place_name
from inferometer.reports.page.blocks import Block, Chart, Grid, Part, Point, Points, TimeLine
from inferometer.reports.page.drawing import TimeUnit, color, distinct, stacked
from inferometer.reports.page.look import RunData
from inferometer.reports.page.section import RunSection
from inferometer.reports.page.time_line.marks import find_marks
from inferometer.reports.views.layout import Section
from inferometer.reports.views.view import remarks_of, sections_of
from inferometer.units import format_duration, format_share

LANES = 40
"""Bars of a chart; more hide each other."""

_TITLE = "Time line"
_CELLS = "cells"  # the column that draws the strip as text
_LACKING = "The trace would need single launches with their times: the source holds none."
_KINDS = {
    "step": "steps",
    "stream": "device work by stream",
    "device_range": "ranges on devices",
    "range": "ranges",
    "frame": "Python calls",
    "op": "ops",
    "call": "host calls",
    "system": "system events",
}
_SHARES = (
    ("compute_busy_ns", "compute", color(0)),
    ("exposed_communication_ns", "exposed communication", color(1)),
    ("exposed_copy_ns", "exposed copies", color(2)),
    ("idle_ns", "idle", "rgba(128,128,128,0.3)"),
)


def build(run: RunData) -> Block | None:
    """The time line, parts of each device's window, causes of idle time, and the tables."""
    timeline = run.timeline
    line = [*_line(run)]
    if timeline is None or timeline.devices.is_empty():
        return Block("timeline", _TITLE, line) if line else Block("timeline", _TITLE, lacking=_LACKING)
    parts: list[Part] = [Points([Point(text) for text in remarks_of(timeline)])] if remarks_of(timeline) else []
    parts += line
    parts.append(_parts_of_window(timeline))
    parts += _causes(timeline)
    parts += [_grid(table) for table in sections_of(timeline) if all(one.column != _CELLS for one in table.fields)]
    return Block("timeline", _TITLE, parts)


def _grid(table: Section) -> Grid:
    """Shares here are of one device each, so they don't add up."""
    return Grid(table, sums=("launches", "count", "idle_ns", "busy_ns", "summed_ns"))


def _line(run: RunData) -> Iterator[TimeLine]:
    lanes, timeline = run.lanes, run.timeline
    if lanes is not None:
        yield TimeLine(
            "What ran when",
            _alt(lanes, timeline),
            lanes,
            find_marks(lanes, None if timeline is None else timeline.gaps, run.steps, run.first.findings.findings),
            run.shades,
        )


def _alt(lanes: Lanes, timeline: Timeline | None) -> str:
    kinds = {lane.kind for lane in lanes.lanes}
    words = [*(words for kind, words in _KINDS.items() if kind in kinds), *(["counters"] if lanes.samples else [])]
    events = "1 event" if len(lanes.start_ns) == 1 else f"{len(lanes.start_ns):,} events"
    said = f"{events} in {format_duration(lanes.length_ns)}: {', '.join(words)}."
    if timeline is None or timeline.devices.is_empty():
        return said
    least = f", the least of {timeline.devices.height:,} devices" if timeline.devices.height > 1 else ""
    worst = timeline.devices.sort("busy_share", nulls_last=True).row(0, named=True)
    return (
        f"{place_name(worst['rank'], worst['device'])} is busy for {format_share(worst['busy_share'])} of "
        f"{format_duration(worst['window_ns'])}{least}. {said}"
    )


def _parts_of_window(timeline: Timeline) -> Chart:
    """Compute, exposed communication and copies, and idle time of each device add up to its window."""
    devices = timeline.devices.head(LANES)
    unit = TimeUnit.of(float(devices["window_ns"].to_numpy().max()))
    places = [place_name(rank, device) for rank, device in devices.select("rank", "device").iter_rows()]
    data = [
        _stacked_bar(words, distinct(places), unit.scaled(devices[column]), unit, shade)
        for column, words, shade in _SHARES
        if devices[column].to_numpy().any()
    ]
    sums = {words: int(timeline.devices[column].sum()) for column, words, _ in _SHARES}
    whole = max(1, sum(sums.values()))
    alt = "Of the devices' windows: " + ", ".join(f"{format_share(ns / whole)} {words}" for words, ns in sums.items())
    layout = stacked({"xaxis": unit.axis("Time"), "yaxis": {"autorange": "reversed", "automargin": True}}, bargap=0.3)
    more = f", the first {LANES} of {timeline.devices.height:,}" if timeline.devices.height > LANES else ""
    return Chart(f"Where each device's time went{more}", f"{alt}.", data, layout, height=150 + 26 * devices.height)


def _causes(timeline: Timeline) -> Iterator[Chart]:
    causes = timeline.causes
    if causes.is_empty():
        return
    devices = timeline.devices.head(LANES).select("rank", "device")
    places = [place_name(rank, device) for rank, device in devices.iter_rows()]
    unit = TimeUnit.of(float(timeline.devices["idle_ns"].to_numpy().max()))
    data = []
    for i, cause in enumerate(CAUSES):
        own = causes.filter(pl.col("cause") == cause)
        if own.is_empty():
            continue
        found = devices.join(own, on=["rank", "device"], how="left", nulls_equal=True, maintain_order="left")
        data.append(_stacked_bar(cause, distinct(places), unit.scaled(found["idle_ns"].fill_null(0)), unit, color(i)))
    sums = causes.group_by("cause").agg(pl.col("idle_ns").sum()).sort("idle_ns", descending=True)
    first, idle_ns = sums.row(0)
    share = format_share(idle_ns / max(1, int(sums["idle_ns"].sum())))
    alt = f"{first} is the largest cause of idle time: {format_duration(idle_ns)}, {share} of it."
    layout = stacked({"xaxis": unit.axis("Idle"), "yaxis": {"autorange": "reversed", "automargin": True}}, bargap=0.3)
    yield Chart("Why devices waited", alt, data, layout, height=150 + 26 * devices.height)


def _stacked_bar(name: str, places: Sequence[str], values: Sequence[Any], unit: TimeUnit, shade: str) -> dict[str, Any]:
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "y": list(places),
        "x": list(values),
        "marker": {"color": shade},
        "hovertemplate": f"%{{y}}<br>{name}: %{{x}} {unit.name}<extra></extra>",
    }


SECTION = RunSection("timeline", build, after="findings", is_large=True)
