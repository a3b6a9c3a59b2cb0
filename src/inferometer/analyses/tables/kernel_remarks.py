"""What to know of a kernel table before its numbers are used: the table and the summary both say it."""

from collections.abc import Iterator

from inferometer.analyses.tables.kernels import KernelTable
from inferometer.units import format_duration


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
    blur_ns = table.frame["resolution_ns"].max()
    to = f", to within {format_duration(blur_ns)}" if isinstance(blur_ns, float) and blur_ns >= 1 else ""
    by_step = f" for each of {table.steps:,} steps, added up here" if table.steps else ""
    yield f"These are sums as the source printed them{by_step}{to}: it holds no single launches."
    if table.others:
        yield (
            f"The source has {len(table.others) + 1} tables. They may count the same time, so they are never added "
            "up, and a share is of its own table."
        )
