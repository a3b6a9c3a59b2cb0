"""A result for the terminal: facts, tables, remarks, losses. Names are cut to the width only where a person looks on.

Text from files is printed without control characters, so that a hostile name can't drive the terminal.
"""

import re
from typing import TextIO

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from inferometer.analyses.result import Result, Section
from inferometer.reports.base import cell, is_right, loss_lines, scope_line

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_PIPE_WIDTH = 10_000


def print_result(result: Result, file: TextIO) -> None:
    """Write it to `file`, in color where that is a terminal and NO_COLOR is not set."""
    console = Console(file=file, highlight=False, soft_wrap=False, width=None if file.isatty() else _PIPE_WIDTH)
    for label, text in result.facts():
        console.print(Text.assemble((f"{label:<10}", "bold"), clean(text)), soft_wrap=True)
    for section in result.sections():
        console.print()
        if section.frame.is_empty():
            console.print(Text(f"{section.title}: none"))
            continue
        _print_section(section, console, fold=file.isatty())
    if result.remarks():
        console.print()
        for remark in result.remarks():
            console.print(Text(f"• {clean(remark)}"), soft_wrap=not file.isatty())
    lines = [*loss_lines(result.losses), *filter(None, [scope_line(result.losses)])]
    if lines:
        console.print()
    for line in lines:
        style = "red" if line.startswith("error") else "yellow" if line.startswith("warning") else "dim"
        console.print(Text(clean(line), style=style), soft_wrap=not file.isatty())


def _print_section(section: Section, console: Console, *, fold: bool) -> None:
    table = Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        title=section.title,
        title_justify="left",
        title_style="bold",
        pad_edge=False,
    )
    for field in section.fields:
        cut = fold and field.kind == "name"
        table.add_column(
            field.title,
            justify="right" if is_right(field) else "left",
            no_wrap=True,
            overflow="ellipsis" if cut else "ignore",
            min_width=12 if cut else None,
        )
    for row in section.frame.iter_rows(named=True):
        table.add_row(*(Text(clean(cell(field, row[field.column]))) for field in section.fields))
    console.print(table)
    for note in section.notes:
        console.print(Text(clean(note)))


def clean(text: str) -> str:
    """`text` with control and direction characters shown as a space."""
    return _CONTROL.sub(" ", text)
