"""Figures as text for the page: what comes from files is harmless and short, numbers are ones that JSON has.

A figure is `data` and `layout` in the vocabulary of Plotly's, as far as `script/charts` and `script/flame.js` draw it:
traces of `KINDS`. The page writes texts as text, never as markup. A name that is too long for a tick or a box is cut,
with a few digits made from the whole of it, so that different names stay different.
"""

import json
import math
import re
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

from inferometer.errors import clean
from inferometer.reports.page.blocks import Chart

KINDS = frozenset({"scatter", "bar", "box", "heatmap", "waterfall", "icicle"})
PLACES = frozenset({"x", "y", "labels", "parents", "ids", "ticktext", "tickvals", "categoryarray"})
HOVERS = frozenset({"text", "hovertext", "customdata", "name", "legendgroup"})
_LONGEST_PLACE = 120  # characters
_LONGEST_HOVER = 1_000
_DIGITS = 9  # of a float: more can't be seen
_UNSAFE = re.compile("[<>\u2028\u2029]")


def figure_json(chart: Chart) -> str:
    """`data` and `layout` as JSON that can stand inside a `<script>`.

    Raises:
        ValueError: A trace is of a kind that the page doesn't draw.
    """
    unknown = {trace.get("type", "scatter") for trace in chart.data} - KINDS
    if unknown:
        raise ValueError(f"{chart.title}: expected traces of {sorted(KINDS)}, found {sorted(unknown)}")
    figure = {"data": _plain(list(chart.data), ""), "layout": _plain(chart.layout, "")}
    text = json.dumps(figure, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def without_surrogates(text: str) -> str:
    """`text` as UTF-8 can hold it: a file's name may have bytes that aren't text."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _plain(value: Any, key: str) -> Any:
    if isinstance(value, dict):
        return {each: _plain(inner, each) for each, inner in value.items()}
    if isinstance(value, str):
        return _text(value, key)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
    if hasattr(value, "tolist"):  # of NumPy
        return _plain(value.tolist(), key)
    return [_plain(inner, key) for inner in value]


def _text(text: str, key: str) -> str:
    lines = [without_surrogates(clean(line)) for line in text.split("\n")]
    if key in PLACES:
        return _cut_place(" ".join(lines))
    if key in HOVERS:
        return _short_lines(lines)
    return "\n".join(lines)


def _cut_place(text: str) -> str:
    if len(text) <= _LONGEST_PLACE:
        return text
    return f"{text[:_LONGEST_PLACE]}… {blake2b(text.encode(), digest_size=4).hexdigest()}"


def _short_lines(lines: Iterable[str]) -> str:
    text = "\n".join(lines)
    return text if len(text) <= _LONGEST_HOVER else f"{text[:_LONGEST_HOVER]}…"
