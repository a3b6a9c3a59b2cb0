"""Host planes: calls of the driver, Python's functions, named ranges, steps, and the allocator's samples.

A thread is a line. Names and stats say what its events are: `$file.py:12 function` is a Python call; an event with a
`correlation_id`, of a name of CUDA's or HIP's, or on a line `Host Threads/123` of the GPU's tracer, is a call; the
allocator writes `MemoryAllocation`; all others are ranges that XLA, JAX or the user named (`TraceMe`), and one with a
`step_num` is also a step. XLA names the call that launches a kernel after the kernel: which function of the driver it
was is not in the file, and it is called `[kernel launch]` here.
"""

import re
from collections import defaultdict
from collections.abc import Collection
from typing import Any

import polars as pl

from inferometer.formats.xplane.counters import ALLOCATIONS, read_allocations
from inferometer.formats.xplane.instructions import CALLED, TABLES, Instructions
from inferometer.formats.xplane.lines import Events, LineReader, line_name
from inferometer.formats.xplane.plane import Plane, whole
from inferometer.names.apis import KERNEL_LAUNCH
from inferometer.trace.builder import TraceBuilder, Values

_RANGE, _STEP_RANGE = "TraceMe", "StepTraceAnnotation"  # domains; the former is one of FRAMEWORK_RANGES
_API = re.compile(r"(?:cuda|cu|hip|hsa_?)[A-Z]|hsa_[a-z]")
_TRACER_LINE = "Host Threads/"
_PYTHON = "$"
_ID, _STEP = "correlation_id", "step_num"
_READ = ("calls", "ops", "frames", "spans", "steps", "counters")


class HostReader:
    """Reads planes of hosts; `kernels` are names of device work, by which calls that launch it are known."""

    def __init__(
        self, out: TraceBuilder, lines: LineReader, instructions: Instructions, kernels: Collection[str]
    ) -> None:
        self._out = out
        self._lines = lines
        self._instructions = instructions
        self._kernels = kernels

    def read(self, plane: Plane, process: int | None) -> None:
        """One plane."""
        if not self._out.wants(*_READ, *TABLES):
            return
        for line in plane.lines:
            where = {"process": process, "thread": line.id}
            parts = self._parts(plane, line)
            if self._out.wants("frames"):
                self._frames(plane, self._lines.read(line, "frames", parts["frames"]), where)
            if self._out.wants("calls", *TABLES):
                self._calls(plane, self._lines.read(line, "calls", parts["calls"]), where)
            if self._out.wants("spans"):
                self._spans(plane, self._lines.read(line, "spans", parts["spans"]), where)
            if self._out.wants("steps"):
                self._steps(plane, self._lines.read(line, "steps", parts["steps"]), where)
            if self._out.wants("counters"):
                read_allocations(plane, self._lines.read(line, "counters", parts["counters"]), process, self._out)

    def _parts(self, plane: Plane, line: Any) -> dict[str, list[Any]]:
        """The events of each table; a step is a range, too."""
        is_tracer = line_name(line).startswith(_TRACER_LINE)
        ids, steps = plane.numbers_of(_ID), plane.numbers_of(_STEP)
        tables: dict[int, str] = {}
        parts: defaultdict[str, list[Any]] = defaultdict(list)
        for event in line.events:
            table = tables.get(event.metadata_id)
            if table is None:
                table = tables[event.metadata_id] = _table_of(plane.name_of(event.metadata_id), is_tracer=is_tracer)
            if table == "spans":
                has = {stat.metadata_id for stat in event.stats}
                if not has.isdisjoint(ids):
                    table = "calls"
                elif not has.isdisjoint(steps):
                    parts["steps"].append(event)
            parts[table].append(event)
        return parts

    def _frames(self, plane: Plane, events: Events, where: dict[str, Values]) -> None:
        plane.count_bad_names(events.name_id, "frames")
        names = plane.names(events.name_id).cast(pl.String).str.strip_prefix(_PYTHON)
        self._out.add("frames", len(events.messages), {"frame": names, **where, **_times(events)})

    def _calls(self, plane: Plane, events: Events, where: dict[str, Values]) -> None:
        if self._out.wants("calls"):
            plane.count_bad_names(events.name_id, "calls")
        n = len(events.messages)
        ids = pl.Series([whole(value) for value in plane.columns(events, {_ID}).get(_ID, [None] * n)], dtype=pl.Int64)
        names = plane.names(events.name_id).cast(pl.String)
        launches = names.is_in(list(self._kernels)) & ids.is_not_null()
        api = names.set(launches, KERNEL_LAUNCH).cast(pl.Categorical)
        self._out.add("calls", n, {"api": api, "correlation_id": ids, **where, **_times(events)})
        called = pl.DataFrame({"correlation_id": ids, **where, **_times(events)}, schema_overrides=CALLED)
        self._instructions.note_calls(called.filter(ids.is_not_null()))

    def _spans(self, plane: Plane, events: Events, where: dict[str, Values]) -> None:
        plane.count_bad_names(events.name_id, "spans")
        steps = plane.numbers_of(_STEP)
        domain = [
            _RANGE if steps.isdisjoint(stat.metadata_id for stat in event.stats) else _STEP_RANGE
            for event in events.messages
        ]
        columns = {"span": plane.names(events.name_id), "domain": domain, **where, **_times(events)}
        self._out.add("spans", len(events.messages), columns)

    def _steps(self, plane: Plane, events: Events, where: dict[str, Values]) -> None:
        numbers = [whole(value) for value in plane.columns(events, {_STEP}).get(_STEP, [])]
        rows = pl.DataFrame(
            {"step": numbers, "anchor": plane.names(events.name_id), **_times(events)},
            schema_overrides={"step": pl.Int64},
        )
        known = rows.filter(pl.col("step").is_not_null())
        self._out.losses.count("without_name", rows.height - known.height, category="steps")
        columns = {name: known[name] for name in known.columns}
        self._out.add("steps", known.height, {"process": where["process"], "source": "recorded", **columns})


def _table_of(name: str, *, is_tracer: bool) -> str:
    if name.startswith(_PYTHON):
        return "frames"
    if name in ALLOCATIONS:
        return "counters"
    return "calls" if is_tracer or _API.match(name) else "spans"


def _times(events: Events) -> dict[str, Values]:
    return {"start_ns": events.start_ns, "dur_ns": events.dur_ns}
