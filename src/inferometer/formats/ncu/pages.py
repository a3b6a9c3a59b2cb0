"""Launches and their metrics in what `ncu --csv` prints: a column per metric below its unit, or a row per metric."""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

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


@dataclass
class Launch:
    """What is told of one launch; `metrics`: name, unit and text of each value, in the order of the file."""

    about: dict[str, str]
    metrics: list[tuple[str, Unit, str]] = field(default_factory=list)

    def number(self, column: str) -> int | None:
        """A whole number among what is told; None where it is none."""
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
    """The launches, in the order of the file; rows that can't be read go to `broken`, as examples.

    Args:
        lines: With their endings.
        broken: Filled as launches are taken.
    """
    text = iter(lines)
    header = next((line for line in text if is_header(line)), None)
    if header is None:
        return
    try:
        names = next(csv.reader([header]))
    except csv.Error as error:
        broken.append(f"its header: {error}")
        return
    if "Metric Value" in names:  # rows end with it, where no rule follows
        yield from _of_details(names, _rows(text, names.index("Metric Value") + 1, len(names), broken))
    else:
        yield from _of_raw(names, _rows(text, len(names), len(names), broken))


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


def _of_raw(names: Sequence[str], rows: Iterable[list[str]]) -> Iterator[Launch]:
    metrics = [(at, name) for at, name in enumerate(names) if name not in _ABOUT]
    units: dict[int, Unit] = {}
    for row in rows:
        about = {name: row[at] for at, name in enumerate(names) if name in _ABOUT}
        if not about["ID"]:
            units = {at: read_unit(row[at]) for at, _ in metrics}
        else:
            yield Launch(about, [(name, units.get(at, Unit("")), row[at]) for at, name in metrics if row[at]])


def _of_details(names: Sequence[str], rows: Iterable[list[str]]) -> Iterator[Launch]:
    """A launch's rows follow each other; a row of a rule names no metric."""
    at = {name: names.index(name) for name in (*_ABOUT, *_METRIC) if name in names}
    found: Launch | None = None
    for row in rows:
        about = {name: row[at[name]] for name in _ABOUT if name in at}
        if found is None or about != found.about:
            if found is not None:
                yield found
            found = Launch(about)
        section, metric, unit, value = (row[at[name]] if name in at else "" for name in _METRIC)
        if metric:
            name = metric if "__" in metric or not section else f"{section}: {metric}"
            found.metrics.append((name, read_unit(unit), value))
    if found is not None:
        yield found
