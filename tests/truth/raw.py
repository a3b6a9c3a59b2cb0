"""Captures as plain rows: read by `json` and walked by loops, for tests that recompute what findings say.

Nothing here is quick and nothing is shared with the reader or the analyses. Taken as given are what a kernel's name
means (`inferometer.names`, tested by itself) and, for places in the code alone, the attribution of launches.
"""

import gzip
import json
import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import polars as pl
from tests.kineto_files import exact_ns

import inferometer
from inferometer.analyses.launched_by.attribution import attribute
from inferometer.findings.engine import known_rules
from inferometer.findings.finding import Finding
from inferometer.findings.rule import NEEDED, Evidence

KINDS = {"kernel": "kernel", "gpu_memcpy": "memcpy", "gpu_memset": "memset"}
CALLERS = {"cpu_op": "op", "user_annotation": "span", "python_function": "frame"}
SERVES = re.compile(
    r"nccl:|c10d::|record_param_comms|torch\.distributed\.ddp\.reducer|all_?reduce|all_?gather|reduce_?scatter"
    r"|all_?to_?all",
    re.IGNORECASE,
)
PAUSE_NS = 200_000
FILES = (
    *("a100_event_sync", "a100_idle_64", "a100_nccl", "a100_simple_add", "cpu_only", "h100_qwen1.5-0.5b", "h100_vit"),
    *("mi250_minitoy", "mi300_qwen1.5-0.5b", "mi300_resnet_ddp", "mi300_sglang_qwen3-8b_decode"),
    *("mi300_sglang_qwen3-8b_graph_capture_bs32", "mi300_vit", "mi300_vllm_gpt-oss_decode"),
    *("mi300_vllm_gpt-oss_graph_capture", "rank0_sampled", "rank1_sampled", "triton_example", "v100_graph_branches"),
)
G = TypeVar("G", bound=Hashable)


@dataclass(frozen=True)
class Launch:
    """`callers`: kind and name of what stood around its call, outermost first; none where the call isn't there."""

    kind: str
    name: str
    device: int
    stream: int
    start_ns: int
    end_ns: int
    args: Mapping[str, Any]
    callers: tuple[tuple[str, str], ...]

    @property
    def dur_ns(self) -> int:
        return self.end_ns - self.start_ns

    @property
    def correlation(self) -> int | None:
        return self.args.get("correlation")

    @property
    def key(self) -> tuple[str, int, int, int | None]:
        return self.name, self.stream, self.start_ns, self.args.get("correlation")

    @property
    def is_communication(self) -> bool:
        return self.kind == "kernel" and "nccl" in self.name.lower()

    @property
    def ops(self) -> list[str]:
        return [name for kind, name in self.callers if kind == "op"]

    @property
    def serves(self) -> bool:
        """Whether a call of communication made it; a frame is recognised by its function."""
        return any(SERVES.search(name.rpartition(": ")[2] if kind == "frame" else name) for kind, name in self.callers)


@dataclass(frozen=True)
class Capture:
    """The launches of a file in the order of time, and how many marked steps share all but a fiftieth of them, or 0."""

    path: Path
    launches: tuple[Launch, ...]
    steps: int

    @property
    def window_ns(self) -> int:
        return max(each.end_ns for each in self.launches) - min(each.start_ns for each in self.launches)

    @property
    def summed_ns(self) -> int:
        return sum(each.dur_ns for each in self.launches)

    @property
    def device(self) -> str:
        (device,) = {each.device for each in self.launches}
        return f"gpu:{device}"

    def a_step(self, time_ns: int) -> str:
        return f", {duration(Fraction(time_ns, self.steps))} per step over {self.steps} steps" if self.steps > 1 else ""


@lru_cache(maxsize=2)
def events(path: Path) -> list[dict[str, Any]]:
    """As they stand in a file."""
    with gzip.open(path) as file:
        return list(json.load(file, parse_float=str, parse_int=int)["traceEvents"])


def timed_events(path: Path) -> list[dict[str, Any]]:
    """Those that last."""
    return [each for each in events(path) if each.get("ph") == "X" and "dur" in each]


@lru_cache(maxsize=2)
def capture(path: Path) -> Capture:
    """Read a file."""
    timed = timed_events(path)
    calls, around = {}, defaultdict(list)
    for number, each in enumerate(timed):
        category = each["cat"].lower()
        if category in ("cuda_runtime", "cuda_driver") and "correlation" in each["args"]:
            calls[each["args"]["correlation"]] = each
        if category in CALLERS:
            start_ns = exact_ns(each["ts"])
            row = (start_ns, -exact_ns(each["dur"]), number, CALLERS[category], each["name"])
            around[each["pid"], each["tid"]].append(row)
    callers = _find_callers(calls, around)
    launches = [_launch(each, callers) for each in timed if each["cat"].lower() in KINDS]
    called = [exact_ns(calls[number]["ts"]) for number in correlations(timed) if number in calls]
    return Capture(path, tuple(sorted(launches, key=lambda each: each.start_ns)), _steps(timed, called, len(launches)))


def correlations(timed: Iterable[Mapping[str, Any]]) -> Iterable[Any]:
    """The id of each launch's call."""
    return (each["args"].get("correlation") for each in timed if each["cat"].lower() in KINDS)


def _steps(timed: Iterable[Mapping[str, Any]], called_ns: Iterable[int], launches: int) -> int:
    marks = [each for each in timed if each["name"].startswith("ProfilerStep#") and each["cat"] == "user_annotation"]
    starts = sorted(exact_ns(each["ts"]) for each in marks)
    ends = max((exact_ns(each["ts"]) + exact_ns(each["dur"]) for each in marks), default=0)
    inside = [sum(start <= each for start in starts) for each in called_ns if starts and starts[0] <= each <= ends]
    return len(set(inside)) if len(inside) >= 0.98 * launches else 0


def _launch(each: Mapping[str, Any], callers: Mapping[Any, tuple[tuple[str, str], ...]]) -> Launch:
    args = each["args"]
    start_ns = exact_ns(each["ts"])
    return Launch(
        KINDS[each["cat"].lower()],
        each["name"],
        int(args["device"]),
        int(args["stream"]),
        start_ns,
        start_ns + exact_ns(each["dur"]),
        args,
        callers.get(args.get("correlation"), ()),
    )


def _find_callers(calls: Mapping[Any, Any], around: Mapping[Any, Any]) -> dict[Any, tuple[tuple[str, str], ...]]:
    """What is open on a call's thread for at least half of the call."""
    by_thread = defaultdict(list)
    for correlation, call in calls.items():
        start_ns = exact_ns(call["ts"])
        by_thread[call["pid"], call["tid"]].append((start_ns, start_ns + exact_ns(call["dur"]), correlation))
    found = {}
    for thread, own in by_thread.items():
        waiting, is_open = sorted(around[thread], reverse=True), []
        for start_ns, end_ns, correlation in sorted(own):
            while waiting and waiting[-1][0] <= start_ns:
                is_open.append(waiting.pop())
            is_open = [each for each in is_open if each[0] - each[1] > start_ns]
            inside = [each for each in is_open if 2 * (min(each[0] - each[1], end_ns) - start_ns) >= end_ns - start_ns]
            found[correlation] = tuple((kind, name) for *_, kind, name in inside)
    return found


def exposed(hiding: Iterable[Launch], groups: Mapping[G, list[Launch]]) -> dict[G, int]:
    """How long at least one launch of each group runs and none of `hiding` does: from moment to moment."""
    moments: list[tuple[int, int, G | None]] = [
        moment for each in hiding for moment in ((each.start_ns, 1, None), (each.end_ns, -1, None))
    ]
    for group, members in groups.items():
        for each in members:
            moments += [(each.start_ns, 1, group), (each.end_ns, -1, group)]
    moments.sort(key=lambda moment: moment[0])
    is_open: dict[G | None, int] = defaultdict(int)
    times: dict[G, int] = dict.fromkeys(groups, 0)
    before_ns = 0
    for time_ns, change, changed in moments:
        if not is_open[None]:
            for other in [name for name, count in is_open.items() if count and name is not None]:
                times[other] += time_ns - before_ns
        is_open[changed] += change
        before_ns = time_ns
    return times


@lru_cache(maxsize=2)
def table_order(path: Path) -> dict[tuple[str, int, int, int | None], int]:
    """By name, stream, start and id: of launches that begin at the same time, which one counts as the first."""
    with inferometer.open(path, NEEDED) as trace:
        table = trace.launches.select("kernel", "stream", "start_ns", "correlation_id").collect().rows()
    return {row: number for number, row in enumerate(table)}


def stretches(found: Capture) -> list[list[Launch]]:
    """Launches but sets of memory, by device, stream and start, parted where a stream pauses."""
    order = table_order(found.path)
    rows = [each for each in found.launches if each.kind != "memset"]
    rows.sort(key=lambda each: (each.device, each.stream, each.start_ns, order[each.key]))
    parts: list[list[Launch]] = []
    for each in rows:
        last = parts[-1][-1] if parts else None
        same = last is not None and (last.device, last.stream) == (each.device, each.stream)
        if last is None or not same or each.start_ns - last.end_ns > PAUSE_NS:
            parts.append([])
        parts[-1].append(each)
    return parts


@lru_cache(maxsize=2)
def places(path: Path) -> dict[tuple[str, int, int], str | None]:
    """Where launches come from, by name, stream and start; None where nobody knows."""
    with inferometer.open(path) as trace:
        rows = attribute(trace).each().filter(~pl.col("is_captured"))
    told = pl.coalesce("module_pooled", "op", "user_frame", "frame", "span").alias("place")
    known = pl.when(pl.col("how") != "graph_launch").then(told)
    names = pl.col("kernel").cast(pl.String)
    table = rows.with_columns(known.alias("place"), names).select("kernel", "stream", "start_ns", "place")
    return {(name, stream, start_ns): place for name, stream, start_ns, place in table.iter_rows()}


@lru_cache(maxsize=2)
def sites(path: Path) -> dict[tuple[str, int, int, int | None], tuple[str | None, str | None]]:
    """The outermost op and the innermost frame of the user's around each launch's call, by `Launch.key`."""
    with inferometer.open(path) as trace:
        rows = attribute(trace).each().filter(~pl.col("is_captured"))
    key = (pl.col("kernel").cast(pl.String), "stream", "start_ns", "correlation_id")
    table = rows.select(*key, pl.col("op_chain").str.split(" > ").list.first(), "user_frame")
    return {(name, *other): (op, frame) for name, *other, op, frame in table.iter_rows()}


def ask(path: Path, rule: str) -> Finding | None:
    """What a rule finds."""
    return next(iter(known_rules()[rule].find(evidence(path))), None)


@lru_cache(maxsize=1)
def evidence(path: Path) -> Evidence:
    """What rules are asked about."""
    return Evidence(inferometer.open(path, NEEDED))


def duration(ns: float | Fraction) -> str:
    return _short(ns, ((10**9, "s"), (10**6, "ms"), (10**3, "μs")), "ns")


def size(count: float | Fraction) -> str:
    return _short(count, ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB")), "B")


def _short(value: float | Fraction, units: tuple[tuple[int, str], ...], least: str) -> str:
    """Three decimals of the largest unit that it fills; the least has none."""
    exact = Fraction(value)
    return next((f"{_digits(exact / each)} {unit}" for each, unit in units if exact >= each), f"{round(exact)} {least}")


def _digits(value: Fraction) -> str:
    return str((Decimal(value.numerator) / value.denominator).quantize(Decimal("0.001")))


def share(part: float) -> str:
    return f"{100 * part:.1f} %"
