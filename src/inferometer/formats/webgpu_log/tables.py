"""The table in a profile report: what its header says of the columns, and the cells of a row, read exactly.

Columns are parted by spaces, and a label may hold spaces or be wider than its column: a row has as many cells as the
header has titles, counted from the right, and all that comes before them is the label.
"""

import re
from dataclasses import dataclass, field
from typing import Any

from inferometer.formats.webgpu_log.quantities import read_step

SHARE = "share"
STATISTICS = ("count", "total_ns", "mean_ns", "median_ns", "min_ns", "max_ns", "stddev_ns")
_WHOLE = frozenset({"total_ns", "min_ns", "max_ns"})
_LABELS = frozenset({"kernel", "label", "name", "pass", "op", "operation", "dispatch", "kernel name"})
_COLUMNS = {
    **dict.fromkeys(("time", "total", "total time", "gpu time", "duration", "sum"), "total_ns"),
    **dict.fromkeys(("count", "calls", "launches", "dispatches", "instances", "n", "#"), "count"),
    **dict.fromkeys(("avg", "average", "mean"), "mean_ns"),
    **dict.fromkeys(("med", "median", "p50"), "median_ns"),
    **dict.fromkeys(("min", "minimum"), "min_ns"),
    **dict.fromkeys(("max", "maximum"), "max_ns"),
    **dict.fromkeys(("stddev", "std dev", "std"), "stddev_ns"),
    **dict.fromkeys(("", "%", "share", "pct", "percent", "% total", "% of total"), SHARE),
}
_UNITS = {"ns": "ns", "us": "us", "\u00b5s": "us", "\u03bcs": "us", "ms": "ms", "s": "s"}
_TITLE = re.compile(r"(?P<words>[^()]*?)\s*(?:\((?P<unit>[^()]*)\))?")
_TITLES = re.compile(r"\S+(?: \S+)*")
_NARROW_TITLES = re.compile(r"[^\s()]+(?: ?\([^()]*\))?")
_DRAWN = r"=\-\u2010-\u2015\u2212\u2500-\u257f"
_RULER = re.compile(rf"[\s|+:{_DRAWN}]*[{_DRAWN}]{{3}}[\s|+:{_DRAWN}]*")
_BARS = str.maketrans(dict.fromkeys("|\u2502\u2503\u2551", " "))
_NUMBER = r"[-+]?[0-9][0-9.,]{0,40}(?:[eE][-+]?[0-9]{1,3})?"
_NO_NUMBER = r"[-+]?(?:inf(?:inity)?|nan)"
_CELL = rf"{_NUMBER}(?: ?(?:ns|us|\u00b5s|\u03bcs|ms|s|%))?|{_NO_NUMBER}|[-\u2013\u2014]|n/a"
_IS_CELL = re.compile(_CELL, re.IGNORECASE)
_INFINITE = re.compile(_NO_NUMBER, re.IGNORECASE)
_COUNT = re.compile(r"[0-9]{1,3}(?:,[0-9]{3}){0,5}|[0-9]{1,18}")
_SHARE_CELL = re.compile(rf"(?:{_NUMBER}|{_NO_NUMBER}) ?%?", re.IGNORECASE)
_ABSENT = frozenset({"-", "\u2013", "\u2014", "n/a", "N/A"})
_LONGEST_HEADER = 400
_LONGEST_ROW = 2_000  # characters of a row that is searched for cells with spaces in them
_REMEMBERED = 100_000

Cell = tuple[Any, float | None]
Row = tuple[str, tuple[Cell, ...]]
_UNREADABLE: Cell = (None, -1.0)
_NOTHING: Cell = (None, None)
NOT_FINITE: Cell = (None, -2.0)


@dataclass(frozen=True)
class ReportHeader:
    """Titles of the columns after the label, what each is (a column of `totals`, `share`, or None), and its unit."""

    titles: tuple[str, ...]
    columns: tuple[str | None, ...]
    units: tuple[str | None, ...]
    has_bars: bool = False


def find_header(text: str) -> ReportHeader | None:
    """The header that this line is: a title of labels, then one of a time, and others."""
    if len(text) > _LONGEST_HEADER:
        return None
    plain = text.translate(_BARS)
    for titles in (_TITLES.findall(plain), _NARROW_TITLES.findall(plain)):
        if len(titles) > 1 and titles[0].lower() in _LABELS and (found := _header(titles[1:], plain != text)):
            return found
    return None


def _header(titles: list[str], has_bars: bool) -> ReportHeader | None:
    columns: list[str | None] = []
    units: list[str | None] = []
    for title in titles:
        match = _TITLE.fullmatch(title)
        words = match["words"].lower() if match else title.lower()
        unit = _UNITS.get(match["unit"].strip()) if match and match["unit"] else None
        column = _COLUMNS.get(words)
        if match and match["unit"] and not unit and column != SHARE:  # a size, perhaps
            column = None
        columns.append(None if column in columns else column)
        units.append(unit)
    if "total_ns" not in columns:
        return None
    usual = units[columns.index("total_ns")]
    return ReportHeader(tuple(titles), tuple(columns), tuple(unit or usual for unit in units), has_bars)


def is_ruler(text: str) -> bool:
    """Whether the line only draws."""
    return bool(_RULER.fullmatch(text)) if len(text) <= _LONGEST_ROW else False


def looks_like_row(text: str) -> bool:
    """Whether a line ends in two numbers, as rows and totals do, whatever its header was."""
    cells = text.rsplit(None, 2) if len(text) <= _LONGEST_ROW else []
    return len(cells) == 3 and bool(_IS_CELL.fullmatch(cells[1])) and bool(_IS_CELL.fullmatch(cells[2]))


@dataclass
class ReportTable:
    """Reads the rows below one header, and remembers cells: most are printed again and again."""

    header: ReportHeader
    _cells: list[dict[str, Cell]] = field(init=False)

    def __post_init__(self) -> None:
        self._n = len(self.header.columns)
        self._at = self.header.columns.index("total_ns")
        self._cells = [{} for _ in range(self._n)]

    def read(self, text: str) -> Row | None:
        """The label and the cells of a row; None when the line is none, or its total can't be read."""
        if self.header.has_bars:
            text = text.translate(_BARS)
        words = text.rsplit(None, self._n)
        if len(words) == 3 and self._n == 2:  # as the engine prints it: nearly all lines of a log are such rows
            total, share = self._cells[0].get(words[1]), self._cells[1].get(words[2])
            if total is not None and share is not None:
                return words[0].strip(), (total, share)
        if len(words) > self._n:
            cells = tuple(
                known.get(cell) or self._read_cell(i, cell)
                for i, (known, cell) in enumerate(zip(self._cells, words[1:], strict=True))
            )
            if _UNREADABLE not in cells:
                return words[0].strip(), cells
        return self._read_wide(text) if words and len(text) <= _LONGEST_ROW else None

    def is_like_a_row(self, text: str) -> bool:
        """Whether a line that can't be read was meant as a row: one that is cut or broken, not free text."""
        words = text.rsplit(None, self._n) if len(text) <= _LONGEST_ROW else []
        return "  " in text.strip() or any(_IS_CELL.fullmatch(word) for word in words[1:])

    def _read_wide(self, text: str) -> Row | None:
        """A row of which cells have units after a space: from the right, cell by cell."""
        cells: list[str] = []
        rest = text.rstrip()
        while len(cells) < self._n:
            words = rest.rsplit(None, 2)
            if len(words) == 3 and _IS_CELL.fullmatch(f"{words[1]} {words[2]}"):
                rest, cell = words[0], f"{words[1]} {words[2]}"
            elif len(words) >= 2:
                rest, cell = rest[: -len(words[-1])].rstrip(), words[-1]
            else:
                return None
            cells.append(cell)
        values = tuple(self._read_cell(i, cell) for i, cell in enumerate(reversed(cells)))
        return (rest.strip(), values) if rest.strip() and _UNREADABLE not in values else None

    def _read_cell(self, i: int, cell: str) -> Cell:
        value = _read(self.header.columns[i], self.header.units[i], cell, must_be=i == self._at)
        if len(cell) <= 24 and value is not _UNREADABLE:
            if len(self._cells[i]) >= _REMEMBERED:
                self._cells[i].clear()
            self._cells[i][cell] = value
        return value


def _read(column: str | None, unit: str | None, cell: str, *, must_be: bool) -> Cell:
    """The value of a cell and, of times, half of its last digit."""
    if column is None:
        return _NOTHING
    if column == SHARE:
        return _NOTHING if cell in _ABSENT or _SHARE_CELL.fullmatch(cell) else _UNREADABLE
    if _INFINITE.fullmatch(cell):
        return NOT_FINITE
    if not must_be and cell in _ABSENT:
        return _NOTHING
    if column == "count":
        return (int(cell.replace(",", "")), None) if _COUNT.fullmatch(cell) else _UNREADABLE
    if unit is None and not cell[-1:].isalpha():
        return _UNREADABLE
    time = read_step(cell, unit or "ns")
    if time is None:
        return _UNREADABLE
    value, resolution_ns = time
    return (value if column in _WHOLE else float(value)), resolution_ns
