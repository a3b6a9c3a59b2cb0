"""Counters as lanes: the samples of each metric of a device, host or process, in order of time."""

import polars as pl

from inferometer.analyses.timeline.lanes.events import Samples
from inferometer.trace.trace import Trace

_OF = ("rank", "device", "host", "process")


def find_samples(trace: Trace, origin_ns: int) -> tuple[Samples, ...]:
    """The counters of a trace; none where their table was not read. A sample without a number is left out."""
    if "counters" not in trace.scope:
        return ()
    columns = ("metric", "unit", *_OF, "time_ns", "value")
    rows = trace.counters.select(columns).filter(pl.col("value").is_not_null()).collect()
    keys = ["metric", "unit", *_OF]
    parts = rows.sort(*keys, "time_ns", nulls_last=True, maintain_order=True).partition_by(
        keys, as_dict=True, maintain_order=True
    )
    return tuple(_samples(key, part, origin_ns) for key, part in parts.items())


def _samples(key: tuple[object, ...], rows: pl.DataFrame, origin_ns: int) -> Samples:
    metric, unit, rank, device, host, process = key
    named = (("rank", rank), ("", device), ("", host), ("process", process))
    words = [f"{label} {value}".strip() for label, value in named if value is not None]
    time_ns = rows["time_ns"].to_numpy() - origin_ns
    return Samples("Counters", ", ".join([str(metric), *words]), str(unit or ""), time_ns, rows["value"].to_numpy())
