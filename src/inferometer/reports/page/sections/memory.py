"""Device memory of an allocator's snapshot: the peak of each device, how it went, and what held it."""

from collections.abc import Iterator
from typing import Any, Final

import polars as pl
from msgspec.structs import replace

from inferometer.analyses.memory.use import MemoryUse, memory_use
from inferometer.analyses.timeline.work import place_name
from inferometer.reports.page.blocks import Block, Chart, Grid, Part, Words
from inferometer.reports.page.drawing import axis, color
from inferometer.reports.page.look import RunData
from inferometer.reports.page.sampling import rounded
from inferometer.reports.page.section import RunSection
from inferometer.reports.views.view import remarks_of, sections_of
from inferometer.units import format_bytes, format_count

_TOP: Final = 50
_TABLES: Final = ("memory_blocks", "memory_events")
_UNITS: Final = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0))


def build(run: RunData) -> Block | None:
    """What `inferometer memory` shows, its strips as charts; no place on the page of another run."""
    if not any(run.trace.tables[table].select(pl.len()).collect().item() for table in _TABLES):
        return None
    found = memory_use(run.trace, top=_TOP)
    parts: list[Part] = [Words(text, "note") for text in remarks_of(found)]
    devices, *holders = sections_of(found)
    parts += [Grid(replace(devices, notes=())), *_curves(found)]
    return Block("memory", "Device memory", [*parts, *(Grid(section, sums=_sums(found)) for section in holders)])


def _sums(found: MemoryUse) -> tuple[str, ...]:
    """Peaks of several devices are no sum: each has its own time."""
    return ("share", "bytes", "blocks") if found.devices.height == 1 else ()


def _curves(found: MemoryUse) -> Iterator[Chart]:
    """What each device had allocated, event by event: the most of each slice of them."""
    for number, (place, points) in enumerate(found.series.group_by("rank", "device", maintain_order=True)):
        if points.height > 1:
            yield _curve(place_name(place[0], place[1] or "an unnamed device"), points, number)


def _curve(name: str, points: pl.DataFrame, number: int) -> Chart:
    peak_bytes = int(points["bytes"].max())  # type: ignore[arg-type]
    unit, size = next(each for each in _UNITS if peak_bytes >= each[1] or each[1] == 1)
    line = {
        "type": "scatter",
        "mode": "lines",
        "name": "allocated",
        "x": points["first_event"].to_list(),
        "y": rounded(points["bytes"] / size, 6),
        "line": {"shape": "hv", "color": color(0), "width": 1.5},
        "fill": "tozeroy",
        "hovertemplate": f"from event %{{x}}: at most %{{y}} {unit}<extra></extra>",
    }
    layout: dict[str, Any] = {"xaxis": axis("Event"), "yaxis": axis(f"Allocated, {unit}", rangemode="tozero")}
    alt = f"At most {format_bytes(peak_bytes)} of {name} were allocated."
    if (events := int(points["first_event"][1] - points["first_event"][0])) > 1:
        alt += f" A step of the line is the most of {format_count(events)} events."
    return Chart(f"Allocated on {name}", alt, [line], layout, height=240, kind=f"memory {number}")


SECTION = RunSection("memory", build, after="losses")
