"""The one component that prints tables: it decides on columns, widths and cuts, and says what it left out.

A kernel's name is shown as what it says, a name that doesn't fit is cut in the middle, a sentence is wrapped and never
cut, and so is no number. Text from files is printed without control characters.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from rich import box
from rich.console import JustifyMethod
from rich.table import Table
from rich.text import Text

from inferometer.errors import clean
from inferometer.reports.base import cell, is_right, shown_fields
from inferometer.reports.screen.screen import Detail, Page
from inferometer.reports.screen.shown_names import cut_middle, cut_names, label_kernels, readable_kernel
from inferometer.reports.screen.widths import SHRINKING, Column, choose_widths, total_width, whole_widths
from inferometer.reports.views.layout import Field, Section

SEVERITY_STYLES: Final = {
    "high": "grave",
    "medium": "notable",
    "low": "mild",
    "info": "dim",
    "error": "grave",
    "warning": "notable",
}


def print_table(section: Section, page: Page) -> None:
    """The heading and the rows of a section that has some, and which columns were left out."""
    fields = _in_order(shown_fields(section), leads=page.detail.fits)
    columns = [_column(field, section, page.detail) for field in fields]
    choose = choose_widths if page.detail.fits else whole_widths
    widths = choose(columns, page.width)
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for column, width in widths.items():
        justify: JustifyMethod = "right" if is_right(column.field) else "left"
        is_wrapped = column.field.kind == "sentence"
        title = cut_middle(column.field.title, width)
        table.add_column(title, justify=justify, width=width, no_wrap=not is_wrapped, overflow="fold")
    for row in zip(*(_cells(column, width) for column, width in widths.items()), strict=True):
        table.add_row(*row)
    page.sentence(section.title, style="bold")
    page.print(table, width=max(page.width, total_width(widths.values())))
    if left_out := [column.field.title for column in columns if column not in widths]:
        page.sentence(f"Too narrow for: {', '.join(left_out)}.", style="dim")


def _in_order(fields: Sequence[Field], *, leads: bool) -> Sequence[Field]:
    """The name of a row in front where the view wants it there, and where it can't push the numbers off the screen."""
    return sorted(fields, key=lambda field: not field.leads) if leads else fields


def _column(field: Field, section: Section, detail: Detail) -> Column:
    values = section.frame[field.column].to_list()
    if field.kind != "kernel":
        return Column(field, values, [clean(cell(field, value)) for value in values])
    where = section.frame[field.kernel_where].to_list() if field.kernel_where else [True] * len(values)
    is_kernel = [value is not None and known for value, known in zip(values, where, strict=True)]
    labels = _kernels([value for value, known in zip(values, is_kernel, strict=True) if known], detail)
    texts = [
        labels[value] if known else clean(cell(field, value)) for value, known in zip(values, is_kernel, strict=True)
    ]
    return Column(field, values, texts)


def _kernels(names: Sequence[str], detail: Detail) -> Mapping[str, str]:
    """By name what is shown of it, before any cut."""
    if detail.fits:
        return label_kernels(names)
    return {name: clean(name if detail.raw else readable_kernel(name)) for name in names}


def _cells(column: Column, width: int) -> Sequence[Text]:
    """The texts of a column in so many columns of the screen."""
    texts, kind = column.texts, column.field.kind
    if kind == "severity":
        return [Text(text, SEVERITY_STYLES.get(text, "")) for text in texts]
    if kind in SHRINKING and kind != "sentence" and width < column.natural:
        shown = cut_names(dict(zip(column.values, texts, strict=True)), width)
        return [Text(shown[value]) for value in column.values]
    return [Text(text) for text in texts]
