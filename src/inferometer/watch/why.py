"""Why steps are slow: the time since the onset next to the normal time before it, as `inferometer compare` has it."""

import polars as pl

from inferometer.analyses.compare.comparison import NEEDED, compare
from inferometer.errors import InputError
from inferometer.trace.tables import TABLES
from inferometer.trace.trace import Trace
from inferometer.watch.cause import Why

__all__ = ["NEEDED", "find_why", "windows_of"]

_NOT_SHOWN = "Compared as two runs, the slow time is not slower."
LONGEST_NS = 10 * 60 * 10**9
"""How much of the normal time before the onset is compared: what was long ago may have had other reasons to differ."""


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
    """The normal window, at most its last `LONGEST_NS`, and the slow one; arguments as `find_why` has them."""
    return _cut(trace, max(begin_ns, first_ns - LONGEST_NS), first_ns), _cut(trace, last_ns, end_ns)


def _cut(trace: Trace, first_ns: int, last_ns: int) -> Trace:
    """What began in a window: `first_ns` and later, before `last_ns`."""
    frames = {}
    for name, frame in trace.tables.items():
        time = TABLES[name].time
        frames[name] = frame.filter(pl.col(time).is_between(first_ns, last_ns, closed="left")) if time else frame
    return Trace(trace.facts, frames, trace.losses, scope=trace.scope, names=trace.names)
