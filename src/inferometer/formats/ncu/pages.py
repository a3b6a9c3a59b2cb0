"""Launches and their metrics in what `ncu --csv` prints: a column per metric below its unit, or a row per metric."""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from inferometer.formats.ncu.units import Unit, read_unit

_HEADER = re.compile(r'"?ID"?,"?Process ID"?,.*"?Kernel Name"?,')
_SAYS = re.compile(r"==\w+==")  # ==PROF== Connected to process 1803
_ABOUT: Final[tuple[str, ...]] = (
    *("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Kernel Time", "Context", "Stream"),
    *("Block Size", "Grid Size", "Device", "CC"),
)
_METRIC: Final[tuple[str, ...]] = ("Section Name", "Metric Name", "Metric Unit", "Metric Value")
_SIZE = re.compile(r"\(?\s*(\d{1,10}),\s*(\d{1,10}),\s*(\d{1,10})\s*\)?")

Size = tuple[int, int, int]


class Launch(msgspec.Struct):
    """What one table has of a launch; `metrics`: name, unit and text of each value, in the order of the file."""

    table: int
    about: dict[str, str]
    metrics: list[tuple[str, Unit, str]] = msgspec.field(default_factory=list)

    @property
    def key(self) -> tuple[str | None, ...]:
        """Unique in the file: ids count the launches that one process had profiled."""
        return tuple(self.about.get(column) for column in ("Host Name", "Process ID", "ID", "Kernel Name"))

    def number(self, column: str) -> int | None:
        """The whole number in a column about the launch; None where it is none."""
        text = self.about.get(column, "").strip()
        return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else None

    def size(self, column: str) -> Size | None:
        """`(256, 1, 1)`, a grid or block."""
        match = _SIZE.fullmatch(self.about.get(column, "").strip())
        return (int(match[1]), int(match[2]), int(match[3])) if match else None


def is_header(line: str) -> bool:
    """Whether a line begins ncu's table."""
    return _HEADER.match(line) is not None


def launches_of(lines: Iterable[str], broken: list[str]) -> Iterator[Launch]:
    """The launches of each table, in the order of the file; rows that can't be read go to `broken`, as examples.

    A launch of several tables comes once for each.

    Args:
        lines: With their endings.
        broken: Filled as launches are taken.
    """
    text = _Tables(lines)
    for table, header in enumerate(iter(text.begin, None)):
        try:
            names = next(csv.reader([header]))
        except csv.Error as error:
            broken.append(f"its header: {error}")
            continue
        if "Metric Value" in names:  # rows end with it, where no rule follows
            rows = _rows(text, names.index("Metric Value") + 1, len(names), broken)
            yield from _of_details(table, names, rows)
        else:
            yield from _of_raw(table, names, _rows(text, len(names), len(names), broken))


class _Tables:
    """Lines, a table at a time: what `begin` gives is the header, and iterating ends before the next one."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = iter(lines)
        self._header: str | None = None

    def begin(self) -> str | None:
        """The next header; None where there is no further table."""
        header = self._header or next(filter(is_header, self._lines), None)
        self._header = None
        return header

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            if is_header(line):
                self._header = line
                return
            yield line


def _rows(lines: Iterable[str], least: int, most: int, broken: list[str]) -> Iterator[list[str]]:
    """Rows with so many cells; what the program and ncu print between them are none."""
    table = csv.reader(line for line in lines if not _SAYS.match(line) and line.strip())
    while True:
        try:
            row = next(table)
        except StopIteration:
            return
        except csv.Error as error:
            broken.append(f"row {table.line_num}: {error}")
            continue
        if least <= len(row) <= most:
            yield row
        else:
            broken.append(f"row {table.line_num}: expected {least:,} cells or more, found {len(row):,}")


def _of_raw(table: int, names: Sequence[str], rows: Iterable[list[str]]) -> Iterator[Launch]:
    metrics = [(at, name) for at, name in enumerate(names) if name not in _ABOUT]
    units: dict[int, Unit] = {}
    for row in rows:
        about = {name: row[at] for at, name in enumerate(names) if name in _ABOUT}
        if not about["ID"]:
            units = {at: read_unit(row[at]) for at, _ in metrics}
        else:
            yield Launch(table, about, [(name, units.get(at, Unit("")), row[at]) for at, name in metrics if row[at]])


def _of_details(table: int, names: Sequence[str], rows: Iterable[list[str]]) -> Iterator[Launch]:
    """A launch's rows follow each other; a row of a rule names no metric."""
    at = {name: names.index(name) for name in (*_ABOUT, *_METRIC) if name in names}
    found: Launch | None = None
    for row in rows:
        about = {name: row[at[name]] for name in _ABOUT if name in at}
        if found is None or about != found.about:
            if found is not None:
                yield found
            found = Launch(table, about)
        section, metric, unit, value = (row[at[name]] if name in at else "" for name in _METRIC)
        if metric:
            name = metric if "__" in metric or not section else f"{section}: {metric}"
            found.metrics.append((name, read_unit(unit), value))
    if found is not None:
        yield found
