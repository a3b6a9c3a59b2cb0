"""What charts have in common: colours, axes, the unit of their times, and labels short enough for an axis."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import msgspec

from inferometer.names import decode
from inferometer.reports.page.sampling import Number, rounded

REST_COLOR = "var(--muted)"
SERIES = 8
"""Colours that can be distinguished; further series share them."""

LABEL = 44
"""Characters of a label on an axis or in a legend; hovering shows the whole name."""

ICICLE: Mapping[str, Any] = {
    "type": "icicle",
    "branchvalues": "total",
    "sort": False,
    "leaf": {"opacity": 1},
    "textinfo": "label",
    "textposition": "middle left",
    "outsidetextfont": {"color": "var(--ink)"},
    "hovertemplate": "%{customdata}<br>%{text}<extra></extra>",
    "tiling": {"orientation": "v", "pad": 0},
    "pathbar": {"visible": False},
}
"""What all icicles have in common: boxes below their callers, in order; `text` shows when one is pointed at."""

_MILLI_NS = 1_000_000
_MICRO_NS = 1_000


def color(position: int) -> str:
    """The colour of a series by its position."""
    return f"var(--series-{position % SERIES + 1})"


def axis(title: str, **more: Any) -> dict[str, Any]:
    """An axis of a layout; `title` is our own words, never text from a file."""
    return {"title": {"text": title}, **more}


def vertical_line(x: float, *, dash: str = "dash", width: int = 2) -> dict[str, Any]:
    """A shape of a layout: a line at `x` over the whole height."""
    at = rounded([x])[0]
    ends = {"x0": at, "x1": at, "yref": "paper", "y0": 0, "y1": 1}
    return {"type": "line", **ends, "line": {"color": "var(--ink)", "width": width, "dash": dash}}


class TimeUnit(msgspec.Struct, frozen=True):
    """The unit of a chart's times: `ms`, or `μs` where all are below some milliseconds."""

    name: str
    ns: int

    @classmethod
    def of(cls, largest_ns: float) -> Self:
        """The unit in which the largest time of a chart reads well."""
        return cls("μs", _MICRO_NS) if largest_ns < 2 * _MILLI_NS else cls("ms", _MILLI_NS)

    def scaled(self, times_ns: Iterable[float | None], digits: int = 4) -> list[Number]:
        """Times in this unit, rounded."""
        return rounded((None if time is None else time / self.ns for time in times_ns), digits)

    def axis(self, title: str, **more: Any) -> dict[str, Any]:
        """An axis of times."""
        return axis(f"{title}, {self.name}", **more)


def ns_per(axis: Mapping[str, Any]) -> int:
    """Nanoseconds in one unit of an axis of times; 1 for an axis of anything else."""
    title = str(axis.get("title", {}).get("text", ""))
    known = {f", {unit.name}": unit.ns for unit in (TimeUnit.of(0), TimeUnit.of(math.inf))}
    return next((ns for end, ns in known.items() if title.endswith(end)), 1)


def cut(text: str, longest: int = LABEL) -> str:
    """The text, its middle left out where it is long: what tells names apart often stands at their end."""
    if len(text) <= longest:
        return text
    tail = longest // 3
    return f"{text[: longest - tail - 1]}…{text[-tail:]}"


def distinct(labels: Sequence[str]) -> list[str]:
    """The labels, with a number after those that repeat: equal categories of an axis would fall together."""
    seen: dict[str, int] = {}
    found = []
    for label in labels:
        seen[label] = seen.get(label, 0) + 1
        found.append(label if seen[label] == 1 else f"{label} ({seen[label]})")
    return found


def kernel_labels(kernels: Sequence[str]) -> dict[str, str]:
    """A short label of each kernel, different for each: its short name; the name itself where that fits."""
    every = list(dict.fromkeys(kernels))
    short = [kernel if len(kernel) <= LABEL else cut(decode(kernel).short_name) for kernel in every]
    return dict(zip(every, distinct(short), strict=True))


def stacked(layout: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """A layout whose bars stand on each other, without space between them."""
    return {"barmode": "stack", "bargap": 0.0, **layout, **more}
