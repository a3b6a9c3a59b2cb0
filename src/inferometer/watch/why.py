"""Why steps are slow: the time since the onset next to the normal time before it, as `inferometer compare` has it."""

from dataclasses import dataclass
from typing import Any

import polars as pl

from inferometer.analyses.compare.comparison import NEEDED, compare
from inferometer.analyses.compare.verdicts import Outcome, Verdict
from inferometer.errors import InputError
from inferometer.trace.tables import TABLES
from inferometer.trace.trace import Trace

__all__ = ["NEEDED", "Why", "find_why"]

LONGEST_NS = 10 * 60 * 10**9
"""Of the normal time before the onset, that is compared: what was long ago may have had other reasons to differ."""


@dataclass(frozen=True)
class Why:
    """What `compare` says of the normal and the slow window. `metric` and `device` are those of the cause it names."""

    verdict: Verdict
    outcome: Outcome
    sentence: str
    metric: str | None
    device: str | None

    def as_json(self) -> dict[str, Any]:
        """All of it."""
        return {
            "verdict": self.verdict,
            "outcome": self.outcome,
            "why": self.sentence,
            "metric": self.metric,
            "device": self.device,
        }


def find_why(trace: Trace, begin_ns: int, onset: tuple[int, int], end_ns: int) -> Why | None:
    """The cause of the slow steps; None where the two windows hold nothing that could be compared.

    Args:
        trace: Opened with `NEEDED`.
        begin_ns: Where the normal time before the onset begins.
        onset: The ends of the interval in which the slow time began: what lies in it belongs to neither window.
        end_ns: Where the slow time ends.
    """
    first_ns, last_ns = onset
    normal = _cut(trace, max(begin_ns, first_ns - LONGEST_NS), first_ns)
    slow = _cut(trace, last_ns, end_ns)
    try:
        found = compare(normal, slow)
    except InputError:
        return None
    claimed = found.judged.claimed if found.verdict == "cause named" else None
    device = claimed.device if claimed else None
    return Why(found.verdict, found.outcome, found.judged.why, claimed.metric if claimed else None, device)


def _cut(trace: Trace, first_ns: int, last_ns: int) -> Trace:
    """What began in a window: `first_ns` and later, before `last_ns`."""
    frames = {}
    for name, frame in trace.tables.items():
        time = TABLES[name].time
        frames[name] = frame.filter(pl.col(time).is_between(first_ns, last_ns, closed="left")) if time else frame
    return Trace(trace.facts, frames, trace.losses, scope=trace.scope, names=trace.names)
