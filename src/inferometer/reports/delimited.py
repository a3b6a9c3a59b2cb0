"""A result's main table as CSV or TSV with exact numbers: times in ns, shares in percent, as `nsys stats` exports them.

Text is guarded against spreadsheets (`inferometer.spreadsheets`), and hidden characters are shown: JSON has it exactly.
"""

import csv
from types import SimpleNamespace
from typing import Any

from inferometer.analyses.result import Result
from inferometer.errors import show_hidden
from inferometer.reports.views.layout import Field
from inferometer.reports.views.view import table_of
from inferometer.spreadsheets import guard

_UNITS = {"ns": " (ns)", "share": " (%)", "bytes": " (bytes)"}


def render_csv(result: Result) -> str:
    """Comma separated, quoted where needed (RFC 4180), with a header."""
    return _render(result, ",")


def render_tsv(result: Result) -> str:
    """Tab separated, with a header."""
    return _render(result, "\t")


def _render(result: Result, delimiter: str) -> str:
    section, lines = table_of(result), list[str]()
    # The line ending of RFC 4180 makes the writer quote both of its characters; the file has the shorter one.
    writer = csv.writer(SimpleNamespace(write=lines.append), delimiter=delimiter, lineterminator="\r\n")
    writer.writerow(field.title + _UNITS.get(field.kind, "") for field in section.fields)
    for row in section.frame.iter_rows(named=True):
        writer.writerow(_cell(field, row[field.column]) for field in section.fields)
    return "".join(line.removesuffix("\r\n") + "\n" for line in lines)


def _cell(field: Field, value: Any) -> Any:
    if value is None:
        return ""
    if field.kind == "share":
        return value * 100
    return guard(show_hidden(value)) if isinstance(value, str) else value
