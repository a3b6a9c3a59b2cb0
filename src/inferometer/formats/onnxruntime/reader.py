"""Fills the tables from a profile's events."""

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from inferometer.errors import FormatError
from inferometer.formats.onnxruntime import columns as of
from inferometer.formats.onnxruntime.events import Event, events_of
from inferometer.trace.facts import Facts

if TYPE_CHECKING:
    from inferometer.formats.source import Source
    from inferometer.trace.builder import TraceBuilder

_BATCH: Final = 20_000  # events that are made rows at once
_LIMIT: Final = 1_000_000  # events, after which the profiler keeps silent
_HINT: Final = "Record it again; ONNX Runtime writes the file at end_profiling()."
_ON_CPU: Final = (
    "What a node of the CPU provider computes counts as a launch of the device cpu; a node that runs others isn't one."
)
_NODES: Final = pl.Schema(
    {
        "op": pl.String,
        "provider": pl.String,
        **dict.fromkeys(("process", "thread", "start_ns", "dur_ns", "external_id"), pl.Int64),
    }
)


def read(source: "Source", out: "TraceBuilder") -> Facts:
    """Read all of it.

    Raises:
        FormatError: It is no list, or there is no event in it.
    """
    reader = _Reader(out)
    held: list[Event] = []
    for batch in events_of(source, out.losses):
        held += batch
        if len(held) >= _BATCH:
            reader.take(held)
            held = []
    reader.take(held)
    if not reader.events:
        raise FormatError(f"{source.name}: expected events of ONNX Runtime, found none", hint=_HINT)
    return reader.finish(source.name)


class _Reader:
    def __init__(self, out: "TraceBuilder") -> None:
        self.events = 0
        self._out = out
        self._ran = self._runs = 0
        self._kernels = 0
        self._nodes: list[pl.DataFrame] = []
        self._providers: dict[str, None] = {}

    def take(self, batch: list[Event]) -> None:
        """Rows of a batch; events without a place or with a time that is none are counted."""
        self.events += len(batch)
        by_category: dict[str, list[Event]] = defaultdict(list)
        for event in batch:
            if not 0 <= event.ts <= of.MOST_US - max(event.dur, 0) or event.dur < 0:
                name = "without_duration" if event.dur < 0 else "without_timestamp"
                self._lose(name, event)
            else:
                by_category[event.cat].append(event)
        self._take_nodes(by_category.pop("Node", []))
        self._take_session(by_category.pop("Session", []))
        if kernels := by_category.pop("Kernel", []):
            self._kernels += len(kernels)
            self._add("launches", len(kernels), of.kernel_columns(kernels))
        if calls := by_category.pop("Api", []):
            self._add("calls", len(calls), of.host_columns(calls) | {"api": [event.name for event in calls]})
        for events in by_category.values():
            for event in events:
                self._lose("unknown_category", event)

    def finish(self, name: str) -> Facts:
        """Launches of the CPU, which are known once all nodes are read, and the facts."""
        if self._out.wants("launches"):
            found = of.computing(pl.concat([_NODES.to_frame(), *self._nodes]))
            self._add("launches", found.height, found.to_dict(as_series=True))
        if self.events >= _LIMIT:
            self._out.losses.count("dropped_by_profiler", example=f"it stops after {_LIMIT:,} events")
        others = [each for each in self._providers if each != of.CPU]
        notes = [_ON_CPU] if of.CPU in self._providers else []
        if others and not self._kernels:
            notes.append(
                f"Nodes of {', '.join(others)} have no kernels in the file: their time is the host's, which may be "
                "only that of queuing their work."
            )
        return Facts("onnxruntime", name, tool="ONNX Runtime", framework="ONNX Runtime", notes=tuple(notes))

    def _take_nodes(self, events: list[Event]) -> None:
        nodes = [event for event in events if of.is_kernel_time(event)]
        if not events:
            return
        spans = {"span": [of.node_name(event) for event in events], "domain": "Node"}
        self._add("spans", len(events), of.host_columns(events) | spans)
        if nodes:
            for event in nodes:
                self._providers.setdefault(event.args.provider or "an unnamed provider")
            if self._out.wants("ops"):
                self._add("ops", len(nodes), of.op_columns(nodes, self._ran))
            if self._out.wants("launches"):
                self._nodes.append(self._frame(nodes))
            self._ran += len(nodes)

    def _frame(self, nodes: list[Event]) -> pl.DataFrame:
        columns = of.host_columns(nodes) | {
            "op": [of.op_of(event) for event in nodes],
            "provider": [event.args.provider for event in nodes],
            "external_id": range(self._ran, self._ran + len(nodes)),
        }
        return pl.DataFrame(columns, schema_overrides=_NODES).select(list(_NODES))

    def _take_session(self, events: list[Event]) -> None:
        if not events:
            return
        spans = {"span": [event.name for event in events], "domain": "Session"}
        self._add("spans", len(events), of.host_columns(events) | spans)
        runs = [event for event in events if event.name == of.RUN]
        if runs:
            steps = of.host_columns(runs)
            del steps["thread"]
            steps |= {"step": range(self._runs, self._runs + len(runs)), "anchor": of.RUN, "source": "recorded"}
            self._add("steps", len(runs), steps)
            self._runs += len(runs)

    def _add(self, table: str, rows: int, columns: dict[str, Any]) -> None:
        if self._out.wants(table):
            self._out.losses.see(table, rows)
            self._out.add(table, rows, columns)

    def _lose(self, name: str, event: Event) -> None:
        self._out.losses.see(event.cat)
        self._out.losses.count(name, category=event.cat, example=event.name)
