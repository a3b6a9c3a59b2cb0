"""Launches that are in a file only as host calls: captured into a graph, or their device work was not recorded.

A capture runs nothing: each call names the kernel that it adds to the graph, and ops and frames stand around it as in
an eager run. So a capture shows what a replay of its graph can't: which kernels one call launches together.
"""

import polars as pl

from inferometer.analyses.correlation import CALL_KEY
from inferometer.analyses.selection import Selection
from inferometer.trace.trace import Trace


def has_captured(trace: Trace) -> bool:
    """Whether any call names a kernel: most of those that do were captured."""
    return trace.compact("calls").filter(pl.col("kernel").is_not_null()).head(1).collect().height > 0


def captured_launches(trace: Trace, selection: Selection, *more: str) -> pl.LazyFrame:
    """Calls that name a kernel and queued no device work, in the shape of `launches`, `dur_ns` 0; mostly none.

    Their device is unknown, so a selection by device or stream leaves them out. `more`: further columns of `calls`.
    """
    calls = trace.compact("calls").filter(pl.col("kernel").is_not_null())
    if selection.device is not None or selection.stream is not None:
        calls = calls.clear()
    if selection.rank is not None:
        calls = calls.filter(pl.col("rank") == selection.rank)
    if selection.between_ns:
        first_ns, last_ns = selection.window(trace)
        calls = calls.filter(pl.col("start_ns").is_between(first_ns, last_ns, closed="left"))
    queued = trace.launches.select(CALL_KEY)
    return calls.join(queued, on=CALL_KEY, how="anti", nulls_equal=True).select(
        *("kernel", *CALL_KEY, "thread", "start_ns", *more),
        pl.lit(0, dtype=pl.Int64).alias("dur_ns"),
    )
