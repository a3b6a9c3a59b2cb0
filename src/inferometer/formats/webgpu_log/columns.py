"""Rows of `log` and `totals` on their way to the trace: column by column, handed over in batches."""

from typing import TYPE_CHECKING, Any

import msgspec

from inferometer.formats.webgpu_log.lines import Parts
from inferometer.formats.webgpu_log.reports import Report, count_losses
from inferometer.formats.webgpu_log.tables import STATISTICS
from inferometer.names.engine_labels import layer_of_label, role_of_label

if TYPE_CHECKING:
    from inferometer.trace.builder import TraceBuilder

DEVICE = "webgpu:0"
_BATCH_ROWS = 50_000
_REMEMBERED = 65_536
_LONGEST_TITLE = 200  # characters of an example

Place = tuple[str | None, str | None]


class LogColumns:
    """Lines that wait to be handed over."""

    def __init__(self, out: "TraceBuilder") -> None:
        self._out = out
        self._wanted = out.wants("log")
        self._columns: dict[str, list[Any]] = {}
        self._begin()

    def add(self, number: int, text: str, kind: str | None, parts: Parts | None, fields: dict[str, Any]) -> None:
        """One line."""
        if not self._wanted:
            return
        level, source, time_ns = (parts.level, parts.module, parts.time_ns) if parts else (None, None, None)
        json = msgspec.json.encode(fields).decode() if fields else None
        values = (number, time_ns, level, source, kind, text, json)
        for column, value in zip(self._columns.values(), values, strict=True):
            column.append(value)
        if len(self._columns["line"]) >= _BATCH_ROWS:
            self.flush()

    def flush(self) -> None:
        """Hand over."""
        rows = len(self._columns["line"])
        if self._wanted:
            self._out.losses.see("log", rows)
        self._out.add("log", rows, self._columns)
        self._begin()

    def _begin(self) -> None:
        self._columns = {name: [] for name in ("line", "time_ns", "level", "source", "kind", "text", "fields")}


class TotalsColumns:
    """Rows of reports that wait to be handed over."""

    def __init__(self, out: "TraceBuilder") -> None:
        self._out = out
        self._wanted = out.wants("totals")
        self._places: dict[str, Place] = {}
        self._unknown: set[str] = set()
        self._statistics: tuple[str, ...] = ()
        self._columns: dict[str, list[Any]] = {}
        self._begin(())

    def add(self, section: int, step: int, report: Report) -> None:
        """The rows of a report that is closed, and its losses."""
        if not self._wanted:
            return
        known = report.table.header.columns if report.table else ()
        statistics = tuple(name for name in STATISTICS if name in known)
        if len(self._columns["kernel"]) >= _BATCH_ROWS or statistics != self._statistics:
            self.flush()
            self._begin(statistics)
        columns, labels = self._columns, report.labels
        columns["section"] += [section] * len(labels)
        columns["step"] += [step] * len(labels)
        columns["kernel"] += labels
        places = [self._places.get(label) or self._find_place(label) for label in labels]
        columns["layer"] += [layer for layer, _ in places]
        columns["role"] += [role for _, role in places]
        columns["resolution_ns"] += report.resolutions()
        for name in statistics:
            columns[name] += report.column(name)
        count_losses(report, self._out.losses)
        self._count_columns(report)

    def flush(self) -> None:
        """Hand over."""
        rows = len(self._columns["kernel"])
        if self._wanted:
            self._out.losses.see("totals", rows)
        self._out.add("totals", rows, {**self._columns, "device": DEVICE})
        self._begin(self._statistics)

    def _find_place(self, label: str) -> Place:
        """Layer and role, as the label has them."""
        if len(self._places) >= _REMEMBERED:
            self._places.clear()
        layer = layer_of_label(label)
        self._places[label] = place = None if layer is None else str(layer), role_of_label(label)
        return place

    def _count_columns(self, report: Report) -> None:
        """Columns without a place in the trace, once a title."""
        header = report.table.header if report.table else None
        for title, column in zip(header.titles, header.columns, strict=True) if header else ():
            if column is None and title not in self._unknown:
                self._unknown.add(title)
                example = f"line {report.line}: {title[:_LONGEST_TITLE]}"
                self._out.losses.count("unknown_column", category="totals", example=example)

    def _begin(self, statistics: tuple[str, ...]) -> None:
        self._statistics = statistics
        names = ("section", "step", "kernel", "layer", "role", *statistics, "resolution_ns")
        self._columns = {name: [] for name in names}
