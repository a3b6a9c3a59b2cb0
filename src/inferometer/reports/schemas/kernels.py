"""`kernels`: time by kernel, or by what the names of kernels say."""

from typing import Annotated

from msgspec import UNSET, UnsetType

from inferometer.reports.schemas.fields import (
    Basis,
    Losses,
    Match,
    Part,
    PrintedStatistics,
    SchemaMark,
    Section,
    Source,
    TotalNs,
    says,
)
from inferometer.reports.schemas.joined_counters import CountedKernels
from inferometer.trace.facts import PrintedTotals


class KernelRow(PrintedStatistics):
    """One kernel, or all kernels of which the name shows the same; what `by` says is its key.

    That is null in the row of kernels whose name doesn't show it.
    """

    kernel: Annotated[str | UnsetType, says("With `by` name: the kernel's name.")] = UNSET
    short: Annotated[str | UnsetType | None, says("With `by` name or short: the short name.")] = UNSET
    family: Annotated[str | UnsetType | None, says("With `by` family: the kind of work.")] = UNSET
    library: Annotated[str | UnsetType | None, says("With `by` library: where the kernel is from.")] = UNSET
    dtype: Annotated[str | UnsetType | None, says("With `by` dtype: the type of the data.")] = UNSET
    tile: Annotated[str | UnsetType | None, says("With `by` tile: the tile's size.")] = UNSET
    layer: Annotated[str | UnsetType | None, says("With `by` layer: the layer that a label names.")] = UNSET
    role: Annotated[str | UnsetType | None, says("With `by` role: the part of the model that a label names.")] = UNSET
    kind: Annotated[str | UnsetType, says("With `--memory`: `kernel`, `memcpy` or `memset`.")] = UNSET
    resolution_ns: Annotated[float | UnsetType | None, says("Of printed sums: the step they are rounded to, ns.")] = (
        UNSET
    )


class WholeGraphs(Part):
    """Launches of graphs that were recorded as one piece: their kernels aren't in the table."""

    count: Annotated[int, says("Launches of graphs.")]
    total_ns: TotalNs


class KernelTable(Part):
    """One table: that of all launches, or one section of printed sums."""

    section: Section
    total_ns: Annotated[int, says("Sum of all that was selected, ns.")]
    shown_ns: Annotated[int, says("Sum of the rows, ns.")]
    kernels: Annotated[int, says("Rows before `--top` and `--match`.")]
    rows: Annotated[list[KernelRow], says("In the order that was asked for.")]


class Kernels(KernelTable, kw_only=True):
    """Time by kernel."""

    schema: SchemaMark
    source: Source
    basis: Basis
    by: Annotated[
        str, says("What makes a row: `name`, `short`, `family`, `library`, `dtype`, `tile`, `layer`, `role`.")
    ]
    match: Match
    whole_graphs: WholeGraphs
    printed_totals: Annotated[
        PrintedTotals | UnsetType, says("The source's own totals next to what the rows make, where it prints some.")
    ] = UNSET
    counters: Annotated[CountedKernels | UnsetType, says("With `--counters`: what was counted of kernels.")] = UNSET
    other_sections: Annotated[list[KernelTable], says("Tables of the source's other sections; never to be added up.")]
    losses: Losses


DOCUMENT = Kernels
