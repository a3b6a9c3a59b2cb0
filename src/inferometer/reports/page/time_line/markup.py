"""Time lines as the page has them: a place for the viewer, the packed columns, and what is said without a script."""

from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final

from inferometer.analyses.timeline.lanes.window import Excerpt
from inferometer.reports.page.blocks import TimeLine
from inferometer.reports.page.time_line.fit import fit_excerpt, thin_samples
from inferometer.reports.page.time_line.pack import pack
from inferometer.reports.page.time_line.palette import category_colors
from inferometer.units import format_duration

MOST_PACKED: Final = 4_000_000
"""Bytes of packed columns in one page, before base64: more takes longer to open than it is worth."""

NAME: Final = "timeline"
"""Name of the section that has the time line of a run."""

_FILES: Final = (
    *("columns", "levels", "source", "view", "layout", "palette", "paint", "head"),
    *("details", "search", "selection", "input", "viewer", "mount"),
)
_BASE64: Final = 3 / 4
_OTHER: Final = 20_000  # bytes around the columns
_LEAST: Final = 20_000
_WORDS: Final = {
    "step": "steps",
    "stream": "device work",
    "device_range": "ranges of devices",
    "range": "ranges",
    "frame": "Python calls",
    "op": "ops",
    "call": "host calls",
    "system": "system events",
}
_TEMPLATE: Final = """<figure class="chart">
{% if title %}<h3>{{ title }}</h3>{% endif %}
{% if data %}
<div class="time-line" id="{{ name }}" data-packed="{{ name }}-data" hidden></div>
<script type="application/octet-stream" id="{{ name }}-data">{{ data }}</script>
{% else %}
<p class="words warning">The time line is left out: with it, the page would be too large.</p>
{% endif %}
<figcaption>{{ alt }}{% if merged %} {{ merged }}{% endif %}</figcaption>
{% if marks %}
<details class="tl-places"><summary>Places that stand out</summary><ol>
{% for mark in marks %}
<li><a href="#{{ address }}?at={{ mark.start_ns }}-{{ mark.end_ns }}">{{ mark.text }}</a></li>
{% endfor %}
</ol></details>
{% endif %}
</figure>
"""


def write_time_lines(lines: Sequence[tuple[str, TimeLine]], room_bytes: int) -> list[str]:
    """The HTML of each; together they take at most `room_bytes`.

    Args:
        lines: Those of the page in order, each with the name of its section.
        room_bytes: What the page has left.
    """
    from markupsafe import Markup

    share = int(min(MOST_PACKED, (room_bytes * _BASE64) - _OTHER) / max(1, len(lines)))
    sections = [section for section, _ in lines]
    return [
        Markup(_write(line, i + 1, section, share, is_first=sections.index(section) == i))
        for i, (section, line) in enumerate(lines)
    ]


def _write(line: TimeLine, number: int, section: str, most_bytes: int, *, is_first: bool) -> str:
    name = f"time-line-{number}"
    packed, excerpt = _fitting(line, most_bytes)
    return str(
        _template().render(
            title=line.title,
            name=name,
            address=section if is_first else name,
            data="" if packed is None else b64encode(packed).decode(),
            alt=line.alt,
            merged="" if packed is None else f"{_what_is_merged(excerpt)}{_what_is_thinned(line, excerpt)}",
            marks=line.marks,
        )
    )


def _fitting(line: TimeLine, most_bytes: int) -> tuple[bytes | None, Excerpt]:
    """The columns with at most so many bytes, None where not even the names have room."""
    lanes = thin_samples(line.lanes)
    more = {
        "colors": category_colors(lanes.categories, line.shades),
        "marks": [
            {"start": mark.start_ns, "end": mark.end_ns, "text": mark.text, "tone": mark.tone}
            | ({"href": f"#{mark.section}"} if mark.section else {})
            for mark in line.marks
        ],
    }
    room = most_bytes
    while True:
        excerpt = fit_excerpt(lanes, room)
        packed = pack(excerpt, more=more, most_bytes=most_bytes)
        if len(packed) <= most_bytes:
            return packed, excerpt
        if room < _LEAST:
            return None, excerpt
        room = room * 3 // 4


def _what_is_merged(excerpt: Excerpt) -> str:
    """From which scale on single events aren't in the page."""
    some = set(excerpt.slices.row.tolist())
    finest: dict[str, int] = {}
    for lane, level in zip(excerpt.lanes.lanes, excerpt.levels.tolist(), strict=True):
        if level and not some.isdisjoint(range(lane.first_row, lane.first_row + lane.rows)):
            finest[lane.kind] = level
    if not finest:
        return "Every single event is in the page."
    merged = ", ".join(f"{_WORDS[kind]} shorter than {format_duration(1 << level)}" for kind, level in finest.items())
    return f"To keep the page small, what is short is merged, with its number and time: {merged}."


def _what_is_thinned(line: TimeLine, excerpt: Excerpt) -> str:
    """How many samples of counters are in the page, where not all are."""
    known, drawn = (sum(len(each.value) for each in lanes.samples) for lanes in (line.lanes, excerpt.lanes))
    if known == drawn:
        return ""
    left_out = len(line.lanes.samples) - len(excerpt.lanes.samples)
    without = f", and none of {left_out:,} counters" if left_out else ""
    return f" Of {known:,} samples of counters, {drawn:,} are in it, the lowest and highest of equal parts{without}."


@cache
def time_line_script() -> str:
    """The viewer, and what mounts it on every time line of a page."""
    return '"use strict";\n(() => {\n' + "\n".join(_asset(f"{name}.js") for name in _FILES) + "})();\n"


@cache
def time_line_module() -> str:
    """The viewer as a module, for a page whose rows come from elsewhere."""
    files_of_it = "\n".join(_asset(f"{name}.js") for name in _FILES if name != "mount")
    return f"{files_of_it}\nexport {{ EmbeddedSource, Line, Viewer, lowerBound, lowerBoundAt, sumTable, unpack }};\n"


@cache
def time_line_css() -> str:
    """The viewer's own style, in the page's colours."""
    return _asset("viewer.css")


def _asset(name: str) -> str:
    return files("inferometer.reports.page.time_line").joinpath(name).read_text("utf-8")


@cache
def _template() -> Any:
    from jinja2 import Environment, StrictUndefined

    return Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True).from_string(
        _TEMPLATE
    )
