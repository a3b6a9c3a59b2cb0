"""Profile reports: a title with phase and tokens, a header, rows, and a total that the rows make up.

A report is open from its first line to its total. What the total says is checked against the rows: each was rounded by
half of its last digit at most, and so may their sum be off by as many halves.
"""

import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from inferometer.formats.webgpu_log.quantities import read_time
from inferometer.formats.webgpu_log.tables import (
    NOT_FINITE,
    STATISTICS,
    Cell,
    ReportHeader,
    ReportTable,
    Row,
    find_header,
    is_ruler,
)
from inferometer.trace.facts import PrintedTotals

if TYPE_CHECKING:
    from inferometer.trace.losses import Losses

_TOKENS = re.compile(
    r"\bN ?= ?(?P<n>[0-9]{1,9})\b|\b(?P<tokens>[0-9]{1,9}) tokens?\b|\btokens ?[=:] ?(?P<given>[0-9]{1,9})\b"
)
_CONTEXT = re.compile(r"\bcontext ?[=:] ?(?P<n>[0-9]{1,9})\b")
_WALL = re.compile(r"\bwall ?[=:] ?(?P<time>[0-9.]{1,20} ?(?:ns|us|\u00b5s|\u03bcs|ms|s))\b")
_HEAD = re.compile(r"(?:GPU )?Profile Report\b", re.IGNORECASE)
_LONGEST_TITLE = 400
TOTAL = "total"


@dataclass(frozen=True)
class Title:
    """What the line above a report says; None where it doesn't say.

    `context`: tokens in the KV cache before the step; `wall_ns`: how long it took, up to the time of this line.
    """

    text: str = ""
    time_ns: int | None = None
    phase: str | None = None
    tokens: int | None = None
    context: int | None = None
    wall_ns: int | None = None


def is_head(text: str) -> bool:
    """Whether a line of the profiler opens a report."""
    return len(text) <= _LONGEST_TITLE and _HEAD.search(text) is not None


def read_title(text: str, time_ns: int | None) -> Title:
    """`Batch decode (N=4):` is a decode of four tokens, `(N=4, context=9, wall=2.5ms)` shows where it stands, too."""
    words = text[:_LONGEST_TITLE].lower()
    is_prefill, is_decode = "prefill" in words, "decode" in words
    phase = "mixed" if is_prefill and is_decode else "prefill" if is_prefill else "decode" if is_decode else None
    match = _TOKENS.search(text[:_LONGEST_TITLE])
    tokens = int(match[match.lastgroup or 0]) if match else None
    context, wall = (pattern.search(text[:_LONGEST_TITLE]) for pattern in (_CONTEXT, _WALL))
    return Title(
        text=text.strip().rstrip(":"),
        time_ns=time_ns,
        phase=phase,
        tokens=tokens,
        context=int(context["n"]) if context else None,
        wall_ns=read_time(wall["time"]) if wall else None,
    )


@dataclass
class Report:
    """One report as it is read; `owner` as in `Parts`.

    `total_ns` and `total_step_ns` are the printed total and half of its last digit; `is_whole` says that every row was
    read, `ended_rows` after how many of them a ruler or an empty line came last, and `is_overtaken` that a report which
    was opened later got its total since the last row.
    """

    title: Title
    line: int
    owner: str | None = None
    table: ReportTable | None = None
    labels: list[str] = field(default_factory=list)
    cells: list[tuple[Cell, ...]] = field(default_factory=list)
    is_whole: bool = True
    total_ns: int | None = None
    total_step_ns: float = 0.0
    has_total: bool = False
    ended_rows: int = 0
    is_overtaken: bool = False

    @property
    def has_end(self) -> bool:
        """Whether a ruler or an empty line comes after the last row, so that it is the last."""
        return 0 < len(self.labels) == self.ended_rows

    def add(self, row: Row) -> None:
        """A row below the others."""
        self.labels.append(row[0])
        self.cells.append(row[1])
        self.is_overtaken = False

    def end(self) -> None:
        """Note a ruler or an empty line."""
        self.ended_rows = len(self.labels)

    @property
    def busy_ns(self) -> int | None:
        """The printed total, else the sum of all rows; None when rows are missing."""
        if self.total_ns is not None:
            return self.total_ns
        totals = self.column("total_ns")
        return sum(totals) if self.has_end and self.is_whole and totals and None not in totals else None

    def column(self, name: str) -> list[Any]:
        """The values of a column of `totals`; empty when the report doesn't have it."""
        if self.table is None or name not in self.table.header.columns:
            return []
        at = self.table.header.columns.index(name)
        return [row[at][0] for row in self.cells]

    def resolutions(self) -> list[float | None]:
        """Half of the last printed digit of each total."""
        if self.table is None:
            return []
        at = self.table.header.columns.index("total_ns")
        return [None if row[at][0] is None else row[at][1] for row in self.cells]

    def same_as(self, other: "Report | None") -> bool:
        """Whether it is the other one, printed again."""
        return (
            other is not None
            and self.title.time_ns is not None
            and (self.title, self.labels, self.total_ns) == (other.title, other.labels, other.total_ns)
            and self.column("total_ns") == other.column("total_ns")
        )

    def has_checked_total(self) -> bool:
        """Whether all rows were read and a total that they make up, but for rounding."""
        is_checked = self.total_ns is not None and self.is_whole and None not in self.column("total_ns")
        return is_checked and self.disagreement() is None

    def disagreement(self) -> str | None:
        """In words, by how much the printed total is not the sum of the rows."""
        totals = self.column("total_ns")
        if self.total_ns is None or not self.is_whole or None in totals:
            return None
        slack = self.total_step_ns + sum(filter(None, self.resolutions()))
        if abs(sum(totals) - self.total_ns) <= slack:
            return None
        return f"line {self.line}: {self.total_ns:,} ns are printed, the rows make {sum(totals):,} ns"


class Tables:
    """Headers met so far, each with what it remembers of its cells."""

    def __init__(self) -> None:
        self._known: dict[ReportHeader, ReportTable] = {}

    def find(self, text: str) -> ReportTable | None:
        """The table that begins with this line, if it is a header."""
        header = find_header(text)
        if header is None:
            return None
        if header not in self._known:
            if len(self._known) >= 64:
                self._known.clear()
            self._known[header] = ReportTable(header)
        return self._known[header]


class CheckedTotals:
    """Sums over reports whose totals their rows make up."""

    def __init__(self) -> None:
        self._reports = self._rows = self._rows_ns = self._totals_ns = 0
        self._halves = self._squares = 0.0

    def add(self, report: Report) -> None:
        """One more that is closed."""
        if report.total_ns is None or not report.has_checked_total():
            return
        halves = [*filter(None, report.resolutions()), report.total_step_ns]
        self._reports += 1
        self._rows += len(report.labels)
        self._rows_ns += sum(report.column("total_ns"))
        self._totals_ns += report.total_ns
        self._halves += sum(halves)
        self._squares += sum(half * half for half in halves)

    def summed(self) -> PrintedTotals | None:
        """None where there is no such report. What rounding takes is uniform: variance a third of the half's square."""
        if not self._reports:
            return None
        sums = self._reports, self._rows, self._rows_ns, self._totals_ns
        return PrintedTotals(*sums, most_ns=self._halves, alone_ns=math.sqrt(self._squares / 3))


Taken = str
"""What became of a line: `row`, `head` (of the table), `total`, `broken` (a row that can't be read) or `other`."""


def take_line(report: Report, text: str, tables: Tables, *, ended: bool) -> Taken:
    """Give a line without parts to the open report. A row without a line end is broken: it may have been cut."""
    table = report.table
    if table is not None and ended and (row := table.read(text)) is not None:
        label, cells = row
        if label.casefold() == TOTAL:
            at = table.header.columns.index("total_ns")
            report.total_ns, step_ns = cells[at]
            report.total_step_ns = step_ns or 0.0
            report.has_total = True
            return "total"
        report.add(row)
        return "row"
    if is_ruler(text):
        report.end()
        return "head"
    if table is None:
        report.table = tables.find(text) if ended else None
        return "head" if report.table else "other"
    if not ended and report.has_end:  # the total, cut
        return "head"
    if table.is_like_a_row(text) or not ended:
        report.is_whole = False
        return "broken"
    return "other"


def count_losses(report: Report, losses: "Losses") -> None:
    """What is to be reported of a report that is closed."""
    place = f"line {report.line}: {report.title.text}"
    if not report.has_total:
        losses.count("truncated_report", category="totals", example=place)
    if words := report.disagreement():
        losses.count("total_disagrees", category="totals", example=words)
    columns = [report.column(name) for name in STATISTICS]
    if any(None in column for column in columns):
        not_finite = sum(cell == NOT_FINITE for row in report.cells for cell in row)
        losses.count("not_finite", not_finite, category="totals", example=place)
