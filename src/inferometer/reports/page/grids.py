"""Tables as the page's template writes them: cells as text and exact value, groups with sums, and what is left out.

The column of names comes first and heads its row. Names are short, as on a terminal, and whole where they are asked
for. Columns in which no row has anything are named below. Sums are of whole groups, also where not every row is shown.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import polars as pl
from msgspec.structs import replace

from inferometer.errors import clean
from inferometer.reports.base import cell, is_right, shown_fields
from inferometer.reports.page.blocks import ADDITIVE, MOST_ROWS, Band, Grid
from inferometer.reports.page.figures import without_surrogates
from inferometer.reports.screen.shown_names import cut_names, label_kernels
from inferometer.reports.views.layout import NAMES, Field

_NAME = 60  # characters of a name that are seen at first
_TEXT = 160
_BAR_DIGITS = 4
_MARKUP = 10  # characters around a cell
_FOLDED = 60  # rows from which groups begin folded
_FEW, _MANY = 3, 9  # rows, and columns: such a table is turned, a line for each column


class TableLimits(msgspec.Struct, frozen=True):
    """How much of a table is shown: rows, and characters of a cell."""

    rows: int = MOST_ROWS
    characters: int = 4_000


class Head(msgspec.Struct, frozen=True):
    """A column's heading. `kind` shows the script how to write a sum, `summed` whether there is one.

    `spare`: where the window is too narrow, columns with the highest are left out first.
    """

    title: str
    kind: str
    right: bool
    summed: bool
    of_group: bool
    spare: int = 0


class Cell(msgspec.Struct, frozen=True):
    """`text` as people read it; `short` is seen in its place where it is long; `exact` where the text isn't.

    `bar`: -1 to 1, how long a bar in the cell is and to which side.
    """

    text: str
    short: str = ""
    exact: str = ""
    band: Band | None = None
    bar: float | None = None


class Line(msgspec.Struct, frozen=True):
    """A row: plain, the head of a group, or the rest that isn't shown. `label` says what a head or rest is."""

    kind: str  # row, group, rest
    cells: Sequence[Cell]
    group: int | None = None
    label: Cell | None = None
    rows: int = 1


class PageTable(msgspec.Struct, frozen=True):
    """A table ready for the template. `turned`: columns as lines."""

    title: str
    heads: Sequence[Head]
    lines: Sequence[Line]
    notes: Sequence[str]
    group: str | None
    folded: bool
    turned: bool

    def characters(self) -> int:
        """About how many the page needs for it, at least."""
        cells = [cell for line in self.lines for cell in line.cells]
        return sum(map(len, self.notes)) + sum(_MARKUP + len(cell.text) + len(cell.short) for cell in cells)


def arrange_grid(grid: Grid, limits: TableLimits) -> PageTable:
    """The grid, cut to `limits`."""
    return _Arranged(grid, limits).table()


def cut(text: str, characters: int) -> str:
    """`text` without what drives a terminal or turns lines around, and without its end where it is very long."""
    more = len(text) - characters
    text = without_surrogates(clean(text[:characters]))
    return text if more <= 0 else f"{text}… ({more:,} more characters)"


class _Arranged:
    def __init__(self, grid: Grid, limits: TableLimits) -> None:
        self._grid = grid
        self._section = grid.section
        self._frame = grid.section.frame
        self._limits = limits
        self._group = grid.group if grid.group in self._frame.columns else None
        fields = _names_first(shown_fields(grid.section))
        self._fields = [field for field in fields if self._is_used(field)] or fields[:1]
        self._unused = [field.title for field in fields if field not in self._fields]
        self._short = {field: self._short_names(field) for field in self._fields if field.kind in NAMES}
        self._largest = {column: self._frame[column].abs().max() or 1 for column in grid.bars}
        self._summed = set(ADDITIVE if grid.sums is None else grid.sums)

    def table(self) -> PageTable:
        return PageTable(
            title=cut(self._section.title, self._limits.characters),
            heads=[self._head(field) for field in self._fields],
            lines=[*self._lines()],
            notes=[cut(note, self._limits.characters) for note in self._notes()[: self._limits.rows]],
            group=self._group_title(),
            folded=self._frame.height > _FOLDED,
            turned=self._is_turned(),
        )

    def _is_turned(self) -> bool:
        is_plain = not (self._grid.bands or self._grid.instead) and self._group is None
        return is_plain and self._frame.height <= _FEW and len(self._fields) >= _MANY

    def _is_used(self, field: Field) -> bool:
        """Whether a row that is shown has something in the column."""
        values = self._frame[field.column].head(self._limits.rows).drop_nulls()
        if self._frame.is_empty() or field.column in self._grid.instead:
            return True
        return len(values.filter(values != "") if values.dtype == pl.String else values) > 0

    def _notes(self) -> Sequence[str]:
        if not self._unused:
            return self._section.notes
        return [*self._section.notes, f"Left out, since no row has it: {', '.join(self._unused)}."]

    def _short_names(self, field: Field) -> Mapping[str, str]:
        """What is seen of each name: of a kernel what its name says, of others as much as there is room for."""
        if field.kind == "sentence" or field.column in self._grid.whole:
            return {}
        values = self._frame[field.column].head(self._limits.rows).cast(pl.String)
        names = [name for name in values.unique(maintain_order=True) if name]
        labels = label_kernels(names) if field.kind == "kernel" else {name: clean(name) for name in names}
        return cut_names(labels, _NAME)

    def _group_title(self) -> str | None:
        titles = [field.title for field in self._fields if field.column == self._group]
        return None if self._group is None else cut([*titles, self._group][0], self._limits.characters)

    def _head(self, field: Field) -> Head:
        title = cut(field.title, self._limits.characters)
        is_summed, of_group = self._is_summed(field), field.column == self._group
        return Head(title, field.kind, is_right(field), is_summed, of_group, field.spare)

    def _is_summed(self, field: Field) -> bool:
        return field.column in self._summed and self._frame[field.column].dtype.is_numeric()

    def _lines(self) -> Iterator[Line]:
        shown = self._frame.head(self._limits.rows)
        if self._group is None:
            yield from self._rows(shown, None)
            yield from self._rest(self._frame.slice(self._limits.rows), None, "more rows")
            return
        values = self._frame[self._group]
        for number, value in enumerate(shown[self._group].unique(maintain_order=True)):
            whole = self._frame.filter(values.eq_missing(value))
            rows = shown.filter(shown[self._group].eq_missing(value))
            label = self._text("-" if value is None else str(value), _NAME)
            yield Line("group", self._sums(whole), number, label, whole.height)
            yield from self._rows(rows, number)
            yield from self._rest(whole.slice(rows.height), number, "more rows of the group")
        unseen = self._frame.filter(~values.is_in(shown[self._group].implode(), nulls_equal=True))
        yield from self._rest(unseen, None, "more rows of other groups")

    def _rows(self, frame: pl.DataFrame, group: int | None) -> Iterator[Line]:
        for row in frame.iter_rows(named=True):
            yield Line("row", [self._marked(field, row) for field in self._fields], group)

    def _rest(self, frame: pl.DataFrame, group: int | None, what: str) -> Iterator[Line]:
        if frame.height:
            label = Cell(f"and {frame.height:,} {what}" if frame.height > 1 else f"and 1 {what.replace('rows', 'row')}")
            yield Line("rest", self._sums(frame), group, label, frame.height)

    def _sums(self, frame: pl.DataFrame) -> list[Cell]:
        """Sums of columns that may be added up; empty where they may not, or where a number is missing."""
        sums = []
        for field in self._fields:
            known = self._is_summed(field) and not frame[field.column].null_count()
            sums.append(self._cell(field, frame[field.column].sum()) if known else Cell(""))
        return sums

    def _marked(self, field: Field, row: Mapping[str, Any]) -> Cell:
        value = row[field.column]
        if value is None and field.column in self._grid.instead:
            return Cell(cut(row[self._grid.instead[field.column]], self._limits.characters))
        if whole := self._grid.whole.get(field.column):
            return self._text(row[whole] or value, _TEXT, value)
        band = None if value is None else self._grid.bands.get(field.column)
        made = replace(self._cell(field, value), band=None if band is None else band(value))
        if value is None or field.column not in self._largest:
            return made
        return replace(made, bar=round(value / self._largest[field.column], _BAR_DIGITS))

    def _cell(self, field: Field, value: Any) -> Cell:
        text = cell(field, value)
        if not is_right(field):
            return self._text(text, _TEXT, self._short.get(field, {}).get(text, ""))
        exact = "" if value is None else repr(value)
        return Cell(text, exact=exact if exact != text else "")

    def _text(self, text: str, longest: int, short: str = "") -> Cell:
        text = cut(text, self._limits.characters)
        if not short and len(text) > longest:
            short = f"{text[:_NAME]}…"
        return Cell(text, short=cut(short, self._limits.characters) if short != text else "")


def _names_first(fields: Sequence[Field]) -> list[Field]:
    """The first column of names in front: it says what a row is about."""
    names = [field for field in fields if field.kind in NAMES][:1]
    return [*names, *(field for field in fields if field not in names)]
