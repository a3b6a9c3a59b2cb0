"""Device time of each call path, from a trace whose spans of the domain `call paths` are the calls of paths.

A path's device work is what was launched while one of its calls ran on that thread, so a caller has its callees'. Its
busy time is the union of that on each device, wherever and whenever it ran there.
"""

import polars as pl

from inferometer.analyses.named_ranges import called_work, with_numbers
from inferometer.analyses.tables.projection import project
from inferometer.engines.paths import SEPARATOR
from inferometer.trace.trace import Trace

DOMAIN = "call paths"
NEEDED = frozenset({"spans", "calls", "launches"})
DEVICE_TIME = {"path": pl.String, "device_busy_ns": pl.Int64, "span_ns": pl.Int64, "kernels": pl.Int64}
_THREAD = ["rank", "process", "thread"]


def device_time(trace: Trace) -> pl.DataFrame:
    """A row per path, in the order of first calls; none at all where no device work has a host call in the trace.

    Args:
        trace: Needs the tables `NEEDED`.

    Returns:
        `path`, `device_busy_ns`, `span_ns` (from the first start to the last end of what one call launched, summed over
        calls) and `kernels`: launches, copies and sets among them. All 0 of a path that launched nothing.
    """
    work = called_work(trace.launches, trace.calls).filter(pl.col("called_ns").is_not_null())
    if work.is_empty():
        return pl.DataFrame(schema=DEVICE_TIME)
    calls = (
        trace.spans.filter((pl.col("domain") == DOMAIN) & (pl.col("dur_ns") > 0))
        .select("span", *_THREAD, "start_ns", "dur_ns")
        .collect()
        .sort(*_THREAD, "start_ns", "dur_ns", descending=[False] * 4 + [True], nulls_last=True, maintain_order=True)
    )
    keys = pl.Series("path", _keys(calls), dtype=pl.String)
    names = pl.DataFrame({"path": keys.unique(maintain_order=True)}).with_row_index("name")
    names = names.with_columns(pl.col("name").cast(pl.Int64))
    ranges = calls.with_columns(keys).join(names, on="path", maintain_order="left")
    _, queued = project(*with_numbers(ranges.select("name", *_THREAD, "start_ns", "dur_ns"), work))
    found = names.join(queued, on="name", how="left", maintain_order="left")
    numbers = {"device_busy_ns": "busy_ns", "span_ns": "projected_ns", "kernels": "launches"}
    return found.select("path", **{name: pl.col(of).fill_null(0).cast(pl.Int64) for name, of in numbers.items()})


def _keys(calls: pl.DataFrame) -> list[str]:
    """The path of each call: its name below that of the call around it on its thread."""
    keys: list[str] = []
    opened: list[tuple[str, int]] = []
    lane: tuple[object, ...] | None = None
    for name, *where, start_ns, dur_ns in calls.iter_rows():
        if lane != (lane := tuple(where)):
            opened = []
        while opened and opened[-1][1] <= start_ns:
            opened.pop()
        key = f"{opened[-1][0]}{SEPARATOR}{name}" if opened else name
        opened.append((key, start_ns + dur_ns))
        keys.append(key)
    return keys
