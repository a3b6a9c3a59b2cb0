"""What has one name in the charts of two runs has one colour: the base's."""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from inferometer.reports.page.blocks import Block, Chart
from inferometer.reports.page.drawing import REST_COLOR, SERIES, color

_SERIES = frozenset(map(color, range(SERIES)))
_PLACES = ("marker", "line")


def share_shades(candidate: Block, of_base: Mapping[str, Chart]) -> Block:
    """The candidate's section in the colours of the base's charts.

    Args:
        candidate: The section of the second run.
        of_base: The charts of the first, by what they are paired by.
    """
    parts = [
        _recolored(part, of_base[part.pair]) if isinstance(part, Chart) and part.pair in of_base else part
        for part in candidate.parts
    ]
    return replace(candidate, parts=parts)


def _recolored(chart: Chart, base: Chart) -> Chart:
    """Series of the same name as in the base; others get colours that it has not. Left alone are charts with a menu."""
    if "updatemenus" in chart.layout or "updatemenus" in base.layout:
        return chart
    shades = {trace["name"]: shade for trace in base.data if (shade := _shade(trace))}
    free = [shade for shade in map(color, range(SERIES)) if shade not in shades.values()]
    for trace in chart.data:
        if _shade(trace) and trace["name"] not in shades:
            shades[trace["name"]] = free.pop(0) if free else REST_COLOR
    return replace(
        chart, data=[_in_shade(trace, shades[trace["name"]]) if _shade(trace) else trace for trace in chart.data]
    )


def _shade(trace: Mapping[str, Any]) -> str | None:
    """The one colour of a series that has a name; None of any other."""
    found = {trace[place]["color"] for place in _PLACES if isinstance(trace.get(place, {}).get("color"), str)}
    return found.pop() if trace.get("name") and len(found) == 1 and found <= _SERIES else None


def _in_shade(trace: Mapping[str, Any], shade: str) -> dict[str, Any]:
    return {
        **trace,
        **{place: {**trace[place], "color": shade} for place in _PLACES if "color" in trace.get(place, {})},
    }
