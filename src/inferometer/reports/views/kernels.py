"""The kernel table, a section of printed sums each its own."""

from collections.abc import Iterable, Sequence

import polars as pl

from inferometer.analyses.tables.kernel_remarks import tell_printed_sums, tell_whole_graphs
from inferometer.analyses.tables.kernels import KernelTable
from inferometer.names.short_names import readable_type
from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.layout import Field, Section
from inferometer.reports.views.statistics import statistics_fields
from inferometer.reports.views.view import View
from inferometer.units import format_share

_FIELDS = statistics_fields("Instances", Field("kernel", "Name", "kernel", leads=True))
_KIND = Field("kind", "Kind", "text")


def _sections(table: KernelTable) -> Sequence[Section]:
    tables = [Section(title_of(each), fields_of(each), _frame_of(each)) for each in (table, *table.others)]
    if table.counted is None:
        return tables
    from inferometer.reports.views.measured_counters import kernel_counter_sections

    return [*tables, *kernel_counter_sections(table.counted)]


def _frame_of(table: KernelTable) -> pl.DataFrame:
    """The rows, with types of numbers as people read them."""
    if table.by != "dtype":
        return table.frame
    types = [name and readable_type(name) for name in table.frame["kernel"]]
    return table.frame.with_columns(pl.Series("kernel", types, dtype=pl.String))


def title_of(table: KernelTable) -> str:
    """The heading; it names the section where there are several, or another than the first was asked for."""
    return f"Kernels, section {table.section}" if table.others or table.section else "Kernels"


def fields_of(table: KernelTable) -> Sequence[Field]:
    """The columns to show."""
    last = _FIELDS[-1] if table.by == "name" else Field("kernel", table.by.capitalize(), "name", leads=True)
    return (*_FIELDS[:-1], *([_KIND] if table.with_copies else []), last)


def _remarks(table: KernelTable) -> Sequence[str]:
    if table.kernels == 0:
        return [table.why_none, *tell_whole_graphs(table), *table.notes]
    remarks = [*_what_is_shown(table), *tell_whole_graphs(table), *tell_printed_sums(table)]
    if table.counted is None:
        return remarks
    from inferometer.reports.views.measured_counters import say_counters

    return [*remarks, *say_counters(table.counted.account)]


def _what_is_shown(table: KernelTable) -> Iterable[str]:
    if table.frame.height < table.kernels:
        share = table.shown_ns / table.total_ns if table.total_ns else 0.0
        what = "kernel and copy time" if table.with_copies else "kernel time"
        yield f"{table.frame.height:,} of {table.kernels:,} rows shown, {format_share(share)} of the {what}."


def _exact(table: KernelTable) -> Section:
    return Section(title_of(table), fields_of(table), table.frame)


VIEW = View(schema=Schema("kernels", 1), sections=_sections, remarks=_remarks, table=_exact)
