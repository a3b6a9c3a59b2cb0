"""Plotly figures as text for the page: what comes from files is harmless and short, numbers are ones that JSON has.

Plotly reads a little HTML in its texts. So texts under the keys that may hold names of files (`PLACES`, `HOVERS`) are
escaped here, and a line end in them is a line end on the screen. A name that is too long for a tick or a tile is cut,
with a few digits made from the whole of it, so that different names stay different.
"""

import json
import math
import re
from hashlib import blake2b
from typing import Any

from inferometer.errors import clean
from inferometer.reports.page.blocks import Chart

PLACES = frozenset({"x", "y", "labels", "parents", "ids", "ticktext", "tickvals", "categoryarray"})
HOVERS = frozenset({"text", "hovertext", "customdata", "name", "legendgroup"})
_LONGEST_PLACE = 120  # characters
_LONGEST_HOVER = 1_000
_LINE = 90
_DIGITS = 9  # of a float: more can't be seen
_BREAK = "<br>"
_UNSAFE = re.compile("[<>\u2028\u2029]")


def figure_json(chart: Chart) -> str:
    """`data` and `layout` as JSON that can stand inside a `<script>`."""
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
        return _escape(_cut_place(" ".join(lines)))
    if key in HOVERS:
        return _BREAK.join(map(_escape, _wrap(lines)))
    return "\n".join(lines)


def _cut_place(text: str) -> str:
    if len(text) <= _LONGEST_PLACE:
        return text
    return f"{text[:_LONGEST_PLACE]}… {blake2b(text.encode(), digest_size=4).hexdigest()}"


def _wrap(lines: list[str]) -> list[str]:
    wrapped, rest = [], _LONGEST_HOVER
    for line in lines:
        shown = line if len(line) <= rest else f"{line[:rest]}…"
        wrapped += [shown[at : at + _LINE] for at in range(0, len(shown), _LINE)] or [""]
        rest -= len(line)
        if rest <= 0:
            break
    return wrapped


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
