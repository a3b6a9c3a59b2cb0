"""What to know of a kernel table before its numbers are used: the table and the summary both say it."""

from collections.abc import Iterator
from typing import Final

from inferometer.analyses.tables.kernels import KernelTable
from inferometer.trace.facts import PrintedTotals
from inferometer.units import format_duration

_DEVIATIONS: Final = 3.0
_NS_PER_MS: Final = 1e6


def tell_whole_graphs(table: KernelTable) -> Iterator[str]:
    """Graphs that were recorded whole."""
    if table.whole_graphs:
        yield (
            f"{table.whole_graphs:,} graph launches ({format_duration(table.whole_graphs_ns)}) were recorded whole: "
            "their kernels are not in the file. Record with nsys profile --cuda-graph-trace=node."
        )


def tell_printed_sums(table: KernelTable) -> Iterator[str]:
    """What to know of sums that the source printed; nothing of launches."""
    if table.basis == "launches":
        return
    if table.losses.total("profiled_alone"):
        yield (
            "Each launch ran alone under a profiler, as a rule with clocks locked and caches flushed: its time is "
            "never that of a run. inferometer counters FILE has each launch."
        )
        return
    blur_ns = table.frame["resolution_ns"].max()
    to = f", to within {format_duration(blur_ns)}" if isinstance(blur_ns, float) and blur_ns >= 1 else ""
    by_step = f" for each of {table.steps:,} steps, added up here" if table.steps else ""
    yield f"These are sums as the source printed them{by_step}{to}: it holds no single launches."
    if table.printed is not None and table.printed.rows_ns != table.printed.totals_ns:
        yield _tell_rounding(table.printed)
    if table.others:
        yield (
            f"The source has {len(table.others) + 1} tables. They may count the same time, so they are never added "
            "up, and a share is of its own table."
        )


def _tell_rounding(printed: PrintedTotals) -> str:
    """Why rows and totals differ: within what rounding may come to, and more than rows rounded by themselves would."""
    rows, totals, most = (f"{ns / _NS_PER_MS:,.2f} ms" for ns in (printed.rows_ns, printed.totals_ns, printed.most_ns))
    off = abs(printed.totals_ns - printed.rows_ns)
    words = (
        f"The rows add up to {rows} and the totals that the source printed to {totals}: each of {printed.rows:,} rows "
        f"and {printed.reports:,} totals is rounded, which may come to {most}"
    )
    if off <= _DEVIATIONS * printed.alone_ns:
        return f"{words}."
    return (
        f"{words}; were they rounded independently, {format_duration(printed.alone_ns)} would be usual, but much the "
        "same rows come in every report and are rounded alike."
    )
