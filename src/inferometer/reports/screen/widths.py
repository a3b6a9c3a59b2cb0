"""Which columns of a table fit, and how wide each is.

Columns that can be spared go first, those with the highest `spare` before others. Then texts get narrower, and names
down to 24 columns. Where that doesn't do, all columns go but two, from the right: the first that names the row, and
the first time. Numbers are never cut.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec
from rich.cells import cell_len

from inferometer.reports.screen.shown_names import LEAST_WIDTH
from inferometer.reports.views.layout import NAMES, Field

_GAP: Final = 2
_AT_EASE: Final = 0.6
"""Of the screen: before names and sentences get narrower than that, columns that can be spared are left out."""
_SPARED_AT_EASE: Final = 28
"""Columns of a name that can be spared itself."""
_LEAST_NAME: Final = 24
SHRINKING: Final = ("kernel", "name", "sentence", "text")
"""Kinds of columns that can get narrower; the first say best what a row is about."""


class Column(msgspec.Struct, frozen=True, eq=False):
    """A field with the value of every row, and its text."""

    field: Field
    values: Sequence[Any]
    texts: Sequence[str]

    @property
    def natural(self) -> int:
        """As wide as all of it needs."""
        return max(map(cell_len, (self.field.title, *self.texts)))

    def at_ease(self, width: int) -> int:
        """As wide as it stays on a screen of that width while others can be spared."""
        if self.field.kind not in NAMES:
            return self.natural
        return min(self.natural, _SPARED_AT_EASE if self.field.spare else round(_AT_EASE * width))

    @property
    def least(self) -> int:
        """As narrow as it gets before others are left out for it."""
        return min(self.natural, _LEAST_NAME) if self.field.kind in NAMES else self.narrowest

    @property
    def narrowest(self) -> int:
        """As narrow as it can be."""
        return min(self.natural, LEAST_WIDTH) if self.field.kind in SHRINKING else self.natural


def choose_widths(columns: Sequence[Column], width: int) -> dict[Column, int]:
    """The columns to show, in their order, with their widths: together no more than `width` where that can be."""
    shown = [*columns]
    for column in sorted((each for each in columns if each.field.spare), key=lambda each: -each.field.spare):
        if total_width(each.at_ease(width) for each in shown) <= width:
            break
        shown.remove(column)
    kept = _kept(shown)
    for column in reversed([each for each in shown if each not in kept]):
        if total_width(each.least for each in shown) <= width:
            break
        shown.remove(column)
    return _share_out(shown, width)


def whole_widths(columns: Sequence[Column], width: int) -> dict[Column, int]:
    """Every column as wide as it needs; only sentences are no wider than a screen."""
    return {
        column: min(column.natural, width) if column.field.kind == "sentence" else column.natural for column in columns
    }


def _kept(columns: Sequence[Column]) -> list[Column]:
    """What a row is about, its time, and all that is drawn."""
    drawn = [each for each in columns if each.field.kind == "drawing"]
    about = [each for kind in SHRINKING for each in columns if each.field.kind == kind]
    measures = [each for each in columns if each not in (*about, *drawn)]
    times = [each for each in measures if each.field.kind == "ns"]
    return [*about[:1], *(times or measures)[:1], *drawn]


def total_width(widths: Iterable[int]) -> int:
    """Width of columns next to each other."""
    each = [*widths]
    return sum(each) + _GAP * (len(each) - 1)


def _share_out(columns: Sequence[Column], width: int) -> dict[Column, int]:
    """What is left beyond the least goes to those that need least more, then evenly to the others."""
    widths = {column: column.least for column in columns}
    if total_width(widths.values()) > width:
        widths = {column: column.narrowest for column in columns}
    left = width - total_width(widths.values())
    needing = sorted(columns, key=lambda each: each.natural - widths[each])
    for i, column in enumerate(needing):
        more = min(column.natural - widths[column], max(0, left) // (len(needing) - i))
        widths[column] += more
        left -= more
    return widths
