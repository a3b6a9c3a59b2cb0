"""Slices and samples to rows of tables."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from inferometer.formats.perfetto import arguments
from inferometer.formats.perfetto.categories import domain_of, kind_of, table_of
from inferometer.formats.perfetto.events import CATEGORY, END, INSTANT, NO_TEXT, Events
from inferometer.formats.perfetto.slices import find_ends
from inferometer.formats.perfetto.tracks import Place, Tracks, find_device
from inferometer.formats.rocprof.rows import copy_names
from inferometer.trace.builder import TraceBuilder, Values

Numbers = NDArray[np.int64]
_LONGEST_NS = 2**53  # 104 days
_ARGUMENTS: Mapping[str, Sequence[str]] = {  # columns that are arguments as they are
    "launches": (
        *("context", "queued_ns", "external_id", "graph_id", "graph_node_id", "registers", "accum_registers"),
        *("scalar_registers", "shared_bytes", "scratch_bytes", "bytes", "occupancy"),
    ),
    "calls": ("external_id", "path_id", "kernel", "stream", "bytes"),
    "ops": (
        *("external_id", "parent", "sequence_number", "input_dims", "input_dtypes", "input_strides", "scalars"),
        *("kernel_file", "kernel_hash", "kernel_backend"),
    ),
    "frames": ("frame_id", "parent"),
}
_NAMED = {"launches": "kernel", "calls": "api", "ops": "op", "frames": "frame", "spans": "span"}
_CODE = r"(?: \[clone \.kd\]|\.kd)$"  # what AMD's names of kernels end in


class Rows:
    """Hands over what was collected. `names_agents`: devices have numbers of AMD's agents."""

    def __init__(self, events: Events, texts: Sequence[str], tracks: Tracks, out: TraceBuilder) -> None:
        self._events = events
        self._arguments = events.arguments
        self._texts = pl.Series(texts, dtype=pl.String)
        self._out = out
        self._tracks = [tracks.place(uuid) for uuid in events.tracks]
        self._metrics = [tracks.metric(uuid) for uuid in events.tracks]
        self._columns = events.columns()
        self.joins_by_flow = self.names_agents = False

    def add(self) -> None:
        """All tables."""
        self._slices()
        self._samples()

    def _slices(self) -> None:
        columns, losses = self._columns, self._out.losses
        has_end, end_ns, orphans = find_ends(columns["track"], columns["time"], columns["kind"])
        self._see(CATEGORY, orphans)
        losses.count("end_without_begin", orphans, category=CATEGORY)
        rows = np.flatnonzero(columns["kind"] != END)
        is_instant = columns["kind"][rows] == INSTANT
        ends = np.where(is_instant, columns["time"][rows], end_ns[rows])
        ends, is_known = self._by_their_own_times(rows, ends, has_end[rows] | is_instant)
        tables = self._tables(rows)
        self.names_agents = any(place.is_agent for place in self._places(rows[tables == "launches"]))
        self.joins_by_flow = not self._arguments.has("correlation_id") and self._arguments.has(arguments.FLOW)
        if not self.joins_by_flow:
            self._see("flow", self._events.flows)
            losses.count("flow_event", self._events.flows, category="flow")
        for table in _NAMED:
            here = tables == table
            if self._out.wants(table):
                self._add(table, rows[here], ends[here], is_known[here])
        self._count_unread(rows[tables == ""])

    def _by_their_own_times(
        self, rows: Numbers, ends: Numbers, is_known: NDArray[np.bool_]
    ) -> tuple[Numbers, NDArray[np.bool_]]:
        """Ends that slices name themselves: what overlaps on a track is paired with another's end."""
        begin, end = (self._arguments.of(name, rows) for name in (arguments.BEGIN, arguments.END))
        if begin is None or end is None:
            return ends, is_known
        starts = self._columns["time"][rows].tolist()
        named = [
            (i, own)
            for i, (first, own, start) in enumerate(zip(begin, end, starts, strict=True))
            if first == start and isinstance(own, int) and start <= own < start + _LONGEST_NS
        ]
        if not named:
            return ends, is_known
        places, own_ends = np.array(named, np.int64).T
        differ = int(((ends[places] != own_ends) & is_known[places]).sum())
        self._out.losses.count("end_of_another_slice", differ, category="launches")
        ends, is_known = ends.copy(), is_known.copy()
        ends[places], is_known[places] = own_ends, True
        return ends, is_known

    def _tables(self, rows: Numbers) -> NDArray[np.str_]:
        """The table of each slice; empty: none."""
        track, category = self._columns["track"][rows], self._columns["category"][rows]
        on_device = np.array([place.device is not None for place in self._tracks], np.bool_)[track]
        pairs, places = np.unique(np.stack([category, on_device]), axis=1, return_inverse=True)
        found = [table_of(self._text(number), is_on_device=bool(device)) or "" for number, device in pairs.T.tolist()]
        return np.array(found, dtype=np.str_)[places.ravel()] if found else np.array([], np.str_)

    def _add(self, table: str, rows: Numbers, ends: Numbers, has_end: NDArray[np.bool_]) -> None:
        """The rows of one table; slices without an end, a name or a possible duration are counted."""
        losses, start = self._out.losses, self._columns["time"][rows]
        self._see(table, len(rows))
        reasons = {
            "begin_without_end": ~has_end,
            "without_name": self._columns["name"][rows] == NO_TEXT,
            "time_out_of_range": has_end & (ends - start > _LONGEST_NS),
        }
        kept = np.ones(len(rows), np.bool_)
        for name, is_bad in reasons.items():
            losses.count(name, int((is_bad & kept).sum()), category=table)
            kept &= ~is_bad
        rows, start, ends = rows[kept], start[kept], ends[kept]
        if not len(rows):
            return
        columns: dict[str, Values] = {_NAMED[table]: self._names(rows), "start_ns": start, "dur_ns": ends - start}
        for name in _ARGUMENTS.get(table, ()):
            values = self._arguments.of(name, rows)
            if values is not None:
                columns[name] = values if name in arguments.TEXTS else [_number(value) for value in values]
        columns |= self._launch(rows) if table == "launches" else self._host(table, rows)
        self._out.add(table, len(rows), columns)

    def _names(self, rows: Numbers) -> pl.Series:
        return self._texts.gather(self._columns["name"][rows]).cast(pl.Categorical)

    def _launch(self, rows: Numbers) -> dict[str, Values]:
        categories = [self._text(number) for number in self._columns["category"][rows].tolist()]
        kinds = [kind_of(category) for category in categories]
        names = self._texts.gather(self._columns["name"][rows])
        copies = pl.Series(kinds) == "memcpy"
        plain = names.str.replace(_CODE, "").zip_with(~copies, copy_names(names).cast(pl.String))
        places = self._places(rows)
        columns: dict[str, Values] = {"kind": kinds, "kernel": plain.cast(pl.Categorical)}
        columns |= {
            name: [getattr(each, name) for each in places] for name in ("device", "rank", "host", "queue", "stream")
        }
        own = self._arguments.of("process", rows) or [None] * len(rows)
        columns["process"] = [
            _number(given) if place.process is None else place.process for given, place in zip(own, places, strict=True)
        ]
        if all(place.stream is None for place in places):
            columns["stream"] = columns["queue"]
        sizes = {"grid": self._size("grid", rows), "block": self._size("block", rows)}
        return columns | self._correlation(rows) | {name: size for name, size in sizes.items() if size is not None}

    def _places(self, rows: Numbers) -> list[Place]:
        """Where each launch ran: by its track, and where that doesn't say, by its arguments."""
        nothing: list[arguments.Value] = [None] * len(rows)
        agents, queues, streams = (self._arguments.of(name, rows) or nothing for name in ("agent", "queue", "stream"))
        known: dict[tuple[int, arguments.Value, arguments.Value, arguments.Value], Place] = {}
        keys = list(zip(self._columns["track"][rows].tolist(), agents, queues, streams, strict=True))
        for key in dict.fromkeys(keys):
            track, agent, queue, stream = key
            known[key] = _place_of(self._tracks[track], agent, _whole(queue), _whole(stream))
        return [known[key] for key in keys]

    def _size(self, name: str, rows: Numbers) -> list[list[int] | None] | None:
        axes = [self._arguments.of(f"{name}_{axis}", rows) for axis in "xyz"]
        if any(axis is None for axis in axes):
            return None
        triples = zip(*(axis for axis in axes if axis is not None), strict=True)
        return [
            [value for value in triple if isinstance(value, int)]
            if all(isinstance(value, int) and abs(value) < 1 << 62 for value in triple)
            else None
            for triple in triples
        ]

    def _correlation(self, rows: Numbers) -> dict[str, Values]:
        """By the id that the file gives; where it gives none at all, by the flow from call to launch."""
        values = self._arguments.of(arguments.FLOW if self.joins_by_flow else "correlation_id", rows)
        return {} if values is None else {"correlation_id": [_number(value) or None for value in values]}

    def _host(self, table: str, rows: Numbers) -> dict[str, Values]:
        places = [self._tracks[number] for number in self._columns["track"][rows].tolist()]
        columns: dict[str, Values] = {
            name: [getattr(place, name) for place in places] for name in ("process", "thread", "rank")
        }
        if table == "calls":
            columns |= self._correlation(rows)
        if table == "spans":
            columns["device"] = [place.device for place in places]
            columns["stream"] = [None if place.device is None else place.stream for place in places]
            numbers = self._columns["category"][rows].tolist()
            domains = {number: domain_of(self._text(number)) for number in set(numbers)}
            columns["domain"] = [domains[number] for number in numbers]
        return columns

    def _samples(self) -> None:
        if not self._out.wants("counters"):
            return
        track, time_ns, value = self._events.samples()
        losses = self._out.losses
        self._see("counters", len(track))
        for number in np.unique(track).tolist():
            place, metric = self._tracks[number], self._metrics[number]
            here = np.flatnonzero(track == number)
            here = here[np.argsort(time_ns[here], kind="stable")]
            if metric is None:
                losses.count("without_name", len(here), category="counters")
                continue
            values = value[here] * metric.factor
            is_number = np.isfinite(values)
            losses.count("counter_without_value", int((~is_number).sum()), category="counters", example=metric.name)
            here, values = here[is_number], values[is_number]
            self._out.add(
                "counters",
                len(here),
                {
                    "metric": metric.name,
                    "device": place.device,
                    "rank": place.rank,
                    "process": place.process,
                    "time_ns": time_ns[here],
                    "value": np.cumsum(values) if metric.is_incremental else values,
                    "unit": metric.unit,
                },
            )

    def _count_unread(self, rows: Numbers) -> None:
        numbers, counts = np.unique(self._columns["category"][rows], return_counts=True)
        for number, n in zip(numbers.tolist(), counts.tolist(), strict=True):
            self._see(self._text(number), n)
            self._out.losses.count("unknown_category", n, category=self._text(number))

    def _see(self, category: str, n: int) -> None:
        if n:
            self._out.losses.see(category, n)

    def _text(self, number: int) -> str:
        return "" if number == NO_TEXT else str(self._texts[number])


def _place_of(track: Place, agent: arguments.Value, queue: int | None, stream: int | None) -> Place:
    """A track's place with what a launch's arguments add."""
    found: dict[str, Any] = {"queue": queue, "stream": stream}
    if track.device is None and agent is not None:
        named = (f"gpu:{agent}", True) if isinstance(agent, int) else find_device(str(agent))
        found |= dict(zip(("device", "is_agent"), named, strict=True))
    return replace(track, **{name: value for name, value in found.items() if value is not None})


def _whole(value: arguments.Value) -> int | None:
    number = _number(value)
    return number if isinstance(number, int) else None


def _number(value: arguments.Value) -> int | float | None:
    """A number, also one that is written as text."""
    if isinstance(value, str):
        return int(value) if value.isdecimal() and len(value) < 19 else None
    return value
