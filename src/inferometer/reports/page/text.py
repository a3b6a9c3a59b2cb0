"""Blocks as GitHub-flavoured Markdown: for a comment on a pull request. Charts are what they say in a sentence."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from msgspec.structs import replace

from inferometer.reports.base import cell
from inferometer.reports.markdown import escape_markdown, markdown_table
from inferometer.reports.page.blocks import (
    Beside,
    Block,
    Drawn,
    Facts,
    Filtered,
    Fold,
    Folds,
    Grid,
    Numbers,
    Part,
    Points,
    Stack,
    Tab,
    Tabs,
    TimeLine,
    Words,
)
from inferometer.reports.page.document import LACKING
from inferometer.reports.page.grids import TableLimits, cut
from inferometer.reports.views.layout import Field, Section

COMMENT = 65_536
"""Characters that a comment holds."""

FITTING = (TableLimits(20, 300), TableLimits(10, 200), TableLimits(5, 120), TableLimits(2, 80))
"""How long tables and lists may be, tried until a comment has room."""

_SENTENCE = 600  # characters: a sentence without its end may say something else


def render_text(
    blocks: Sequence[Block], *, title: str, footer: Sequence[str] = (), limits: TableLimits | None = None
) -> str:
    """The page as Markdown; tables and lists have at most as many rows as `limits` says, then how many more.

    Without `limits` they are as long as a comment has room for.
    """
    text = ""
    for each in FITTING if limits is None else (limits,):
        text = _Writer(each).page(blocks, title, footer)
        if len(text) <= COMMENT:
            break
    return text


def block_text(block: Block, limits: TableLimits) -> str:
    """One section that isn't lacking, with its heading, for a page that arranges them itself."""
    return _Writer(limits).block(block)


@dataclass(frozen=True)
class _Place:
    """Where a part stands: the level of its headings, and the heading above it."""

    level: int = 3
    above: str = ""


class _Writer:
    def __init__(self, limits: TableLimits) -> None:
        self._limits = limits

    def page(self, blocks: Sequence[Block], title: str, footer: Sequence[str]) -> str:
        parts = [f"# {self._text(title)}"]
        parts += [self.block(block) for block in blocks if not block.lacking]
        if lacking := [(block.title, block.lacking) for block in blocks if block.lacking]:
            parts += [f"## {LACKING}", *self._facts(Facts(lacking))]
        return "\n\n".join([*parts, *map(self._text, footer)]) + "\n"

    def block(self, block: Block) -> str:
        parts = [f"## {self._text(block.title)}", *self._parts(block.parts, _Place(above=block.title))]
        return "\n\n".join(parts)

    def _parts(self, parts: Sequence[Part], place: _Place) -> Iterator[str]:
        for part in parts:
            yield from self._part(part, place)

    def _part(self, part: Part, place: _Place) -> Iterator[str]:
        if isinstance(part, Words):
            text = escape_markdown(cut(part.text, max(_SENTENCE, self._limits.characters)))
            yield f"**{text}**" if part.kind in ("verdict", "warning") else text
        elif isinstance(part, Facts):
            yield from self._facts(part)
        elif isinstance(part, Numbers):
            yield from self._numbers(part)
        elif isinstance(part, Stack):
            named = "; ".join(f"{one.name} {one.text}" for one in part.slices)
            yield f"**{self._text(part.title)}**: {escape_markdown(cut(f'{named}. {part.alt}', _SENTENCE))}"
        elif isinstance(part, Points):
            yield from self._points(part, place)
        elif isinstance(part, Grid):
            yield from self._grid(part, place)
        elif isinstance(part, Drawn | TimeLine):
            yield f"**{self._text(part.title)}**: {self._text(part.alt)}"
        elif isinstance(part, Filtered):
            yield from self._parts(part.parts, place)
        elif isinstance(part, Beside):
            yield from self._beside(part, place)
        else:
            yield from self._several(part, place)

    def _facts(self, facts: Facts) -> Iterator[str]:
        lines = [tuple(map(self._text, line)) for line in facts.lines]
        if not facts.heads:
            yield "\n".join(f"- **{label}**: {text}" for label, text in lines)
            return
        rows = [("", *facts.heads), ("---",) * (len(facts.heads) + 1), *lines]
        yield "\n".join("| " + " | ".join(row) + " |" for row in rows)

    def _beside(self, beside: Beside, place: _Place) -> Iterator[str]:
        """A column after the other, each with its heading."""
        for head, column in zip(beside.heads, zip(*beside.rows, strict=True), strict=True):
            parts = [part for part in column if part is not None]
            if parts:
                yield f"{'#' * place.level} {self._text(head)}"
                yield from self._parts(parts, _Place(place.level + 1, place.above))

    def _numbers(self, numbers: Numbers) -> Iterator[str]:
        lines = [tuple(map(self._text, (one.label, one.value, one.about))) for one in numbers.numbers]
        yield "\n".join(f"- **{label}**: {value}. {about}" for label, value, about in lines)

    def _several(self, part: Tabs | Folds, place: _Place) -> Iterator[str]:
        """One under the other, each with its heading."""
        several: Sequence[Tab | Fold] = part.tabs if isinstance(part, Tabs) else part.folds
        for each in several:
            yield f"{'#' * place.level} {self._text(each.title)}"
            if isinstance(each, Fold) and each.aside:
                band = f"{each.band.sign} " if each.band else ""
                yield f"{band}{self._text(each.aside)}"
            yield from self._parts(each.parts, _Place(place.level + 1, each.title))

    def _points(self, points: Points, place: _Place) -> Iterator[str]:
        if points.title:
            yield f"{'#' * place.level} {self._text(points.title)}"
        lines = []
        for point in points.points[: self._limits.rows]:
            mark = f"**{self._text(point.mark)}**: " if point.mark else ""
            aside = f" ({self._text(point.aside)})" if point.aside else ""
            lines += [f"- {mark}{self._text(point.text)}{aside}", *(f"  - {self._text(text)}" for text in point.detail)]
        if len(points.points) > self._limits.rows:
            lines.append(f"- and {len(points.points) - self._limits.rows:,} more")
        yield "\n".join(lines)

    def _grid(self, grid: Grid, place: _Place) -> Iterator[str]:
        section, most = _marked(grid), self._limits.rows
        if section.frame.is_empty():
            yield f"{'#' * place.level} {section.title}\n\nNone."
            return
        more = section.frame.height - most
        notes = [f"{more:,} more rows." if more > 1 else "1 more row."] if more > 0 else []
        frame = section.frame.head(most).with_columns(pl.col(pl.String).map_elements(self._cut, return_dtype=pl.String))
        shown = replace(section, frame=frame, notes=[*notes, *map(self._cut, section.notes)])
        yield markdown_table(shown, level=0 if section.title == place.above else place.level)

    def _text(self, text: str) -> str:
        return escape_markdown(self._cut(text))

    def _cut(self, text: str) -> str:
        return cut(text, self._limits.characters)


def _marked(grid: Grid) -> Section:
    """The section, with numbers that have a band and those that are missing as text."""
    frame = grid.section.frame
    marked = {field for field in grid.section.fields if field.column in {*grid.bands, *grid.instead}}
    columns = {
        field.column: pl.Series([_signed(grid, field, row) for row in frame.iter_rows(named=True)], dtype=pl.String)
        for field in marked
        if frame[field.column].null_count() < frame.height or not field.spare
    }
    fields = [replace(field, kind="number") if field.column in columns else field for field in grid.section.fields]
    return replace(grid.section, fields=fields, frame=frame.with_columns(**columns))


def _signed(grid: Grid, field: Field, row: Mapping[str, Any]) -> str:
    value = row[field.column]
    if value is None:
        return str(row[grid.instead[field.column]]) if field.column in grid.instead else cell(field, value)
    band = grid.bands.get(field.column)
    return cell(field, value) if band is None else f"{band(value).sign} {cell(field, value)}"
