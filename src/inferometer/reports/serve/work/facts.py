"""What the list says of a run: what ran on what and when, how long, how busy, and words to find it by."""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import polars as pl

from inferometer.analyses.steps.usual import find_usual
from inferometer.analyses.tables.summary import device_times
from inferometer.errors import clean
from inferometer.findings.evidence.launch_evidence import LaunchEvidence
from inferometer.trace.facts import Facts
from inferometer.trace.trace import Trace

_YEAR_NS = 365 * 86_400 * 10**9
_SINCE_NS, _UNTIL_NS = 30 * _YEAR_NS, 130 * _YEAR_NS  # the years 2000 to 2100: other clocks begin when a machine does


def describe(trace: Trace) -> dict[str, Any]:
    """Plain data; null is what the source doesn't say."""
    facts, counts = trace.facts, trace.count_rows()
    window = trace.window()
    devices = device_times(trace)
    steps = trace.steps.select("phase", "dur_ns").drop_nulls("dur_ns").collect()
    timed = LaunchEvidence(trace).steps  # recorded, marked or found
    wall = None if window is None else window[1] - window[0]
    return {
        "format": facts.format,
        "tool": _words(facts.tool, facts.tool_version),
        "framework": facts.framework,
        "model": facts.model,
        "devices": _devices(facts, devices),
        "hosts": [*facts.hosts],
        "ranks": len(facts.ranks),
        "date": _date(facts, window),
        "wall_ns": wall,
        "busy_share": _busy_share(devices),
        "launches": counts["launches"],
        "rows": {name: count for name, count in counts.items() if count},
        "steps": steps.height if timed is None or steps.height else timed.steps.height,
        "step_ns": None if timed is None else find_usual(timed).median_ns,
        "warnings": trace.losses.warnings(),
        "tags": [*_tags(facts, counts, steps)],
    }


def _words(*parts: str | None) -> str | None:
    return " ".join(filter(None, parts)) or None


def _devices(facts: Facts, devices: pl.DataFrame) -> list[str]:
    """Products with how many there are of each; without any, what the tables call them."""
    names = [device.name for device in facts.devices if device.name]
    found = Counter(names or [each for each in devices["device"] if each is not None])
    return [clean(name if count == 1 else f"{count} × {name}") for name, count in found.items()]


def _date(facts: Facts, window: tuple[int, int] | None) -> str | None:
    """When it began, where its clock shows the time of day."""
    if window is None:
        return None
    begun_ns = window[0] + (facts.clock_base_ns or 0)
    if not _SINCE_NS < begun_ns < _UNTIL_NS:
        return None
    return datetime.fromtimestamp(begun_ns / 1e9, UTC).isoformat(timespec="seconds")


def _busy_share(devices: pl.DataFrame) -> float | None:
    """Busy time as a share of all devices' windows together."""
    window_ns = int(devices["window_ns"].sum())
    return int(devices["busy_ns"].sum()) / window_ns if window_ns else None


def _tags(facts: Facts, counts: dict[str, int], steps: pl.DataFrame) -> Iterator[str]:
    yield facts.format
    if facts.framework:
        yield clean(facts.framework)
    if len(facts.ranks) > 1:
        yield "ranks"
    yield from sorted(phase for phase in steps["phase"].unique() if phase)
    for table, tag in (("counters", "counters"), ("frames", "stacks"), ("log", "log")):
        if counts[table]:
            yield tag
    if facts.redacted is not None:
        yield "redacted"
