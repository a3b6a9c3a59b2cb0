"""A recording that still goes on: its last steps, and its counters as they come. Served by `guarded.py`.

A recording is a store, or a folder with one for each process; all are on one clock. What is read again each second are
the steps and the counters alone.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from inferometer.errors import FormatError, InputError
from inferometer.trace.store import read_store
from inferometer.trace.trace import Trace

MOST_POINTS = 300  # of one metric, and of steps, the first time
_READ = frozenset({"steps", "counters"})
_SECOND = 1e9


def look(stores: Sequence[str], since: float) -> dict[str, Any]:
    """What came after `since`, in seconds of the recording's clock; below 0: the last `MOST_POINTS` of each.

    Raises:
        FormatError: None of the stores can be read.
    """
    traces = _opened(stores)
    steps = pl.concat([trace.steps for trace in traces]).drop_nulls(["start_ns", "dur_ns"]).sort("start_ns").collect()
    counters = pl.concat([trace.counters for trace in traces]).drop_nulls("value").sort("time_ns").collect()
    ends = [*(steps["start_ns"] + steps["dur_ns"]).tail(1), *counters["time_ns"].tail(1)]
    begins = [*steps["start_ns"].head(1), *counters["time_ns"].head(1)]
    return {
        "is_finished": all(trace.facts.recorded.get("finished", True) for trace in traces),
        "model": next((trace.facts.model for trace in traces if trace.facts.model), None),
        "devices": [*dict.fromkeys(each.name for trace in traces for each in trace.facts.devices if each.name)],
        "processes": len(stores),
        "now": max(ends, default=0) / _SECOND,
        "seconds": (max(ends) - min(begins)) / _SECOND if ends else 0.0,
        "steps": steps.height,
        "step_ns": _median(steps),
        "new_steps": _new_steps(steps, since),
        "metrics": _metrics(counters, since),
    }


def _opened(stores: Sequence[str]) -> list[Trace]:
    """Those that can be read: a process that has just begun may have written nothing yet."""
    traces, last = [], None
    for store in stores:
        try:
            traces.append(read_store(Path(store), _READ))
        except InputError as error:
            last = error
    if not traces:
        raise last or FormatError("the recording has no parts yet")
    return traces


def _median(steps: pl.DataFrame) -> float | None:
    median = steps["dur_ns"].tail(MOST_POINTS).median()
    return float(median) if isinstance(median, int | float) else None


def _new_steps(steps: pl.DataFrame, since: float) -> list[tuple[float, int, str | None]]:
    """End in seconds, duration in ns, phase."""
    ended = steps.with_columns((pl.col("start_ns") + pl.col("dur_ns")).alias("end_ns"))
    new = ended.tail(MOST_POINTS) if since < 0 else ended.filter(pl.col("end_ns") > round(since * _SECOND))
    rows = new.tail(MOST_POINTS).select(pl.col("end_ns") / _SECOND, "dur_ns", "phase")
    return [*rows.iter_rows()]


def _metrics(counters: pl.DataFrame, since: float) -> list[dict[str, Any]]:
    """Each metric of each device, with its new points and its last value."""
    by = ["metric", "device", "unit"]
    found = []
    for (metric, device, unit), rows in counters.group_by(by, maintain_order=True):
        new = rows if since < 0 else rows.filter(pl.col("time_ns") > round(since * _SECOND))
        points = new.tail(MOST_POINTS).select(pl.col("time_ns") / _SECOND, "value")
        found.append({"metric": metric, "device": device, "unit": unit, "points": [*points.iter_rows()]})
    return found


def is_one(folder: str) -> bool:
    """Whether a format takes a folder as one profile."""
    from inferometer.formats.base import is_one_profile
    from inferometer.formats.source import Source

    return is_one_profile(Source(folder))


SERVED: Mapping[str, Callable[..., Any]] = {"look": look, "is_one": is_one}
