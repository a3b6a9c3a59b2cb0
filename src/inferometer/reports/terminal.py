"""A result for the terminal: facts, tables, remarks, losses. Names are cut to the width only where a person looks on.

Text from files is printed without control characters, so that a hostile name can't drive the terminal.
"""

import io
from collections.abc import Mapping, Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from inferometer.analyses.result import Result
from inferometer.errors import clean
from inferometer.reports.base import cell, is_right, loss_lines, scope_line, shown_fields
from inferometer.reports.views.layout import Field, Section
from inferometer.reports.views.view import facts_of, remarks_of, sections_of

_PIPE_WIDTH = 10_000
_NAME_WIDTH = 28  # a name is cut to no less than this before columns are left out
_GAP = 3
_LABEL = 10  # columns for the label of a fact, at least: so that results stand alike


def render_terminal(result: Result, *, is_terminal: bool) -> str:
    """Text as wide as the terminal, in color unless NO_COLOR is set; or, for a pipe, plain text of any width."""
    page = io.StringIO()
    width = None if is_terminal else _PIPE_WIDTH
    console = Console(file=page, highlight=False, force_terminal=is_terminal, width=width)
    _print_all(result, console, fit=is_terminal)
    text = page.getvalue()
    return text if is_terminal else "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def _print_all(result: Result, console: Console, *, fit: bool) -> None:
    facts, remarks = facts_of(result), remarks_of(result)
    width = max((len(label) + 1 for label, _ in facts), default=0)
    for label, text in facts:
        console.print(Text.assemble((f"{label:<{max(width, _LABEL)}}", "bold"), clean(text)), soft_wrap=True)
    for i, section in enumerate(sections_of(result)):
        if i or facts:
            console.print()
        if section.frame.is_empty():
            console.print(Text(f"{section.title}: none"))
            for note in section.notes:
                console.print(Text(clean(note)), soft_wrap=not fit)
        else:
            _print_section(section, console, fit=fit)
    if remarks:
        console.print()
    for remark in remarks:
        console.print(Text(f"• {clean(remark)}"), soft_wrap=not fit)
    lines = [*loss_lines(result.losses), *filter(None, [scope_line(result.losses)])]
    if lines:
        console.print()
    for line in lines:
        style = "red" if line.startswith("error") else "yellow" if line.startswith("warning") else "dim"
        console.print(Text(line, style=style), soft_wrap=not fit)


def _print_section(section: Section, console: Console, *, fit: bool) -> None:
    fields = shown_fields(section)
    cells = {field: [clean(cell(field, value)) for value in section.frame[field.column].to_list()] for field in fields}
    left_out = _leave_out(cells, console.width) if fit else []
    shown = [field for field in fields if field not in left_out]
    widths = {field: max(map(cell_len, (field.title, *cells[field]))) for field in shown}
    if fit:
        _cut_names(widths, console.width)
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, title=section.title)
    table.title_justify, table.title_style = "left", "bold"
    for field, width in widths.items():
        justify: JustifyMethod = "right" if is_right(field) else "left"
        table.add_column(field.title, justify=justify, no_wrap=True, overflow="ellipsis", width=width)
    for row in zip(*(cells[field] for field in shown), strict=True):
        table.add_row(*map(Text, row))
    screen = console.width
    console.width = max(screen, sum(widths.values()) + _GAP * (len(widths) - 1))  # better wrapped than cut
    console.print(table)
    console.width = screen
    if left_out:
        titles = ", ".join(field.title for field in fields if field in left_out)
        console.print(Text(f"Too narrow for: {titles}.", style="dim"))
    for note in section.notes:
        console.print(Text(clean(note)))


def _leave_out(cells: Mapping[Field, Sequence[str]], width: int) -> list[Field]:
    """Columns without which the others fit into `width`."""
    left_out: list[Field] = []
    least = {field: max(map(cell_len, (field.title, *texts))) for field, texts in cells.items()}
    least |= {field: min(n, _NAME_WIDTH) for field, n in least.items() if field.kind == "name"}
    for field in sorted((field for field in cells if field.spare), key=lambda field: -field.spare):
        if sum(least.values()) + _GAP * (len(least) - 1) <= width:
            break
        left_out.append(field)
        del least[field]
    return left_out


def _cut_names(widths: dict[Field, int], width: int) -> None:
    """Give columns of names what the others leave of `width`."""
    names = [field for field in widths if field.kind == "name"]
    rest = width - _GAP * (len(widths) - 1) - sum(n for field, n in widths.items() if field not in names)
    for field in names:
        widths[field] = min(widths[field], max(_NAME_WIDTH, rest // len(names)))
