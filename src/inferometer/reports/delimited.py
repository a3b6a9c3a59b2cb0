"""A result's main table as CSV or TSV with exact numbers: times in ns, shares in percent, as `nsys stats` exports them.

Spreadsheets run cells that begin with = + - @ as formulas; a text cell that does gets a quote in front. So does one
that begins with such a quote itself, so that taking one away always gives the text back.
"""

import csv
import re
from types import SimpleNamespace
from typing import Any

from inferometer.analyses.result import Result
from inferometer.reports.views.layout import Field
from inferometer.reports.views.view import table_of

_UNITS = {"ns": " (ns)", "share": " (%)", "bytes": " (bytes)"}
_FORMULA = re.compile(r"'*[=+\-@\t\r]")


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
    if isinstance(value, str) and _FORMULA.match(value):
        return "'" + value
    return value
