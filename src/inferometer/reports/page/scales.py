"""Charts of two runs on the same scales, so that equal lengths are equal amounts.

Two charts of one title or kind get axes of the same range: the one that holds what both draw. Times are in the larger
unit of both, but for charts with times on both axes, which keep theirs. Left alone are axes of names, those that have a
range, those that are logarithmic in one chart only, and charts with a menu, which draw one thing at a time.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from inferometer.reports.page.blocks import Block, Chart, Part
from inferometer.reports.page.drawing import ns_per
from inferometer.reports.page.sampling import rounded
from inferometer.reports.page.shared_shades import share_shades

_ROOM = 0.04  # of the range, on either side
_DIGITS = 6
_AXES = ("xaxis", "yaxis")
_BOX = ("lowerfence", "q1", "median", "q3", "upperfence")
Range = tuple[float, float]


def share_scales(base: Block | None, candidate: Block | None) -> tuple[Block | None, Block | None]:
    """Both sections, the charts that they share on the same scales and in the same colours."""
    if base is None or candidate is None:
        return base, candidate
    left, right = (_by_pair(block.parts) for block in (base, candidate))
    return _scaled(base, right), share_shades(_scaled(candidate, left), left)


def _by_pair(parts: Iterable[Part]) -> dict[str, Chart]:
    return {part.pair: part for part in parts if isinstance(part, Chart)}


def _scaled(block: Block, others: Mapping[str, Chart]) -> Block:
    parts = [
        _with_ranges(part, others[part.pair]) if isinstance(part, Chart) and part.pair in others else part
        for part in block.parts
    ]
    return replace(block, parts=parts)


def _with_ranges(chart: Chart, other: Chart) -> Chart:
    if "updatemenus" in chart.layout or "updatemenus" in other.layout:
        return chart
    chart, other = _in_unit(chart, other), _in_unit(other, chart)
    axes: dict[str, Any] = {}
    for name in ("xaxis", "yaxis"):
        if name in chart.layout and name in other.layout and (found := _shared_range(chart, other, name)):
            axes[name] = {**chart.layout[name], "range": rounded(found, _DIGITS)}
    return replace(chart, layout={**chart.layout, **axes})


def _in_unit(chart: Chart, other: Chart) -> Chart:
    """The chart with its axis of times in the unit of the other, where that is larger."""
    timed = [name for name in _AXES if ns_per(chart.layout.get(name, {})) > 1]
    if len(timed) != 1 or ns_per(chart.layout[timed[0]]) >= ns_per(other.layout.get(timed[0], {})):
        return chart
    (name,) = timed
    ratio = ns_per(other.layout[name]) // ns_per(chart.layout[name])
    own, new = (axis["title"]["text"].rpartition(" ")[2] for axis in (chart.layout[name], other.layout[name]))
    title = {**chart.layout[name]["title"], "text": chart.layout[name]["title"]["text"].removesuffix(own) + new}
    layout = {**chart.layout, name: {**chart.layout[name], "title": title}}
    if "range" in layout[name] or "shapes" in layout:
        return chart
    return replace(chart, data=[_scaled_trace(trace, name[0], ratio, own, new) for trace in chart.data], layout=layout)


def _scaled_trace(trace: dict[str, Any], letter: str, ratio: int, own: str, new: str) -> dict[str, Any]:
    changed: dict[str, Any] = {}
    keys = [letter, f"{letter}0", f"d{letter}"] + ([] if letter == "y" and trace.get("orientation") == "h" else [*_BOX])
    for key in keys:
        if key in trace:
            value = trace[key]
            changed[key] = (
                _divided(value, ratio) if isinstance(value, int | float) else [_divided(v, ratio) for v in value]
            )
    if "hovertemplate" in trace:
        changed["hovertemplate"] = trace["hovertemplate"].replace(f"}} {own}", f"}} {new}")
    return {**trace, **changed}


def _divided(value: Any, ratio: int) -> Any:
    return value if value is None or isinstance(value, str) else rounded([value / ratio], _DIGITS)[0]


def _shared_range(chart: Chart, other: Chart, name: str) -> Range | None:
    """In the unit of the first chart; of a logarithmic axis, exponents of ten."""
    axes = [each.layout[name] for each in (chart, other)]
    if any("range" in axis for axis in axes) or axes[0].get("type") != axes[1].get("type"):
        return None
    own, others = _extent(chart, name), _extent(other, name)
    if own is None or others is None:
        return None
    unit = ns_per(axes[1]) / ns_per(axes[0])
    low, high = min(own[0], others[0] * unit), max(own[1], others[1] * unit)
    if any(axis.get("rangemode") == "tozero" for axis in axes):
        low = min(low, 0.0)
    stands_on_zero = low == 0
    if axes[0].get("type") == "log":
        low, high = math.log10(low), math.log10(high)
    room = _ROOM * (high - low) or _ROOM
    return (low if stands_on_zero else low - room), high + room


def _extent(chart: Chart, name: str) -> Range | None:
    """The smallest and the largest number on the axis; None of names, or without any."""
    found = [*_numbers(chart, name[0])]
    kind = chart.layout[name].get("type")
    if kind == "category" or any(isinstance(value, str) for value in found):
        return None
    numbers = [value for value in found if value is not None and math.isfinite(value)]
    if kind == "log":
        numbers = [value for value in numbers if value > 0]
    return (min(numbers), max(numbers)) if numbers else None


def _numbers(chart: Chart, letter: str) -> Iterator[Any]:
    """What is drawn at either end of the axis; names too."""
    bars: dict[Any, float] = defaultdict(float)
    for trace in chart.data:
        kind, length = trace["type"], "x" if trace.get("orientation") == "h" else "y"
        if kind == "heatmap" and "dx" in trace and letter == "x":
            begin = trace["x0"] - trace["dx"] / 2
            yield from (begin, begin + trace["dx"] * max(map(len, trace["z"]), default=0))
        elif kind == "bar" and letter == length:
            others = trace["y" if length == "x" else "x"]
            is_stacked = chart.layout.get("barmode") == "stack"
            for place, value in zip(others, trace[letter], strict=True):
                bars[place if is_stacked else (id(trace), place)] += value or 0
        elif kind == "box" and letter == length:
            yield from (*trace["lowerfence"], *trace["upperfence"])
        else:
            yield from trace.get(letter, ())
    if bars:
        yield from (0, *bars.values())
