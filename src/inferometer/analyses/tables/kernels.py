"""The kernel table: time, launches and statistics of each kernel, as Nsight Systems prints it.

Sums, counts and extremes are exact integers; the deviation is the sample's (n - 1), 0 for a single launch as Nsight has
it. Shares are of all device time selected, before `match` and `top` pick the rows to show.

Where a trace has no launches but sums that its source printed (`totals`), the table shows these, row by row as printed.
Their sections are tables of their own, each with its own total: they may count the same time and are never added up.
A section that the source printed step by step is one table, since its steps follow each other: their sums are added.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import msgspec
import polars as pl
from msgspec import to_builtins

from inferometer.analyses.absent_work import say_why_none
from inferometer.analyses.labels import By, label_names, relabel
from inferometer.analyses.result import Result
from inferometer.analyses.rows import (
    STATISTICS,
    SortKey,
    compile_match,
    duration_statistics,
    match_as_json,
    matching,
    matching_kernels,
    ordered,
    sort_column,
)
from inferometer.analyses.selection import Selection
from inferometer.errors import InputError, UnknownName
from inferometer.names import decode
from inferometer.trace.facts import PrintedTotals
from inferometer.trace.losses import Losses
from inferometer.trace.trace import Trace

if TYPE_CHECKING:
    from inferometer.analyses.counters.kernels import KernelCounters

Basis = Literal["launches", "totals"]
_COLUMNS = (*STATISTICS, "kernel")


@dataclass(frozen=True)
class KernelTable(Result):
    """One row per kernel: `share` (0 to 1), `total_ns`, `count`, `mean_ns`, …, `kernel`; `kind` where copies are in.

    `total_ns` is the sum over everything selected; `shown_ns` over the rows of `frame`. `basis` says what the rows were
    made from. `whole_graphs` counts graph launches that were recorded as one piece: their kernels are not in the table.
    `notes` are the trace's and `why_none` a sentence, for a table without rows. `steps`: how many steps a section was
    printed in, 0 for one sum.
    From totals, a statistic that was not printed is null, `frame` has `resolution_ns` too, and `others` are
    the tables of the other sections. `printed`: what the source's own totals of all rows come to; None: unknown.
    """

    view: ClassVar[str] = "kernels"
    source: str
    frame: pl.DataFrame
    total_ns: int
    shown_ns: int
    kernels: int
    losses: Losses
    with_copies: bool = False
    basis: Basis = "launches"
    by: By = "name"
    section: int | None = None
    others: "tuple[KernelTable, ...]" = ()
    whole_graphs: int = 0
    whole_graphs_ns: int = 0
    notes: tuple[str, ...] = ()
    steps: int = 0
    printed: PrintedTotals | None = None
    why_none: str = "No kernels in the file."
    match: str | None = None
    counted: "KernelCounters | None" = None

    def to_polars(self) -> pl.DataFrame:
        """The rows shown, of the first section."""
        return self.frame

    def as_json(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "basis": self.basis,
            "by": self.by,
            "match": match_as_json(self.match, *(("kernel", "short") if self.by == "name" else (self.by,))),
            "whole_graphs": {"count": self.whole_graphs, "total_ns": self.whole_graphs_ns},
            **self._table_as_json(),
            **({} if self.printed is None else {"printed_totals": to_builtins(self.printed)}),
            **({} if self.counted is None else {"counters": self.counted.as_json()}),
            "other_sections": [table._table_as_json() for table in self.others],
            "losses": self.losses.as_dict(),
        }

    def _table_as_json(self) -> dict[str, Any]:
        columns = [*STATISTICS, *(["kind"] if self.with_copies else [])]
        columns += ["resolution_ns"] if self.basis == "totals" else []
        key = "kernel" if self.by == "name" else self.by
        rows = self.frame.select(pl.col("kernel").alias(key), *columns).to_dicts()
        if self.by == "name":
            rows = [{**row, "short": decode(row["kernel"]).short_name} for row in rows]
        return {
            "section": self.section,
            "total_ns": self.total_ns,
            "shown_ns": self.shown_ns,
            "kernels": self.kernels,
            "rows": rows,
        }


class _Show(msgspec.Struct, frozen=True):
    """Which rows to show, in what order, under which names."""

    sort: SortKey
    top: int | None
    match: str | None
    raw: bool
    by: By

    def rows(self, frame: pl.DataFrame, then: Sequence[str]) -> pl.DataFrame:
        """The rows of `frame` that were asked for."""
        pattern = compile_match(self.match)
        found = matching_kernels(frame, pattern) if self.by == "name" else matching(frame, "kernel", pattern)
        return ordered(found, *dict.fromkeys((sort_column(self.sort, "kernel"), *then)), top=self.top)


def kernel_table(
    trace: Trace,
    selection: Selection | None = None,
    *,
    sort: SortKey = "total",
    top: int | None = None,
    match: str | None = None,
    raw: bool = False,
    copies: bool = False,
    section: int | None = None,
    by: By = "name",
    counters: Trace | None = None,
) -> KernelTable:
    """Time by kernel, from `launches`, or from `totals` where there are no launches.

    Args:
        trace: Needs `launches` or `totals`; with both, either may be empty.
        selection: Which launches count; all by default.
        sort: Largest first; by `name` from A to Z. Equal rows are ordered by name.
        top: Show so many rows.
        match: Show kernels whose name, or whose short name, this regular expression finds; upper and lower case count.
        raw: Names as in the file; otherwise C++ names are demangled, which may join rows of launches.
        copies: Memory copies and sets as rows of their own.
        section: Show this section of `totals` alone.
        by: What makes a row: the name, or what it says. `match` then searches the labels. Of joined sums, the median
            and the deviation are null, since sums don't show them.
        counters: What was counted of the same kernels, with `counters.join.NEEDED`: by name, of launches only.

    Raises:
        InputError: `match` is no regular expression, the selection names something that is not there, or the source
            holds sums only and a selection (other than of a rank), `copies` or `counters` asks for launches; or
            `counters` holds none that are read.
        UnknownName: There is no such section.
    """
    show = _Show(sort, top, match, raw, by)
    compile_match(match)
    if basis_of(trace) == "totals":
        _refuse_selection(trace, selection or Selection(), copies=copies, counters=counters)
        return _from_totals(trace, show, section, rank=None if selection is None else selection.rank)
    if section is not None:
        raise UnknownName("section", str(section), [])
    table = _from_launches(trace, selection or Selection(), show, copies=copies)
    return table if counters is None else _with_counters(table, trace, selection or Selection(), show, counters)


def basis_of(trace: Trace) -> Basis:
    """What shows the kernel time: launches where there are any, else totals where there are any."""
    read = [table for table in ("launches", "totals") if table in trace.scope]
    for table in read:
        if trace.tables[table].select(pl.len()).collect().item():
            return "totals" if table == "totals" else "launches"
    return "totals" if read == ["totals"] else "launches"


def _from_launches(trace: Trace, selection: Selection, show: _Show, *, copies: bool) -> KernelTable:
    launches = selection.apply(trace, compact=True)
    rows = _sums(launches, show)
    graphs = rows.filter(pl.col("kind") == "graph")
    rows = rows if copies else rows.filter(pl.col("kind") == "kernel")
    total_ns = int(rows["total_ns"].sum())
    shown = show.rows(_with_shares(rows, total_ns), ("kernel", "kind"))
    return KernelTable(
        source=trace.facts.source,
        frame=shown.select(*_COLUMNS, "kind") if copies else shown.select(_COLUMNS),
        total_ns=total_ns,
        shown_ns=int(shown["total_ns"].sum()),
        kernels=rows.height,
        losses=trace.losses,
        with_copies=copies,
        by=show.by,
        match=show.match,
        whole_graphs=0 if copies else int(graphs["count"].sum()),
        whole_graphs_ns=0 if copies else int(graphs["total_ns"].sum()),
        notes=trace.facts.notes,
        why_none="" if rows.height else say_why_none(trace, "launches" if copies else "kernels"),
    )


def _with_counters(table: KernelTable, trace: Trace, selection: Selection, show: _Show, counters: Trace) -> KernelTable:
    """Next to it what was counted, and what both files lost."""
    from inferometer.analyses.counters.join import losses_of_both
    from inferometer.analyses.counters.kernels import kernel_counters

    launches = selection.apply(trace, compact=True)
    names = launches.select(pl.col("kernel").cast(pl.String).unique()).collect().to_series()
    found = kernel_counters(launches, label_names(names, show.by, raw=show.raw), counters)
    return replace(table, counted=found, losses=losses_of_both(trace.losses, counters))


def _sums(launches: pl.LazyFrame, show: _Show) -> pl.DataFrame:
    """Statistics of each kind and label. Names are labelled once each; medians need the launches of joined names."""
    rows = _sums_by_kernel(launches)
    labels = label_names(rows["kernel"], show.by, raw=show.raw)
    labelled = rows.with_columns(pl.col("kernel").replace(labels))
    if labelled.select("kind", "kernel").is_unique().all():
        return labelled
    return _sums_by_kernel(relabel(launches, labels))


def _sums_by_kernel(launches: pl.LazyFrame) -> pl.DataFrame:
    kinds = launches.select(pl.col("kind").unique().sort()).collect()["kind"].cast(pl.String).to_list()
    sums = [  # a key of several columns would take twice the memory
        launches.filter(pl.col("kind") == kind)
        .group_by("kernel")
        .agg(duration_statistics())
        .select(pl.lit(kind).alias("kind"), pl.col("kernel").cast(pl.String), pl.exclude("kernel"))
        for kind in kinds or ["kernel"]
    ]
    return pl.concat(pl.collect_all(sums))


def _from_totals(trace: Trace, show: _Show, section: int | None, *, rank: int | None) -> KernelTable:
    """The first section, or the one asked for; the others next to it."""
    found = trace.totals
    if rank is not None:
        ranks = found.select(pl.col("rank").unique()).collect().to_series().drop_nulls().sort()
        if rank not in ranks:
            raise UnknownName("rank", str(rank), map(str, ranks))
        found = found.filter(pl.col("rank") == rank)
    rows = _labelled_totals(found, show).select("section", *_COLUMNS[1:], "resolution_ns")
    steps = dict(found.group_by("section").agg(pl.col("step").drop_nulls().n_unique()).collect().iter_rows())
    numbers = rows["section"].unique().sort().to_list()
    if section is not None and section not in numbers:
        raise UnknownName("section", str(section), map(str, numbers))
    parts = rows.partition_by("section", as_dict=True, maintain_order=True)
    tables = [
        replace(_section_table(trace, parts[number,], number, show), steps=steps[number])
        for number in numbers
        if section in (None, number)
    ] or [_section_table(trace, rows, None, show)]
    return replace(tables[0], others=tuple(tables[1:]), printed=_printed(trace, tables[0]))


def _printed(trace: Trace, table: KernelTable) -> PrintedTotals | None:
    """Where it is of the same rows."""
    printed = trace.facts.printed_totals
    return printed if printed is not None and printed.rows_ns == table.total_ns else None


def _section_table(trace: Trace, rows: pl.DataFrame, section: int | None, show: _Show) -> KernelTable:
    total_ns = int(rows["total_ns"].sum())
    shown = show.rows(_with_shares(rows, total_ns), ("kernel",))
    return KernelTable(
        source=trace.facts.source,
        frame=shown.select(*_COLUMNS, "resolution_ns"),
        total_ns=total_ns,
        shown_ns=int(shown["total_ns"].sum()),
        kernels=rows.height,
        losses=trace.losses,
        basis="totals",
        by=show.by,
        match=show.match,
        section=section,
    )


def _with_shares(rows: pl.DataFrame, total_ns: int) -> pl.DataFrame:
    total = pl.col("total_ns")
    return rows.with_columns((total / total_ns if total_ns else total * 0.0).alias("share"))


def _refuse_selection(trace: Trace, selection: Selection, *, copies: bool, counters: Trace | None) -> None:
    asked = {
        "device": selection.device,
        "stream": selection.stream,
        "between": selection.between_ns,
        "memory": copies or None,
        "counters": None if counters is None else True,
    }
    for name, value in asked.items():
        if value is not None:
            raise InputError(
                f"{trace.facts.source}: expected single launches for the selection by {name}, "
                "found only sums by kernel",
                hint="Leave the selection out, or give the profile that the sums were made from.",
            )


def _labelled_totals(totals: pl.LazyFrame, show: _Show) -> pl.DataFrame:
    """Rows as printed under their names, or joined within their sections: over steps, and by what their names say."""
    rows = totals.collect()
    label = pl.col("kernel").replace(label_names(rows["kernel"].unique(), show.by, raw=show.raw))
    if show.by in ("layer", "role"):  # some sources say these next to the name
        label = pl.coalesce(show.by, label)
    rows = rows.with_columns(label.alias("kernel"))
    if show.by == "name" and rows["step"].is_null().all():
        return rows
    whole = [
        pl.when(pl.col(column).null_count() == 0).then(pl.col(column).sum()).alias(column)
        for column in ("count", "total_ns", "resolution_ns")
    ]
    alone = [pl.when(pl.len() == 1).then(pl.col(column).first()).alias(column) for column in ("median_ns", "stddev_ns")]
    joined = rows.group_by("section", "kernel", maintain_order=True).agg(
        *whole, *alone, pl.col("min_ns").min(), pl.col("max_ns").max()
    )
    return joined.with_columns((pl.col("total_ns") / pl.col("count")).alias("mean_ns"))
