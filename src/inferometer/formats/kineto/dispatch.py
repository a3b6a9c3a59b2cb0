"""Which category of event goes to which tables, and what happens to events that go to none."""

from collections.abc import Callable
from functools import partial
from typing import Any

from inferometer.formats.kineto.columns import Columns
from inferometer.formats.kineto.events import Event
from inferometer.formats.kineto.header import FileHeader
from inferometer.formats.kineto.launch_columns import LAUNCH_KINDS
from inferometer.formats.kineto.memory import RECORDS
from inferometer.formats.kineto.metadata import take_names
from inferometer.formats.kineto.pairs import Pairs
from inferometer.trace.builder import TraceBuilder
from inferometer.trace.tables import ALL_TABLES

FLUSH_EVENTS = 16_384
_FLOWS = frozenset("stf")
_PAIRED = frozenset("BE")
_INSTANTS = frozenset("iIR")
_CALLS = (
    *("cuda_runtime", "cuda_driver", "hip_runtime", "hip_driver", "runtime", "glow_runtime", "mtia_runtime"),
    *("privateuse1_runtime", "privateuse1_driver", "xpu_runtime", "xpu_driver", "hpu_op"),
)
OPS = ("cpu_op", "operator")
_FRAMES = ("python_function", "python")
_HOST_SPANS = ("user_annotation", "trace", "overhead", "collective_comm", "mtia_insight")
_MEMORY = "cpu_instant_event"
_OF_MEMORY = ("counters", "memory_events")
_PROFILER_RANGE = "cuda_profiler_range"
_DEVICE_SPANS = ("gpu_user_annotation", "cuda_sync", "cuda_event", "xpu_sync")
_OF_HOST = frozenset({"", *_CALLS, *OPS, *_FRAMES, *_HOST_SPANS})

Tables = tuple[str, ...]
Handler = Callable[[list[Event], str], None]


class Sorter:
    """Collects events by category, and hands them on in large batches of one category and phase."""

    def __init__(self, out: TraceBuilder, header: FileHeader) -> None:
        self._out = out
        self._header = header
        self._everything = out.tables == ALL_TABLES
        self.columns = Columns(out, header)
        self._pairs = Pairs(out.losses, lambda category: self._reads(self._tables(category)))
        self._groups: dict[str, list[Event]] = {}
        self._held = 0
        self._handlers = self._table_handlers()

    def take(self, events: list[Any]) -> None:
        """Sort events in, of `Event` or `TypedEvent`. However they come, they go to their tables in equal batches."""
        while events:
            room = FLUSH_EVENTS - self._held
            taken, events = (events, []) if len(events) <= room else (events[:room], events[room:])
            self._sort(taken)
            self._held += len(taken)
            if self._held >= FLUSH_EVENTS:
                self.flush()

    def take_pairs(self, events: list[Event]) -> None:
        """Take begin and end events that were counted already."""
        self._pairs.add(events)

    @property
    def pairs(self) -> list[Event]:
        """The begin and end events so far, in the file's order."""
        return self._pairs.events

    def _sort(self, events: list[Any]) -> None:
        kinds: dict[Any, None] = dict.fromkeys(map(type, events))
        if Event in kinds:
            self._pairs.add([event for event in events if event.ph in _PAIRED])
            self._group(events)
            return
        for kind in kinds:
            self._groups.setdefault(kind.cat, []).extend([event for event in events if type(event) is kind])

    def _group(self, events: list[Any]) -> None:
        groups = self._groups
        for event in events:
            try:
                groups[event.cat].append(event)
            except KeyError:
                groups[event.cat] = [event]

    def flush(self) -> None:
        """Hand on everything collected so far."""
        groups, self._groups = self._groups, {}
        self._held = 0
        for events in groups.values():
            self.hand_on(events)

    def hand_on(self, events: list[Event]) -> None:
        """Hand on events of one category at once; begin and end events are only counted."""
        phases = dict.fromkeys([event.ph for event in events])
        for phase in phases:
            of_phase = events if len(phases) == 1 else [event for event in events if event.ph == phase]
            self._dispatch(phase, events[0].cat, of_phase)

    def count(self, category: str, n: int, *, are_arrows: bool) -> None:
        """Count events whose rows are added by others: complete ones, or arrows, which have none."""
        if are_arrows:
            self._count_dropped("flow_event", category, n)
            return
        self._see(category, self._tables(category), n)
        self._note_other(category, category, n)

    def finish(self) -> None:
        """Hand on the rest, begin/end pairs last."""
        self.flush()
        by_category: dict[str, list[Event]] = {}
        for event in self._pairs.complete():
            by_category.setdefault(event.cat, []).append(event)
        for category, events in by_category.items():
            self._complete(category, category or "ph B", events)

    def _dispatch(self, phase: str, category: str, events: list[Event]) -> None:
        label = events[0].category
        if phase == "X":
            self._see(label, self._tables(category), len(events))
            self._complete(category, label, events)
        elif phase in _PAIRED:
            self._see(label, self._tables(category), len(events))
        elif phase in _INSTANTS:
            records = [event for event in events if event.name in RECORDS] if category == _MEMORY else []
            marks = [event for event in events if event.name not in RECORDS] if records else events
            self._instants(records, label, _OF_MEMORY, self.columns.memory)
            self._instants(marks, label, ("spans",), self.columns.instants)
        elif phase == "C":
            self._see(label, ("counters",), len(events))
            if self._out.wants("counters"):
                self.columns.counters(events, label)
        else:
            self._drop(phase, label, events)

    def _instants(self, events: list[Event], label: str, tables: Tables, handler: Handler) -> None:
        self._see(label, tables, len(events))
        if events and self._out.wants(*tables):
            handler(events, label)

    def _complete(self, category: str, label: str, events: list[Event]) -> None:
        """Complete events: to their table, or counted as unknown."""
        known = self._handlers.get(category.lower())
        self._note_other(category, label, len(events))
        if known is None:
            if self._everything:
                self._out.losses.count("unknown_category", len(events), category=label, example=events[0].name)
            return
        tables, handler = known
        if self._out.wants(*tables):
            handler(events, label)

    def _note_other(self, category: str, label: str, n: int) -> None:
        if category.lower() not in _OF_HOST and category.lower() not in LAUNCH_KINDS:
            self._header.others[label] += n

    def _drop(self, phase: str, label: str, events: list[Event]) -> None:
        if phase == "M":
            take_names(events, self._header, self.columns.ids)
        name = "metadata_event" if phase == "M" else "flow_event" if phase in _FLOWS else "unknown_phase"
        self._count_dropped(name, label, len(events))

    def _count_dropped(self, name: str, label: str, n: int) -> None:
        if self._everything:
            self._out.losses.see(label, n)
            self._out.losses.count(name, n, category=label)

    def _see(self, label: str, tables: Tables | None, n: int) -> None:
        if self._reads(tables):
            self._out.losses.see(label, n)

    def _reads(self, tables: Tables | None) -> bool:
        return self._everything if tables is None else self._out.wants(*tables)

    def _tables(self, category: str) -> Tables | None:
        known = self._handlers.get(category.lower())
        return known[0] if known else None

    def _table_handlers(self) -> dict[str, tuple[Tables, Handler]]:
        columns = self.columns
        handlers: dict[str, tuple[Tables, Handler]] = {"": (("spans",), partial(columns.spans, domain=None))}
        for category, kind in LAUNCH_KINDS.items():
            tables = ("launches", "collectives") if kind == "kernel" else ("launches",)
            handlers[category] = (tables, partial(columns.launches, kind=kind))
        handlers |= dict.fromkeys(_CALLS, (("calls",), columns.calls))
        handlers |= dict.fromkeys(OPS, (("ops",), columns.ops))
        handlers |= dict.fromkeys(_FRAMES, (("frames",), columns.frames))
        for category in _HOST_SPANS:
            handlers[category] = (("spans",), partial(columns.spans, domain=category))
        for category in _DEVICE_SPANS:
            handlers[category] = (("spans",), partial(columns.device_spans, domain=category))
        handlers[_PROFILER_RANGE] = (("kernel_counters",), columns.profiler_ranges)
        return handlers
