"""Cells of a row: its path, taken apart into names, and times as whole nanoseconds with what was lost in rounding."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from inferometer.errors import InputError
from inferometer.formats.path_table.header import PathHeader
from inferometer.units import parse_exact_duration

SEPARATOR = "."
_BLANK = frozenset({"", "-", "–", "—", "n/a", "none", "null"})
_NOT_FINITE = frozenset({"nan", "inf", "infinity"})
_LONGEST_PATH = 4_000
_MOST_NAMES = 250
_FLOATS = Decimal("1e-12")  # of the larger of two floats: what their difference may be off by


@dataclass(frozen=True)
class Cell:
    """A time that was not blank: null where it can't be read. `step_ns` is the worth of its last digit."""

    arm: int
    exact_ns: Decimal | None
    step_ns: Decimal = Decimal(0)

    @property
    def host_ns(self) -> int | None:
        """Rounded to the nearest nanosecond, ties to even."""
        return None if self.exact_ns is None else round(self.exact_ns)


@dataclass
class Row:
    """One row. `losses` are names with words about the place."""

    kernel: str
    path: str
    cells: list[Cell] = field(default_factory=list)
    losses: list[tuple[str, str]] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The last name of the path; it may have dots where the column `kernel` says so."""
        if self.kernel and (self.path == self.kernel or self.path.endswith(SEPARATOR + self.kernel)):
            return self.kernel
        return self.path.rpartition(SEPARATOR)[2]


def read_row(header: PathHeader, cells: Sequence[str], *, last_is_cut: bool = False) -> Row | None:
    """The row of these cells; None where they are too few or too many, or have no path or no time that can be read."""
    if len(cells) != len(header.titles):
        return None
    row = Row(cells[header.kernel], cells[header.path])
    names = row.path.split(SEPARATOR)
    if len(row.path) > _LONGEST_PATH or len(names) > _MOST_NAMES or not all(names):
        return None
    if row.kernel and row.name != row.kernel:
        row.losses.append(("contradicting_rows", f"kernel {row.kernel[:60]}, path {row.path[-60:]}"))
    cut = len(cells) - 1 if last_is_cut else None
    wrong = sum(not _read_time(header, row, i, cells) for i, arm in enumerate(header.arms) if arm.at != cut)
    if wrong and wrong == len([arm for arm in header.arms if cells[arm.at]]):
        return None
    _check_differences(header, row, cells, cut)
    return row


def names_of(path: str, named: Mapping[str, str]) -> Sequence[str]:
    """The names from the root. `named` gives the last name of the paths that are rows: it may have dots."""
    found = []
    while path:
        name = named.get(path) or path.rpartition(SEPARATOR)[2]
        found.append(name)
        path = path[: -len(name) - len(SEPARATOR)] if len(name) < len(path) else ""
    return found[::-1]


def _read_time(header: PathHeader, row: Row, arm: int, cells: Sequence[str]) -> bool:
    """Add the cell to the row; False where it holds something that is no time."""
    text, title = cells[header.arms[arm].at], header.arms[arm].name[:60]
    word = text.lower().lstrip("+-")
    if text.lower() in _BLANK:
        return True
    if word in _NOT_FINITE:
        row.losses.append(("not_finite", f"{title}: {text}"))
        if word != "nan":  # tables of pandas say NaN where they have nothing
            row.cells.append(Cell(arm, None))
        return True
    try:
        exact_ns, step_ns = parse_exact_duration(text, default_unit=header.arms[arm].unit)
    except InputError:
        exact_ns = step_ns = Decimal(-1)
    if exact_ns < 0:
        row.losses.append(("wrong_type", f"{title}: {text[:60]}"))
        row.cells.append(Cell(arm, None))
        return False
    row.cells.append(Cell(arm, exact_ns, step_ns))
    return True


def _check_differences(header: PathHeader, row: Row, cells: Sequence[str], cut: int | None) -> None:
    """Count printed differences that the row's times don't make."""
    known = {cell.arm: cell for cell in row.cells if cell.exact_ns is not None}
    for column in header.differences:
        text = cells[column.at]
        if column.at == cut or text.lower() in _BLANK | _NOT_FINITE:
            continue
        first, second = known.get(column.first), known.get(column.second)
        words = f"{column.title[:60]} is {text[:40]}"
        if first is None or second is None:
            row.losses.append(("contradicting_rows", f"{words}, but not both times are there"))
            continue
        unit = header.arms[column.first].unit
        if wrong := _disagrees(text, unit, first, second, signed=column.signed):
            row.losses.append((wrong, f"{words}, the row makes {_made(first, second)} ns"))


def _disagrees(text: str, unit: str, first: Cell, second: Cell, *, signed: bool) -> str | None:
    try:
        printed, step_ns = parse_exact_duration(text, default_unit=unit)
    except InputError:
        return "wrong_type"
    one, other = first.exact_ns or Decimal(0), second.exact_ns or Decimal(0)
    slack = (first.step_ns + second.step_ns) / 2 + step_ns + _FLOATS * max(one, other)
    makes = [one - other] if signed else [one - other, other - one]
    return None if any(abs(printed - made) <= slack for made in makes) else "contradicting_rows"


def _made(first: Cell, second: Cell) -> str:
    return f"{round((first.exact_ns or Decimal(0)) - (second.exact_ns or Decimal(0))):,}"


def rounded(cells: Sequence[Cell]) -> Iterator[Cell]:
    """Those that have digits below a nanosecond."""
    return (cell for cell in cells if cell.exact_ns is not None and cell.exact_ns != cell.host_ns)
