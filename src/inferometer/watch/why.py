"""Why steps are slow: the time since the onset next to the normal time before it, as `inferometer compare` has it."""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from inferometer.analyses.compare.comparison import NEEDED, compare
from inferometer.analyses.intervals import Times
from inferometer.errors import InputError
from inferometer.trace.tables import TABLES
from inferometer.trace.trace import Trace
from inferometer.watch.cause import Why

__all__ = ["NEEDED", "find_why", "windows_of"]

_NOT_SHOWN = "Compared as two runs, the slow time is not slower."
LONGEST_NS = 10 * 60 * 10**9
"""How much of the normal time before the onset is compared: what was long ago may have had other reasons to differ."""

DATED_WITHIN = 5
"""Steps by which an onset may be dated wrong; most of the labelled pairs are within."""

_TICK_NS = 10**8  # of counters, the shortest that is usual
_LONG = 10  # times the usual time between steps


def find_why(trace: Trace, begin_ns: int, first_ns: int, last_ns: int, end_ns: int) -> Why | None:
    """The cause of the slow steps; None where the two windows hold nothing that could be compared.

    Args:
        trace: Opened with `NEEDED`.
        begin_ns: Where the normal time before the onset begins.
        first_ns: Where the interval begins in which the slow time began: what lies in it belongs to neither window.
        last_ns: Where that interval ends.
        end_ns: Where the slow time ends.
    """
    try:
        found = compare(*windows_of(trace, begin_ns, first_ns, last_ns, end_ns), is_slower=True)
    except InputError:
        return None
    if found.outcome in ("faster", "no difference"):
        return Why("cause not measured", "can't tell", f"{_NOT_SHOWN} {found.judged.why}", None, None)
    claimed = found.judged.claimed if found.verdict == "cause named" else None
    device = claimed.device if claimed else None
    return Why(found.verdict, found.outcome, found.judged.why, claimed.metric if claimed else None, device)


def windows_of(trace: Trace, begin_ns: int, first_ns: int, last_ns: int, end_ns: int) -> tuple[Trace, Trace]:
    """The normal window, at most its last `LONGEST_NS`, and the slow one; arguments as `find_why` has them.

    An onset is dated to within some steps. Where these lie on both sides of a pause, nothing says which of the two
    times the pause belongs to, and what was sampled in it would be put down to one of them: it is left out.
    """
    begin_ns = max(begin_ns, first_ns - LONGEST_NS)
    first_ns, last_ns = _before_pause(trace, begin_ns, first_ns), _after_pause(trace, last_ns, end_ns)
    return _cut(trace, begin_ns, first_ns), _cut(trace, last_ns, end_ns)


def _before_pause(trace: Trace, begin_ns: int, end_ns: int) -> int:
    """The end of a window, or where a pause among its last steps begins."""
    times = _times(trace, begin_ns, end_ns)
    at = _pauses(times["start_ns"].to_numpy())
    near = at[at >= times.height - 1 - DATED_WITHIN]
    return int(times["end_ns"][int(near[0])]) if len(near) else end_ns


def _after_pause(trace: Trace, begin_ns: int, end_ns: int) -> int:
    """The begin of a window, or where a pause among its first steps ends."""
    starts_ns = _times(trace, begin_ns, end_ns)["start_ns"].to_numpy()
    at = _pauses(starts_ns)
    near = at[at < DATED_WITHIN]
    return int(starts_ns[near[-1] + 1]) if len(near) else begin_ns


def _times(trace: Trace, begin_ns: int, end_ns: int) -> pl.DataFrame:
    steps = trace.steps.filter(pl.col("start_ns").is_between(begin_ns, end_ns, closed="left"))
    return steps.select("start_ns", (pl.col("start_ns") + pl.col("dur_ns")).alias("end_ns")).sort("start_ns").collect()


def _pauses(starts_ns: Times) -> NDArray[np.int64]:
    """Numbers of steps after which none began for much longer than usual."""
    apart_ns = np.diff(starts_ns)
    if not len(apart_ns):
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero((apart_ns >= _TICK_NS) & (apart_ns > _LONG * np.median(apart_ns)))


def _cut(trace: Trace, first_ns: int, last_ns: int) -> Trace:
    """What began in a window: `first_ns` and later, before `last_ns`."""
    frames = {}
    for name, frame in trace.tables.items():
        time = TABLES[name].time
        frames[name] = frame.filter(pl.col(time).is_between(first_ns, last_ns, closed="left")) if time else frame
    return Trace(trace.facts, frames, trace.losses, scope=trace.scope, names=trace.names)
