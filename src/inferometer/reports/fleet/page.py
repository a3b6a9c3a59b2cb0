"""The blocks of a fleet's page in order, and the page as HTML or Markdown."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import polars as pl

from inferometer import __version__
from inferometer.fleet.opening import Fleet
from inferometer.fleet.questions.changes import fleet_changes
from inferometer.fleet.questions.outliers import fleet_outliers
from inferometer.reports.base import loss_lines
from inferometer.reports.fleet.cells import Cells, find_cells
from inferometer.reports.fleet.questions import Question, questions
from inferometer.reports.fleet.rows import changes_data, outliers_data
from inferometer.reports.page.blocks import (
    Block,
    Facts,
    Filtered,
    Filters,
    Grid,
    Number,
    Numbers,
    Part,
    Point,
    Points,
    Tab,
    Tabs,
    Words,
)
from inferometer.reports.page.document import Page, render_page
from inferometer.reports.page.text import render_text
from inferometer.reports.themes import Theme
from inferometer.reports.views.fleet.titles import name_of
from inferometer.reports.views.layout import Field, Section
from inferometer.reports.views.view import facts_of, remarks_of
from inferometer.units import format_counted, format_list, format_sample, format_share

_TEXT_BYTES: Final = 3_000_000
_MOST_ASIDE: Final = 200
_WHAT: Final = (
    "Tables are of all traces until something is chosen; then each is of the traces that have all of it. Without a "
    "script they are of all."
)
_OF_ALL: Final = {
    "importance": "Intervals are known of all traces alone: `inferometer fleet FLEET importance --only …` has others.",
    "savings": "Intervals are known of all traces alone: `inferometer fleet FLEET savings --only …` has others.",
    "outliers": "Found among traces of all dates.",
    "changes": "Found of all traces: `inferometer fleet FLEET changes --only …` judges others anew.",
}
_TITLES: Final = {
    "models": "Models",
    "kernels": "Kernels",
    "families": "Families of kernels",
    "operators": "Operators",
    "shapes": "Operators with shapes",
    "classes": "Classes by phase",
    "importance": "Importance",
    "savings": "Savings",
    "outliers": "Outliers",
    "changes": "Changes over versions",
}


def build_blocks(fleet: Fleet, *, on_progress: Callable[[str], None] = lambda name: None) -> list[Block]:
    """All sections. `on_progress` is called with the name of each question before it is answered."""
    cells = find_cells(fleet)
    found: dict[str, Question] = {}
    for make in questions(fleet, cells):
        question = make()
        on_progress(question.name)
        found[question.name] = question
    outliers, changes = fleet_outliers(fleet), fleet_changes(fleet)
    data = {name: _named(name, question.section.title, question.data) for name, question in found.items()}
    for name, result, rows in (
        ("outliers", outliers, outliers_data(outliers, fleet, cells)),
        ("changes", changes, changes_data(changes, cells)),
    ):
        found[name] = Question(name, result, rows)
        data[name] = _named(name, found[name].section.title, rows)
    blocks = [
        Block("facts", "The fleet", [Facts(facts_of(found["by-none"].result))]),
        Block("filters", "Filters", [*_filters(cells, data)]),
        Block("overview", "Traces", [*_overview(found, cells)]),
        *(_block(each) for name, each in found.items() if not name.startswith("by-")),
        _aside(fleet),
        _losses(fleet),
    ]
    return [block for block in blocks if block is not None]


def render_fleet(blocks: Sequence[Block], *, title: str, command: str = "", theme: Theme = "auto") -> Page:
    """As HTML that loads nothing. `command` makes it again."""
    return render_page(blocks, title=title, footer=_footer(command), text_bytes=_TEXT_BYTES, theme=theme)


def render_fleet_text(blocks: Sequence[Block], *, title: str, command: str = "") -> str:
    """As Markdown for a comment, of all traces."""
    shown = [block for block in blocks if block.name != "filters"]
    return render_text(shown, title=title, footer=[f"Made by inferometer {__version__}.", *_footer(command)])


def _named(name: str, title: str, data: dict[str, Any]) -> dict[str, Any]:
    return {"title": title, "note": _OF_ALL.get(name, ""), **data}


def _filters(cells: Cells, data: dict[str, dict[str, Any]]) -> Iterator[Part]:
    phases = {phase for each in data.values() for phase in each.get("phases", ())}
    ordered = sorted(phases, key=lambda phase: (phase is None, phase or ""))
    yield Filters("Filters", _WHAT, {**cells.as_data(), "phases": ordered, "tables": data})
    yield Words("Phases are those of classes, outliers and changes; other questions have none.", "note")
    if cells.left_out:
        names = format_list([name_of(each) for each in cells.left_out])
        them = "it" if len(cells.left_out) == 1 else "them"
        yield Words(f"No filter by {names}: with {them} there would be too many combinations.", "warning")


def _overview(found: dict[str, Question], cells: Cells) -> Iterator[Part]:
    yield Filtered("by-none", [_numbers(found["by-none"].result.to_polars())])
    remarks = [Words(remark, "note") for remark in remarks_of(found["by-none"].result)]
    tabs = [Tab(f"By {name_of(by)}", [Filtered(f"by-{by}", [_grid(found[f"by-{by}"])])]) for by in cells.values]
    yield Tabs("Group traces", tabs)
    yield from remarks


def _numbers(frame: pl.DataFrame) -> Numbers:
    row = frame.row(0, named=True) if frame.height else {"traces": 0}

    def share(name: str) -> str:
        return "-" if row.get(name) is None else format_share(row[name])

    return Numbers(
        [
            Number("Traces", f"{row['traces']:,}", "each content once"),
            Number("GPU-hours held", format_sample(row.get("held_gpu_hours") or 0.0), "from first launch to last end"),
            Number("Busy", share("busy_share"), "of the time for which GPUs were held"),
            Number("Launch-bound", share("launch_bound_share"), "of the steps whose launches are known"),
            Number("Above bound", share("above_share"), "of the time of ops that are modelled"),
        ]
    )


def _block(question: Question) -> Block:
    remarks = [Words(remark, "note") for remark in remarks_of(question.result)]
    return Block(question.name, _TITLES[question.name], [Filtered(question.name, [_grid(question), *remarks])])


def _grid(question: Question) -> Grid:
    bars = [
        field.column
        for field in question.section.fields
        for column in question.data["columns"]
        if column["title"] == field.title and column.get("over") and not column.get("own")
    ]
    return Grid(question.section, bars=tuple(dict.fromkeys(bars)))


def _aside(fleet: Fleet) -> Block | None:
    rows = fleet.sources().filter(pl.col("reason").is_not_null()).sort("path").select("reason", "path")
    if rows.is_empty():
        return None
    fields = (Field("path", "Path", "name"), Field("reason", "Reason", "sentence"))
    more = rows.height - _MOST_ASIDE
    notes = [f"{format_counted(more, 'more path')}: `inferometer fleet FLEET --json` has all."] if more > 0 else []
    return Block("aside", "Set aside", [Grid(Section("Set aside", fields, rows.head(_MOST_ASIDE), notes), sums=())])


def _losses(fleet: Fleet) -> Block | None:
    lines = loss_lines(fleet.losses())
    return Block("losses", "What was not read", [Points([Point(line) for line in lines])]) if lines else None


def _footer(command: str) -> Sequence[str]:
    return [f"Made with: {command}"] if command else []
