"""Over time: how busy each device and stream is, where its time goes, and why it waits."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl

from inferometer.analyses.timeline.gaps import CAUSES
from inferometer.analyses.timeline.strip import PARTS, Strip
from inferometer.analyses.timeline.timeline import Timeline
from inferometer.analyses.timeline.work import place_name
from inferometer.reports.page.blocks import Block, Chart, Grid, Part, Point, Points, Words
from inferometer.reports.page.drawing import TimeUnit, color, distinct, stacked
from inferometer.reports.page.look import RunData
from inferometer.reports.page.sampling import rounded
from inferometer.reports.page.section import RunSection
from inferometer.reports.views.layout import Section
from inferometer.reports.views.view import remarks_of, sections_of
from inferometer.units import format_duration, format_share

LANES = 40
"""Lines of the strip, and bars of a chart; more hide each other."""

_SEEN = 0.01  # of a slice, from which on it gets a line of its own
_TITLE = "Time line"
_CELLS = "cells"  # the column that draws the strip as text
_LACKING = "The trace would need single launches with their times: the source holds none."
_IDLE = [[0.0, "rgba(128,128,128,0.10)"], [1.0, color(0)]]
_EXPOSED = {"exposed_communication_ns": "exposed communication", "exposed_copy_ns": "exposed copies"}
_SHARES = (
    ("compute_busy_ns", "compute", color(0)),
    ("exposed_communication_ns", "exposed communication", color(1)),
    ("exposed_copy_ns", "exposed copies", color(2)),
    ("idle_ns", "idle", "rgba(128,128,128,0.3)"),
)


def build(run: RunData) -> Block | None:
    """The strip, parts of each device's window, causes of idle time, and the tables."""
    timeline = run.timeline
    if timeline is None or timeline.devices.is_empty():
        return Block("timeline", _TITLE, lacking=_LACKING)
    parts: list[Part] = [Points([Point(text) for text in remarks_of(timeline)])] if remarks_of(timeline) else []
    parts += _strip(timeline, timeline.strip)
    parts.append(_parts_of_window(timeline))
    parts += _causes(timeline)
    parts += [_grid(table) for table in sections_of(timeline) if all(one.column != _CELLS for one in table.fields)]
    return Block("timeline", _TITLE, parts)


def _grid(table: Section) -> Grid:
    """Shares here are of one device each, so they don't add up."""
    return Grid(table, sums=("launches", "count", "idle_ns", "busy_ns", "summed_ns"))


def _strip(timeline: Timeline, strip: Strip) -> Iterator[Part]:
    lanes = _lanes(strip)
    if not lanes:
        return
    shown, origin = lanes[:LANES], timeline.origin_ns
    first, last = strip.edges_ns[0], strip.edges_ns[-1]
    unit, slice_ns = TimeUnit.of(last - origin), (last - first) / (len(strip.edges_ns) - 1)
    data = {
        "type": "heatmap",
        "x0": rounded([(first + slice_ns / 2 - origin) / unit.ns], 9)[0],
        "dx": rounded([slice_ns / unit.ns], 9)[0],
        "y": distinct([name for name, _ in shown]),
        "z": [rounded(shares, 3) for _, shares in shown],
        "zmin": 0,
        "zmax": 1,
        "colorscale": _IDLE,
        "colorbar": {"title": {"text": "busy"}, "tickformat": ".0%"},
        "hovertemplate": f"%{{y}}<br>at %{{x:.4~g}} {unit.name}: %{{z:.0%}} of the slice<extra></extra>",
    }
    layout = {
        "xaxis": unit.axis("Since the start of the trace"),
        "yaxis": {"autorange": "reversed", "automargin": True, "type": "category"},
    }
    least = f", the least of {timeline.devices.height:,} devices" if timeline.devices.height > 1 else ""
    worst = timeline.devices.sort("busy_share", nulls_last=True).row(0, named=True)
    alt = (
        f"{place_name(worst['rank'], worst['device'])} is busy for {format_share(worst['busy_share'])} of "
        f"{format_duration(worst['window_ns'])}{least}. Each of "
        f"{len(strip.edges_ns) - 1} slices is {format_duration(slice_ns)} long."
    )
    yield Chart("Busy over time", alt, [data], layout, height=130 + 24 * len(shown))
    if len(lanes) > len(shown):
        yield Words(f"{len(lanes) - len(shown):,} more lines of streams are not drawn.", "note")


def _lanes(strip: Strip) -> list[tuple[str, list[float]]]:
    """Name of each line and its share of each slice: a device, what is exposed on it, its streams.

    Where they are too many for one chart, devices come first, then the busiest streams.
    """
    length = np.diff(np.array(strip.edges_ns, dtype=np.int64)).astype(np.float64)
    lanes = []
    for row in strip.lanes.iter_rows(named=True):
        times = {part: np.array(row[part], dtype=np.float64) for part in PARTS}
        busy = np.sum(list(times.values()), axis=0) / length
        place = place_name(row["rank"], row["device"])
        if not row["whole"]:
            name = f"{place}, stream {'unknown' if row['stream'] is None else row['stream']}"
            lanes.append((1 - float(busy.mean()), name, busy))
            continue
        lanes.append((-1.0, place, busy))
        exposed = [(stated, times[part]) for part, stated in _EXPOSED.items() if (times[part] > _SEEN * length).any()]
        lanes += [(0.0, f"{place}, {stated}", time / length) for stated, time in exposed]
    if len(lanes) > LANES:
        lanes.sort(key=lambda lane: lane[0])
    return [(name, shares.tolist()) for _, name, shares in lanes]


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


SECTION = RunSection("timeline", build, after="findings")
