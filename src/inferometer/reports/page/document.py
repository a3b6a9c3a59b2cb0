"""Blocks as one HTML file that loads nothing: the style, the script and the charts' data are in it.

The page opens from a disk, without a network; its own policy (CSP) forbids loading. What it holds is text: the template
escapes it, and the data of charts is made harmless by `figures.py`. The same blocks give the same bytes.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec
from msgspec.structs import replace

from inferometer import __version__
from inferometer.reports.page.blocks import (
    Beside,
    Block,
    Chart,
    Drawn,
    Facts,
    Filtered,
    Filters,
    Fold,
    Folds,
    Grid,
    Number,
    Numbers,
    Part,
    Points,
    Stack,
    StepLines,
    Tabs,
    TimeLine,
    Words,
    find_charts,
    find_time_lines,
)
from inferometer.reports.page.figures import figure_json
from inferometer.reports.page.grids import TableLimits, arrange_grid, cut
from inferometer.reports.page.step_lines.data import lines_json
from inferometer.reports.page.time_line.markup import time_line_css, time_line_script, write_time_lines
from inferometer.reports.themes import Theme

MOST_BYTES = 8_000_000
LACKING = "What this page can't show"
TEXT_BYTES = 1_500_000  # of tables and texts: where they take more, they are cut shorter, for charts to have room
TEXT_BYTES_OF_TWO = 2_200_000
"""As much, where a page is about two runs: each has its tables, and both have theirs."""

_LIMITS = (TableLimits(), TableLimits(200, 1_000), TableLimits(50, 250), TableLimits(10, 100))
SCRIPTS = (
    "ground.js",
    "charts/axes.js",
    "charts/words.js",
    "charts/marks.js",
    "charts/hover.js",
    "charts/frame.js",
    "charts/chart.js",
    "flame.js",
    "figures.js",
    "csv.js",
    "columns.js",
    "tables.js",
    "tabs.js",
    "folds.js",
    "contents.js",
    "links.js",
    "print.js",
)
"""In this order: a file uses names of those before it."""

STEP_LINES = ("step_lines/model.js", "step_lines/drawing.js", "step_lines/viewer.js")
"""Behind these, where steps of two runs are drawn."""

FILTERS = ("filters/sums.js", "filters/viewer.js")
"""Behind them, where a page has filters."""

_FURTHER = {"StepLines": STEP_LINES, "Filters": FILTERS}
_FIRST = frozenset({"facts", "verdict", "overview", "findings", "filters"})  # above the list of contents


class Page(msgspec.Struct, frozen=True):
    """The page as HTML, and the titles of charts that would have made it larger than `MOST_BYTES`."""

    html: str
    left_out: tuple[str, ...] = ()


def render_page(
    blocks: Sequence[Block],
    *,
    title: str,
    footer: Sequence[str] = (),
    text_bytes: int = TEXT_BYTES,
    theme: Theme = "auto",
) -> Page:
    """One HTML file of at most `MOST_BYTES`: of too much, tables get shorter, then the largest charts go.

    Args:
        blocks: The sections, in order.
        title: The heading.
        footer: Lines below all.
        text_bytes: Tables and texts that take more are cut shorter, for charts to have room.
        theme: How the page opens: light, dark, or else as the reader's system is; a button changes it.
    """
    charts = [chart for block in blocks for chart in find_charts(block.parts)]
    figures = dict(enumerate(map(_figure, charts), start=1))
    draft, used_bytes = _fitting_draft(blocks, title, footer, text_bytes, theme)
    room = MOST_BYTES - used_bytes
    kept = _fitting(figures, room)
    left_out = [chart.title for number, chart in enumerate(charts, start=1) if number not in kept]
    lines = [(block.name, line) for block in blocks for line in find_time_lines(block.parts)]
    written = write_time_lines(lines, room - sum(len(text.encode()) for text in kept.values()))
    return Page(_write(draft.filled(kept, written), title, footer, theme=theme), tuple(left_out))


def _fitting_draft(
    blocks: Sequence[Block], title: str, footer: Sequence[str], text_bytes: int, theme: Theme
) -> tuple["_Draft", int]:
    """The page with the widest tables and texts that leave room for charts, without these, and its bytes."""
    *wider, tightest = _LIMITS
    for limits in wider:
        made = _Views(limits)
        draft = _Draft([*made.blocks(blocks)], limits)
        if made.characters <= text_bytes:  # else it isn't worth writing
            used_bytes = len(_write(draft, title, footer, theme=theme).encode())
            if used_bytes <= text_bytes:
                return draft, used_bytes
    draft = _Draft([*_Views(tightest).blocks(blocks)], tightest)
    return draft, len(_write(draft, title, footer, theme=theme).encode())


def _figure(chart: Drawn) -> str:
    return figure_json(chart) if isinstance(chart, Chart) else lines_json(chart.data)


def _fitting(figures: dict[int, str], room: int) -> dict[int, str]:
    """All but the largest, until they have room."""
    sizes = {number: len(text.encode()) for number, text in figures.items()}
    while sizes and sum(sizes.values()) > room:
        del sizes[max(sizes, key=lambda number: sizes[number])]
    return {number: figures[number] for number in sizes}


def _write(draft: "_Draft", title: str, footer: Sequence[str], *, theme: Theme) -> str:
    from markupsafe import Markup

    views, limits = draft.views, draft.limits
    html: str = _template().render(
        title=cut(title, limits.characters),
        first=[view for view in views if view.name in _FIRST],
        rest=[view for view in views if view.name not in _FIRST],
        css=Markup(_asset("page.css") + _asset("two_runs.css") + time_line_css()),
        script=Markup(_script(tuple(kind for kind in _FURTHER if any(view.has(kind) for view in views)))),
        time_line=Markup(time_line_script()) if any(view.has("TimeLine") for view in views) else "",
        footer=[cut(line, limits.characters) for line in footer],
        version=__version__,
        theme=theme if theme in ("light", "dark") else "",
        once=draft.write_once,
    )
    return html.lstrip()


class _View(msgspec.Struct, frozen=True):
    """A part, or a section of parts, as the template wants it."""

    kind: str
    name: str
    title: str
    of: Any = None
    parts: Sequence["_View"] = ()
    more: int = 0

    def has(self, kind: str) -> bool:
        """Whether it is of this kind, or has such a part."""
        return self.kind == kind or any(part.has(kind) for part in self.parts)


class _Draft(msgspec.Struct, frozen=True):
    """What the template is to write. Tables are the most work, and the same whatever charts there are."""

    views: Sequence[_View]
    limits: TableLimits
    tables: dict[str, Any] = msgspec.field(default_factory=dict)

    def write_once(self, view: _View, write: Callable[[_View], Any]) -> Any:
        """The HTML of a table, as it was written the first time."""
        if view.name not in self.tables:
            self.tables[view.name] = write(view)
        return self.tables[view.name]

    def filled(self, figures: dict[int, str], time_lines: Sequence[str]) -> "_Draft":
        """The same with the data of charts, by their numbers, and of time lines, in order."""
        data = {f"chart-{number}": text for number, text in figures.items()}
        lines = iter(time_lines)
        return replace(self, views=[_with_data(view, data, lines) for view in self.views])


def _with_data(view: _View, figures: dict[str, str], time_lines: Iterator[str]) -> _View:
    if view.kind == "TimeLine":
        return replace(view, of=next(time_lines, ""))
    if view.name in figures:
        return replace(view, of=(view.of[0], figures[view.name]))
    return replace(view, parts=[_with_data(part, figures, time_lines) for part in view.parts])


class _Views:
    """Turns blocks into views; numbers tables and charts as they come, and adds up the characters of their texts."""

    def __init__(self, limits: TableLimits) -> None:
        self.characters = 0
        self._limits = limits
        self._charts = 0
        self._tables = 0
        self._holders = 0
        self._names = set[str]()

    def blocks(self, blocks: Sequence[Block]) -> Iterator[_View]:
        """The sections, and what is lacking for others as one more."""
        self._names = {block.name for block in blocks if not block.lacking}
        yield from (self._block(block) for block in blocks if not block.lacking)
        lacking = tuple((block.title, self._cut(block.lacking)) for block in blocks if block.lacking)
        if lacking:
            yield _View("section", "lacking", LACKING, parts=[_View("Facts", "", "", Facts(lacking))])

    def _block(self, block: Block) -> _View:
        return _View("section", block.name, self._cut(block.title), parts=self._inside(block.parts, block.title))

    def _part(self, part: Part, above: str) -> _View:
        make: dict[type, Callable[[Any, str], _View]] = {
            Words: self._words,
            Facts: self._facts,
            Numbers: self._numbers,
            Stack: self._stack,
            Points: self._points,
            Grid: self._grid,
            Chart: self._chart,
            StepLines: self._chart,
            Filters: self._chart,
            Filtered: self._filtered,
            TimeLine: self._time_line,
            Tabs: self._tabs,
            Beside: self._beside,
            Folds: self._folds,
        }
        return make[type(part)](part, above)

    def _words(self, words: Words, above: str) -> _View:
        return _View("Words", "", "", replace(words, text=self._cut(words.text)))

    def _facts(self, facts: Facts, above: str) -> _View:
        lines = [tuple(map(self._cut, line)) for line in facts.lines[: self._limits.rows]]
        return _View("Facts", "", "", Facts(lines, [*map(self._cut, facts.heads)]), more=len(facts.lines) - len(lines))

    def _numbers(self, numbers: Numbers, above: str) -> _View:
        shown = [
            Number(self._cut(one.label), self._cut(one.value), self._cut(one.about), self._link(one.link))
            for one in numbers.numbers
        ]
        return _View("Numbers", "", "", shown)

    def _stack(self, stack: Stack, above: str) -> _View:
        slices = [replace(one, name=self._cut(one.name), link=self._link(one.link)) for one in stack.slices]
        return _View("Stack", "", self._cut(stack.title), Stack(stack.title, self._cut(stack.alt), slices))

    def _points(self, points: Points, above: str) -> _View:
        shown = [
            replace(
                point,
                text=self._cut(point.text),
                mark=self._cut(point.mark),
                aside=self._cut(point.aside),
                detail=[self._cut(text) for text in point.detail[: self._limits.rows]],
            )
            for point in points.points[: self._limits.rows]
        ]
        of = (shown, points.opened)
        return _View("Points", "", self._cut(points.title), of, more=len(points.points) - len(shown))

    def _grid(self, grid: Grid, above: str) -> _View:
        self._tables += 1
        table = arrange_grid(grid, self._limits)
        self.characters += table.characters()
        return _View("Grid", f"table-{self._tables}", "" if grid.section.title == above else table.title, table)

    def _chart(self, chart: Drawn, above: str) -> _View:
        self._charts += 1
        shown = replace(chart, title=self._cut(chart.title), alt=self._cut(chart.alt))
        kind = type(chart).__name__
        return _View(kind, f"chart-{self._charts}", "" if chart.title == above else shown.title, (shown, ""))

    def _time_line(self, line: TimeLine, above: str) -> _View:
        return _View("TimeLine", "", "", "")

    def _tabs(self, tabs: Tabs, above: str) -> _View:
        name = self._holder("tabs")
        views = [
            _View("Tab", f"{name}-{number}", self._cut(tab.title), parts=self._inside(tab.parts, above))
            for number, tab in enumerate(tabs.tabs, start=1)
        ]
        return _View("Tabs", name, self._cut(tabs.label), parts=views)

    def _filtered(self, filtered: Filtered, above: str) -> _View:
        return _View("Filtered", filtered.name, "", parts=self._inside(filtered.parts, above))

    def _beside(self, beside: Beside, above: str) -> _View:
        heads = [*map(self._cut, beside.heads)]
        cells = [
            _View("Cell", head, head, parts=[] if part is None else [self._part(part, above)])
            for row in beside.rows
            for head, part in zip(heads, row, strict=True)
        ]
        return _View("Beside", "", "", len(heads), cells)

    def _folds(self, folds: Folds, above: str) -> _View:
        name = self._holder("folds")
        return _View("Folds", name, "", parts=[self._fold(fold) for fold in folds.folds])

    def _fold(self, fold: Fold) -> _View:
        inside = self._inside(fold.parts, fold.title)
        return _View("Fold", "", self._cut(fold.title), replace(fold, aside=self._cut(fold.aside)), inside)

    def _inside(self, parts: Sequence[Part], above: str) -> list[_View]:
        return [self._part(part, above) for part in parts]

    def _link(self, link: str) -> str:
        """The address, if the page has that section."""
        return link if link.removeprefix("#").partition("?")[0] in self._names else ""

    def _holder(self, kind: str) -> str:
        self._holders += 1
        return f"{kind}-{self._holders}"

    def _cut(self, text: str) -> str:
        shown = cut(text, self._limits.characters)
        self.characters += len(shown)
        return shown


@cache
def _template() -> Any:
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["json_text"] = Markup  # made safe by figures.py
    return environment.from_string(_asset("page.html.j2"))


def _asset(*path: str) -> str:
    return files("inferometer.reports.page").joinpath(*path).read_text("utf-8")


@cache
def _script(kinds: tuple[str, ...]) -> str:
    """The files of the page's script as one, whose names are seen by nothing else in the page."""
    names = (*(f"script/{name}" for name in SCRIPTS), *(name for kind in kinds for name in _FURTHER[kind]))
    texts = (_asset(*name.split("/")).rstrip() for name in names)
    return "\n".join(['"use strict";', "(() => {", *texts, "})();"])
