"""Reads a text with printed kernel tables: rows to `totals`, tracebacks to `call_paths`, every other line to `log`.

A table begins at its header and ends at the first line that is no row of it, or at a blank one that no row follows.
Each table of kernels is a section. Tables of other reports are walked over, so that no row of theirs is taken for a
kernel's.
"""

import re
from typing import TYPE_CHECKING, Any

from inferometer.errors import FormatError
from inferometer.formats.kernel_table.free_text import FreeText
from inferometer.formats.kernel_table.headers import STATISTICS
from inferometer.formats.kernel_table.layouts import TextTable, find_table, is_ruler
from inferometer.formats.kernel_table.rows import Row, is_like_a_row, read_row
from inferometer.formats.kernel_table.tracebacks import find_frame
from inferometer.formats.text_lines import Line, Lines, read_lines, without_ending
from inferometer.trace.facts import Facts

if TYPE_CHECKING:
    from inferometer.formats.source import Source
    from inferometer.trace.builder import TraceBuilder

_REPORT = re.compile(r"\s*\*\* .*\((?P<title>\w+)\):?\s*|Processing \[.*\bwith \[.*?(?P<script>\w+)\.py\b.*")
_OTHER = "other table"
_LONGEST_HEADING = 2_000


def read(source: "Source", out: "TraceBuilder") -> Facts:
    """Read all of it.

    Raises:
        FormatError: No header of a kernel table is in the text.
    """
    reader = _Reader(out)
    with source.open() as stream:
        limits = source.limits
        found = read_lines(stream, out.losses, longest=limits.event_bytes, most=limits.lines, name=source.name)
        lines = Lines(found)
        for line in lines:
            reader.take(line, lines)
    if stream.damage:
        out.losses.count("broken_compression", example=stream.damage)
    reader.finish()
    if not reader.sections:
        raise FormatError(
            f"{source.name}: expected the header of a kernel table (Time, Total Time, Instances, …, Name), "
            f"found none in {reader.lines:,} lines",
            hint="Export it with `nsys stats --report cuda_gpu_kern_sum`.",
        )
    tool = "Nsight Systems" if reader.nsight else None
    return Facts(format="kernel-table", source=source.name, tool=tool, notes=tuple(reader.notes))


class _Reader:
    """Where the reading stands: the open table, what is known of the next one, the text so far."""

    def __init__(self, out: "TraceBuilder") -> None:
        self.out = out
        self.text = FreeText()
        self.sections = self.lines = 0
        self.nsight = False
        self.notes: list[str] = []
        self._names: list[str] = []
        self._table: TextTable | None = None
        self._rows: _Rows | None = None
        self._report: str | None = None
        self._category = _OTHER
        self._after_blank = False

    def take(self, line: Line, more: Lines) -> None:
        """One line, or a record of several."""
        number, text = line[0], without_ending(line[1])
        self.lines = number
        if not text.strip():
            self.text.blank()
            self._after_blank = True
            return
        if table := find_table(text):
            self._begin(table, number, text)
        elif not (self._table and self._take_row(self._table, line, text, more)):
            self._table = None
            self._note_report(text)
            self.text.take(number, text)
        self._after_blank = False

    def finish(self) -> None:
        """Close what is open and hand over all that waited for the end."""
        self._close()
        self.text.end()
        paths = self.text.tracebacks.paths
        nodes, losses = len(paths.frame), self.out.losses
        if self.out.wants("call_paths"):
            losses.see("call_paths", paths.frames)
            losses.count("repeated_frame", paths.frames - nodes, category="call_paths")
            self.out.add("call_paths", nodes, paths.columns())
        if self.out.wants("log"):
            losses.see("log", self.text.rows)
            self.out.add("log", self.text.rows, self.text.columns(self._names))

    def _begin(self, table: TextTable, number: int, text: str) -> None:
        self._close()
        self.text.end()
        report, self._report = self._report, None
        is_kernels = table.header.is_kernels and (report is None or "kern" in report)
        self._table, self._category = table, report or _OTHER
        if is_kernels:
            self._rows = _Rows(self.sections, number, table)
            self.text.add(number, text, "heading", {"section": self.sections})
            self.sections += 1
        else:
            self.text.add(number, text, "heading", {"report": report} if report else {})

    def _take_row(self, table: TextTable, line: Line, text: str, more: Lines) -> bool:
        """Whether the line belongs to the table that is open."""
        if is_ruler(text):
            self._table = table.ruled(text)
            self.text.add(line[0], text, "heading")
            return True
        if find_frame(text):
            return False
        cells, lines = table.cells(line, more)
        row = read_row(table.header, cells)
        is_sure = row is not None and not row.wrong and not self._after_blank
        if not is_sure and ((row is None and self._after_blank) or not is_like_a_row(table.header, cells)):
            more.put_back(lines[1:])
            return False
        self.lines = lines[-1][0]
        self._keep(row, line[0])
        if row is None or self._rows is None or row.kind != "kernel":
            for number, part in lines:
                self.text.add(number, without_ending(part), "row")
        return True

    def _keep(self, row: Row | None, number: int) -> None:
        if self._rows is None:
            self._count("row_of_something_else", self._category, number)
        elif row is None:
            self._rows.is_whole = False
            self._count("unreadable_row", "totals", number)
        elif row.kind != "kernel":
            self._rows.is_whole = False
            self._count("row_of_something_else", "totals", number)
        else:
            if self.out.wants("totals"):
                self.out.losses.see("totals")
            self._rows.add(row, number)

    def _count(self, name: str, category: str, number: int) -> None:
        if self.out.wants("totals"):
            self.out.losses.see(category)
            self.out.losses.count(name, category=category, example=f"line {number}")

    def _close(self) -> None:
        if self._rows:
            self._names += self._rows.kernel
            self.notes += self._rows.notes()
            if self.out.wants("totals"):
                self._rows.hand_over(self.out)
        self._rows = self._table = None

    def _note_report(self, text: str) -> None:
        if len(text) <= _LONGEST_HEADING and (report := _REPORT.fullmatch(text)):
            self._report = report["title"] or report["script"]
            self.nsight = True


class _Rows:
    """The rows of one section, column by column, and what to say of them."""

    def __init__(self, section: int, number: int, table: TextTable) -> None:
        self.section = section
        self.number = number
        self.kernel: list[str] = []
        self.is_whole = True
        self._header = table.header
        self._statistics: dict[str, list[Any]] = {column: [] for column in STATISTICS if column in table.header.columns}
        self._resolution_ns: list[float | None] = []
        self._shares: list[tuple[int, tuple[float, float] | None]] = []
        self._losses: list[tuple[str, str]] = []

    def add(self, row: Row, number: int) -> None:
        self.kernel.append(row.kernel)
        for column, values in self._statistics.items():
            values.append(row.statistics.get(column))
        self._resolution_ns.append(row.resolution_ns)
        self._shares.append((number, row.share))
        self._losses += [("wrong_type", f"line {number}: {title}") for title in row.wrong]
        if row.assumed:
            self._losses.append(("unit_assumed", f"line {number}"))
        if row.kernel.endswith(("…", "...")):
            self._losses.append(("name_cut", f"line {number}"))

    def notes(self) -> list[str]:
        return [] if self.kernel else [f"Section {self.section} (line {self.number}) is a header without rows."]

    def hand_over(self, out: "TraceBuilder") -> None:
        """Rows and losses to the trace."""
        rows = len(self.kernel)
        columns: dict[str, Any] = {"section": self.section, "kernel": self.kernel, **self._statistics}
        out.add("totals", rows, columns | {"resolution_ns": self._resolution_ns})
        for name, example in (*self._losses, *self._disagreements()):
            out.losses.count(name, category="totals", example=example)
        for title, column in zip(self._header.titles, self._header.columns, strict=True):
            if column is None and rows:
                out.losses.count("unknown_column", category="totals", example=f"line {self.number}: {title[:80]}")
        if not rows:
            out.losses.count("empty_table", category="totals", example=f"line {self.number}")

    def _disagreements(self) -> list[tuple[str, str]]:
        """Shares that are printed otherwise than the rows make them: the mark of an excerpt."""
        totals = self._statistics.get("total_ns")
        if not totals or not self.is_whole or None in totals or not (whole := sum(totals)):
            return []
        blur = sum(each or 0.0 for each in self._resolution_ns) / whole
        found = []
        for total_ns, (number, share), resolution_ns in zip(totals, self._shares, self._resolution_ns, strict=True):
            if share is None:
                continue
            percent, step = share
            computed = 100 * total_ns / whole
            slack = step + 100 * (resolution_ns or 0.0) / whole + computed * (blur + 1e-9)
            if abs(percent - computed) > slack:
                words = f"line {number}: {percent:g} % is printed, the rows make {computed:.1f} %"
                found.append(("share_disagrees", words))
        return found
