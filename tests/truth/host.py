"""The host's side of captures as plain rows, and what a thread did in stretches of time, moment by moment."""

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from tests.kineto_files import exact_ns
from tests.truth.raw import KINDS, timed_events

from inferometer.names.compilers import is_compiling

WAIT = re.compile(r"(cuda|cu|hip)(Device|Thread|Ctx|Stream|Event)Synchronize(_v\d+)?")
COPY = re.compile(r"(cuda|cu|hip)(Drv)?Memcpy")
LAUNCH = re.compile(r"(cuda|cu|hip)(Ext|Hcc)?(Module)?(Graph)?Launch(?!HostFunc)")
ALLOCATION = re.compile(r"(cuda|hip|cu)(Ext)?(Malloc|Free|Mem(Host)?Alloc|MemFree|Host(Alloc|Malloc|Free))(?!.*Async)")
ACTIVITIES = ("capture", "compiling", "wait", "copy", "slow_call", "allocation", "launch", "call", "op", "frame")
Thread = tuple[str, str]


@dataclass(frozen=True)
class Span:
    """A call, op or frame."""

    name: str
    thread: Thread
    start_ns: int
    end_ns: int
    correlation: int | None = None
    kernel: str | None = None

    @property
    def dur_ns(self) -> int:
        return self.end_ns - self.start_ns


@dataclass(frozen=True)
class Host:
    """All in the order of time. `waits`: calls that returned when the device had done something."""

    calls: tuple[Span, ...]
    ops: tuple[Span, ...]
    frames: tuple[Span, ...]
    waits: tuple[Span, ...]
    captured: tuple[Span, ...]
    rows: dict[str, int]
    by_correlation: dict[int | None, Span]

    def call_of(self, correlation: int | None) -> Span | None:
        return None if correlation is None else self.by_correlation.get(correlation)


@lru_cache(maxsize=2)
def host(path: Path) -> Host:
    """Read a file."""
    timed = timed_events(path)
    tables: dict[str, list[Span]] = defaultdict(list)
    rows: dict[str, int] = defaultdict(int)
    ended: dict[int, int] = defaultdict(int)
    queued = set()
    for each in timed:
        category, args = each["cat"].lower(), each.get("args", {})
        start_ns = exact_ns(each["ts"])
        end_ns = start_ns + exact_ns(each["dur"])
        table = {
            **dict.fromkeys(KINDS, "launches"),
            **dict.fromkeys(("cuda_runtime", "cuda_driver"), "calls"),
            "cpu_op": "ops",
            "python_function": "frames",
        }.get(category)
        if table is None:
            continue
        rows[table] += 1
        if table == "launches":
            queued.add(args.get("correlation"))
            if category != "kernel" and "correlation" in args:
                ended[args["correlation"]] = max(ended[args["correlation"]], end_ns)
        else:
            thread = (str(each["pid"]), str(each["tid"]))
            name = (args.get("kernel") or None) if table == "calls" else None
            tables[table].append(Span(each["name"], thread, start_ns, end_ns, args.get("correlation"), name))
    sort = {name: tuple(sorted(spans, key=lambda each: each.start_ns)) for name, spans in tables.items()}
    calls = sort.get("calls", ())
    waits = tuple(
        each
        for each in calls
        if WAIT.fullmatch(each.name)
        or (
            COPY.match(each.name)
            and (each.end_ns >= ended[each.correlation] if each.correlation in ended else "Async" not in each.name)
        )
    )
    first: dict[int | None, Span] = {each.correlation: each for each in reversed(calls) if each.correlation is not None}
    captured = tuple(each for each in calls if each.kernel and each.correlation not in queued)
    return Host(calls, sort.get("ops", ()), sort.get("frames", ()), waits, captured, dict(rows), first)


def union(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Disjoint, in the order of time."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        elif end > start:
            found.append((start, end))
    return found


def shared_ns(first: Sequence[tuple[int, int]], second: Sequence[tuple[int, int]]) -> int:
    """How long both are open; each disjoint and in the order of time."""
    sum_ns = 0
    for start, end in first:
        at = bisect_right(second, start, key=lambda each: each[1])
        while at < len(second) and second[at][0] < end:
            sum_ns += min(end, second[at][1]) - max(start, second[at][0])
            at += 1
    return sum_ns


def activity_of(call: Span) -> str:
    """What sort of call it is."""
    if WAIT.fullmatch(call.name):
        return "wait"
    if COPY.match(call.name):
        return "copy"
    if call.end_ns - call.start_ns >= 1_000_000:
        return "slow_call"
    return "allocation" if ALLOCATION.match(call.name) else "launch" if LAUNCH.match(call.name) else "call"


def activities(found: Host, thread: Thread, gaps: Iterable[tuple[int, int]]) -> Iterator[tuple[str, int, int]]:
    """All that the thread did, with start and end; a capture by its calls, or by the captured launches of each gap."""
    ends = [each.end_ns for each in found.calls if each.thread == thread and "StreamEndCapture" in each.name]
    for each in found.calls:
        if each.thread == thread and "StreamBeginCapture" in each.name:
            yield "capture", each.start_ns, min(end for end in ends if end > each.start_ns)
    yield from ((activity_of(each), each.start_ns, each.end_ns) for each in found.calls if each.thread == thread)
    yield from (("op", each.start_ns, each.end_ns) for each in found.ops if each.thread == thread)
    for each in found.frames:
        if each.thread == thread:
            yield "compiling" if is_compiling(each.name) else "frame", each.start_ns, each.end_ns
    for start, end in gaps:
        own = [each.start_ns for each in found.captured if each.thread == thread and start <= each.start_ns < end]
        if own:
            yield "capture", own[0], own[-1]


def parts(found: Host, pieces: Iterable[tuple[Thread | None, int, int]]) -> dict[str, int]:
    """How long each activity is the first of its order, moment by moment; the rest is unrecorded."""
    threads = defaultdict(list)
    for thread, start, end in pieces:
        threads[thread].append((start, end))
    sums: dict[str, int] = defaultdict(int)
    for thread, gaps in threads.items():
        rows = [("gap", *each) for each in gaps] + (list(activities(found, thread, gaps)) if thread else [])
        moments = sorted(
            [(start, 1, name) for name, start, end in rows if end > start]
            + [(end, -1, name) for name, start, end in rows if end > start]
        )
        is_open: Counter[str] = Counter()
        for (time_ns, change, name), (next_ns, *_) in pairwise(moments):
            is_open[name] += change
            if is_open["gap"] and next_ns > time_ns:
                sums[next((each for each in ACTIVITIES if is_open[each]), "unrecorded")] += next_ns - time_ns
    return dict(sorted(sums.items(), key=lambda item: (-item[1], item[0])))
