"""Values of a table's cells: exact times with how finely they were printed, counts and shares."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from inferometer.errors import InputError
from inferometer.formats.kernel_table.headers import KIND, NAME, SHARE, STATISTICS, KernelHeader
from inferometer.units import parse_exact_duration

_ABSENT = frozenset({"", "-", "–", "—", "n/a", "none", "null", "nan"})
_WHOLE = frozenset({"total_ns", "min_ns", "max_ns"})
_COUNT = re.compile(r"[0-9]{1,3}(?:,[0-9]{3}){0,6}|[0-9]{1,18}")
_SHARE = re.compile(r"(?P<number>[0-9]{1,30}(?:\.[0-9]{0,30})?(?:[eE][+-]?[0-9]{1,2})?) ?%?")
_LONGEST_NUMBER = 18  # digits that fit 64 bits whatever they are

Value = int | float | None


@dataclass
class Row:
    """One row: statistics by column of `totals`, the printed share in percent and the worth of its last digit.

    `wrong` are titles of statistics that could not be read; `assumed` says that a time had no unit and was taken as ns.
    """

    kernel: str = ""
    kind: str = "kernel"
    statistics: dict[str, Value] = field(default_factory=dict)
    resolution_ns: float | None = None
    share: tuple[float, float] | None = None
    wrong: list[str] = field(default_factory=list)
    assumed: bool = False


def read_row(header: KernelHeader, cells: Sequence[str]) -> Row | None:
    """The row of these cells; None when there are too few or too many, or its total time can't be read."""
    if len(cells) != len(header.columns):
        return None
    row = Row()
    for column, unit, title, cell in zip(header.columns, header.units, header.titles, cells, strict=True):
        if column is None:
            continue
        if column == NAME:
            row.kernel = cell
        elif column == KIND:
            row.kind = cell.strip().lower()
        elif cell.strip().lower() not in _ABSENT and not _read_number(row, column, unit, cell.strip()):
            if column == "total_ns":
                return None
            row.wrong.append(title)
    return row


def is_like_a_row(header: KernelHeader, cells: Sequence[str]) -> bool:
    """Whether the first cell that should be a number is one: a row that is cut or broken, not free text."""
    for column, unit, cell in zip(header.columns, header.units, cells, strict=False):
        if (column == SHARE or column in STATISTICS) and cell.strip().lower() not in _ABSENT:
            return _read_number(Row(), column, unit, cell.strip())
    return False


def _read_number(row: Row, column: str, unit: str | None, text: str) -> bool:
    if column == SHARE:
        row.share = _read_share(text)
        return row.share is not None
    if column == "count":
        row.statistics[column] = int(text.replace(",", "")) if _COUNT.fullmatch(text) else None
        return row.statistics[column] is not None
    return _read_time(row, column, unit, text)


def _read_time(row: Row, column: str, unit: str | None, text: str) -> bool:
    if not text[-1:].isalpha():
        row.assumed = row.assumed or unit is None
        unit = unit or "ns"
    if unit == "ns" and len(text) <= _LONGEST_NUMBER and text.isdecimal() and text.isascii():
        row.statistics[column] = int(text) if column in _WHOLE else float(text)
        return True
    try:
        value, step = parse_exact_duration(text, default_unit=unit)
    except InputError:
        return False
    if value < 0:
        return False
    row.statistics[column] = round(value) if column in _WHOLE else float(value)
    if column == "total_ns":
        in_ns = text.endswith("ns") if text[-1:].isalpha() else unit == "ns"
        row.resolution_ns = _resolution_ns(value, step, in_ns=in_ns)
    return True


def _resolution_ns(value: Decimal, step_ns: Decimal, *, in_ns: bool) -> float | None:
    """Half of the last digit; None for whole nanoseconds printed as such, which are exact."""
    if in_ns and step_ns <= 1:
        return None if value == round(value) else 0.5
    return float(step_ns / 2)


def _read_share(text: str) -> tuple[float, float] | None:
    """Percent, and the worth of the last digit."""
    match = _SHARE.fullmatch(text)
    if match is None:
        return None
    number = Decimal(match["number"])
    exponent = number.as_tuple().exponent
    return float(number), 10.0 ** (exponent if isinstance(exponent, int) else 0)
