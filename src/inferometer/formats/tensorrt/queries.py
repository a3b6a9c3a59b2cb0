"""Queries, each with its latency and the parts of that; and the statistics of these over all queries."""

from collections.abc import Sequence
from statistics import fmean, stdev
from typing import Any, Final

from inferometer.formats.tensorrt.fields import exact_ns
from inferometer.trace.builder import TraceBuilder

STEPS, TESTS = "steps", "tests"
ANCHOR: Final = "a query of trtexec"
_PARTS: Final = (  # names of a test, and the fields that have it: of newer releases, of older ones
    ("latency", ("latencyMs",)),
    ("copies to the device", ("h2dMs", "inMs")),
    ("GPU compute", ("computeMs",)),
    ("copies to the host", ("d2hMs", "outMs")),
    ("end to end", ("endToEndMs",)),
)
_START: Final = ("startH2dMs", "startInMs", "startComputeMs")


def add_queries(out: TraceBuilder, queries: Sequence[dict[str, Any]]) -> None:
    """Rows of `steps`, and of `tests` for latency and each of its parts."""
    if out.wants(STEPS):
        out.losses.see(STEPS, len(queries))
        columns: dict[str, Any] = {
            "step": range(len(queries)),
            "start_ns": [_time(out, query, _START, STEPS) for query in queries],
            "dur_ns": [_time(out, query, ("latencyMs",), STEPS) for query in queries],
            "anchor": ANCHOR,
            "source": "recorded",
        }
        out.add(STEPS, len(queries), columns)
    if out.wants(TESTS):
        rows = [row for name, fields in _PARTS if (row := _test(out, name, queries, fields))]
        out.losses.see(TESTS, len(rows))
        names = ("test", "repetitions", "mean_ns", "stddev_ns")
        out.add(TESTS, len(rows), {name: [row[i] for row in rows] for i, name in enumerate(names)} | _order(len(rows)))


def _order(rows: int) -> dict[str, Any]:
    return {"order": range(rows)}


def _test(
    out: TraceBuilder, name: str, queries: Sequence[dict[str, Any]], fields: Sequence[str]
) -> tuple[str, int, float, float | None] | None:
    """Null where no query shows it, or where nothing was copied in any."""
    times = [ns for query in queries if (ns := _time(out, query, fields, TESTS)) is not None]
    if not any(times):
        return None
    return name, len(times), fmean(times), stdev(times) if len(times) > 1 else None


def _time(out: TraceBuilder, query: dict[str, Any], names: Sequence[str], category: str) -> int | None:
    name = next((name for name in names if name in query), names[0])
    ns = exact_ns(query, name, out.losses, category)
    return None if ns is None else round(ns)
