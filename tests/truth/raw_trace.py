"""A Kineto file as plain Python rows, read by nothing of ours: what sentences about real traces are checked against."""

import gzip
import json
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

_LAUNCHES = ("kernel", "gpu_memcpy", "gpu_memset")
_CALLS = ("cuda_runtime", "cuda_driver")


@dataclass(frozen=True)
class Event:
    """One event; times are whole ns. `place` is the device of a launch, the thread of anything else."""

    name: str
    category: str
    start_ns: int
    end_ns: int
    place: Any
    stream: Any = None
    correlation: int = 0

    @property
    def dur_ns(self) -> int:
        return self.end_ns - self.start_ns


@dataclass(frozen=True)
class RawTrace:
    """Launches and calls by start; `call_of` an id and `work_of` it."""

    launches: list[Event]
    calls: list[Event]

    @cached_property
    def kernels(self) -> list[Event]:
        return [launch for launch in self.launches if launch.category == "kernel"]

    @cached_property
    def call_of(self) -> dict[int, Event]:
        return {call.correlation: call for call in self.calls if call.correlation}

    @cached_property
    def work_of(self) -> dict[int, list[Event]]:
        work: dict[int, list[Event]] = {call.correlation: [] for call in self.calls}
        for launch in self.launches:
            if launch.correlation in self.call_of:
                work[launch.correlation].append(launch)
        return work


def read_raw(path: Path) -> RawTrace:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        events = json.load(file, parse_float=Decimal, strict=False)["traceEvents"]
    complete = [event for event in events if event.get("ph") == "X"]
    return RawTrace(_events(complete, _LAUNCHES), _events(complete, _CALLS))


def _events(events: Iterable[dict[str, Any]], categories: tuple[str, ...]) -> list[Event]:
    found = []
    for event in events:
        if event.get("cat") not in categories:
            continue
        args = event.get("args", {})
        start_ns, dur_ns = (round(Decimal(event[key]) * 1000) for key in ("ts", "dur"))
        place = args.get("device") if categories is _LAUNCHES else event["tid"]
        rest = (place, args.get("stream"), args.get("correlation", 0))
        found.append(Event(event["name"], event["cat"], start_ns, start_ns + dur_ns, *rest))
    return sorted(found, key=lambda event: event.start_ns)


def union(events: Iterable[Event]) -> list[tuple[int, int]]:
    """The times during which any is open, in order."""
    joined: list[tuple[int, int]] = []
    for event in sorted(events, key=lambda event: event.start_ns):
        if joined and event.start_ns <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], event.end_ns))
        else:
            joined.append((event.start_ns, event.end_ns))
    return joined


def length(spans: Iterable[tuple[int, int]]) -> int:
    return sum(end - start for start, end in spans)


def overlap_ns(spans: list[tuple[int, int]], start_ns: int, end_ns: int) -> int:
    return sum(max(0, min(end, end_ns) - max(start, start_ns)) for start, end in spans)
