"""Which rows of which table make which lanes: launches by stream, what threads did by thread, ranges, steps."""

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from inferometer.analyses.numbering import number_rows
from inferometer.analyses.timeline.lanes.categories import Sort, host_sort, launch_sort
from inferometer.analyses.timeline.lanes.events import Numbers
from inferometer.trace.facts import Facts, NamedId
from inferometer.trace.lean import collect_lean
from inferometer.trace.trace import Trace

_DEVICE = ("rank", "device", "stream")
_THREAD = ("rank", "process", "thread")
_HOST = (("range", "spans", "span"), ("frame", "frames", "frame"), ("op", "ops", "op"), ("call", "calls", "api"))
_SYSTEM = ("system", "host_events", "kind")
_STEPS = "Steps"


class Place(msgspec.Struct, frozen=True):
    """Where a lane is. `order` sorts lanes: devices first, then threads."""

    group: str
    name: str
    kind: str
    order: tuple[tuple[bool, int | str], ...]


class Piece(msgspec.Struct, frozen=True, eq=False):
    """The events of one table, in its order: `lane` numbers `places`, `code` numbers `names` with their `sorts`."""

    table: str
    places: Sequence[Place]
    lane: Numbers
    start_ns: Numbers
    dur_ns: Numbers
    code: NDArray[np.int64]
    names: Sequence[str]
    sorts: Sequence[Sort]


def find_pieces(trace: Trace, steps: pl.DataFrame | None) -> Iterator[Piece]:
    """A piece of each table that was read and has rows.

    Args:
        trace: The recording.
        steps: `step`, `phase`, `start_ns`, `wall_ns`; those whose times aren't known are left out.
    """
    if steps is not None and (timed := steps.drop_nulls(("start_ns", "wall_ns"))).height:
        yield _steps(timed)
    if "launches" in trace.scope:
        columns = ("kind", "kernel", *_DEVICE, "start_ns", "dur_ns")
        yield from _launches(collect_lean(trace.compact("launches"), columns))
    for kind, table, text in (*_HOST, _SYSTEM):
        if table in trace.scope:
            yield from _events(trace, kind, table, text)


def _steps(steps: pl.DataFrame) -> Piece:
    phases = [phase or "" for phase in steps["phase"]]
    names = [
        f"step {step}" + (f", {phase}" if phase else "") for step, phase in zip(steps["step"], phases, strict=True)
    ]
    sorts = [(f"{phase} steps" if phase else "steps", "step") for phase in phases]
    place = Place(_STEPS, "steps", "step", ((False, 0),))
    code = np.arange(steps.height)
    start, dur = (steps[column].to_numpy() for column in ("start_ns", "wall_ns"))
    return Piece("steps", [place], np.zeros(steps.height, np.int64), start, np.maximum(dur, 0), code, names, sorts)


def _launches(launches: pl.DataFrame) -> Iterator[Piece]:
    if launches.is_empty():
        return
    code, keys = number_rows(launches.select("kind", "kernel"))
    names = [str(name) for _, name in keys]
    sorts = [launch_sort(str(kind), str(name)) for kind, name in keys]
    lane, places = number_rows(launches.select(_DEVICE))
    start, dur = (launches[column].to_numpy() for column in ("start_ns", "dur_ns"))
    yield Piece("launches", [_stream(key, "stream") for key in places], lane, start, dur, code, names, sorts)


def _events(trace: Trace, kind: str, table: str, text: str) -> Iterator[Piece]:
    tracks = ("device", "stream") if table == "spans" else ()
    rows = collect_lean(trace.compact(table), (text, *_THREAD, *tracks, "start_ns", "dur_ns"))
    on_device = rows.filter(pl.col("device").is_not_null()) if tracks else rows.clear()
    on_host = rows.filter(pl.col("device").is_null()) if tracks else rows
    for part, keys in ((on_device, _DEVICE), (on_host, _THREAD)):
        if part.is_empty():
            continue
        code, names = number_rows(part.select(text))
        lane, places = number_rows(part.select(keys))
        own = kind if keys is _THREAD else "device_range"
        made = [_stream(key, own) if keys is _DEVICE else _thread(key, own, trace.facts) for key in places]
        start, dur = (part[column].to_numpy() for column in ("start_ns", "dur_ns"))
        known = [str(name) for (name,) in names]
        # Only pieces of whole tables keep the table's order, which ties need: calls are never on a device.
        yield Piece(table, made, lane, start, dur, code, known, [host_sort(own, name) for name in known])


def _stream(key: tuple[object, ...], kind: str) -> Place:
    rank, device, stream = key
    group = str(device or "unnamed device") + _of_rank(rank)
    name = "stream unknown" if stream is None else f"stream {stream}"
    order = ((False, 1), _order(rank), (device is None, str(device)), _order(stream), (False, int(kind == "stream")))
    return Place(group, name if kind == "stream" else f"{name}: ranges", kind, order)


def _thread(key: tuple[object, ...], kind: str, facts: Facts) -> Place:
    rank, process, thread = key
    of_process = [each for each in facts.processes if each.process == process and each.rank in (None, rank)]
    of_thread = [
        each
        for each in facts.threads
        if each.thread == thread and each.process == process and each.rank in (None, rank)
    ]
    group = f"{_called('process', process, of_process)}{_of_rank(rank)}"
    called = _called("thread", thread, of_thread)
    group += "" if called == "thread unknown" else f", {called}"
    place = ("range", "frame", "op", "call", "system").index(kind)
    words = ("ranges", "Python", "ops", "calls", "system")[place]
    return Place(group, words, kind, ((False, 2), _order(rank), _order(process), _order(thread), (False, place)))


def _called(what: str, number: object, named: Sequence[NamedId]) -> str:
    """`process 12 (python)`; a text id is the text."""
    name = next((each.name for each in named if each.name), None)
    if number is None or (isinstance(number, int) and number < 0):
        return name or f"{what} unknown"
    return f"{what} {number}" + (f" ({name})" if name and str(number) not in name else "")


def _of_rank(rank: object) -> str:
    return "" if rank is None else f" of rank {rank}"


def _order(value: object) -> tuple[bool, int | str]:
    return (value is None, value if isinstance(value, int) else 0)
