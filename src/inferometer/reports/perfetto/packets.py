"""A trace in Perfetto's own format (protobuf), which ui.perfetto.dev opens: slices, arrows, counters.

Source: `trace_packet.proto` and `track_event.proto` of Perfetto 59. Every row of launches, calls, ops, frames, spans,
host_events and steps is one slice with its columns as arguments (an instant where it takes 0 ns; none for a step whose
times aren't known; collectives are arguments of their launch), every finite value of counters a sample, and a launch
whose call is there gets an arrow from it. All ranks stand in one file. Perfetto's times can't be negative: a trace that
begins before 0 is moved to begin there.

Perfetto sorts packets by time and keeps the file's order among equal times. So all ends are written before all
beginnings, and these from the outermost table to the innermost. In memory are the times of all slices and the table
that is being written, sorted; never the whole output.
"""

from typing import BinaryIO

import numpy as np
import polars as pl
from numpy.typing import NDArray

from inferometer.analyses.timeline.collectives import join_collectives, recorded_collectives
from inferometer.reports.perfetto.lanes import assign_lanes
from inferometer.reports.perfetto.protobuf import (
    Columns,
    Integers,
    Mask,
    encode,
    fixed64,
    integers,
    joined,
    messages,
    repeated,
    same,
    small_messages,
)
from inferometer.reports.perfetto.slices import COUNTER_KEY, OUTER_FIRST, Slices, key_columns
from inferometer.reports.perfetto.tracks import Track, Tracks
from inferometer.trace.trace import Trace

BATCH_ROWS = 1 << 15
_PACKET = 1
_CLOCKS, _TIMESTAMP, _SEQUENCE, _EVENT, _INTERNED, _FLAGS, _DESCRIPTOR = 6, 8, 10, 11, 12, 13, 60
_CATEGORY, _ARGUMENT, _TYPE, _NAME, _TRACK, _VALUE, _FLOW_BEGINS, _FLOW_ENDS = 3, 4, 9, 10, 11, 44, 47, 48
_ARGUMENT_NAME, _WHOLE, _DOUBLE, _TEXT = 1, 4, 5, 17
_BEGIN, _END, _INSTANT, _COUNTER = 1, 2, 3, 4
_CLEARED, _CONTINUED = 1, 2
_REALTIME, _BOOTTIME = 1, 6
_NAMES_A_PACKET = 1_000
_CALL_KEY = ("rank", "process", "correlation_id")
Rows = dict[str, int]
Flows = tuple[int, Integers, Integers]  # the field, how many each row has, their ids in a row


def write_perfetto(trace: Trace, file: BinaryIO) -> Rows:
    """Write the whole trace; rows written by table."""
    return _Writer(trace, file).write()


class _Names:
    """Texts that packets name by a number, from 1; `field` is their place in the interned data."""

    def __init__(self, field: int) -> None:
        self.field = field
        self.numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        return self.numbers.setdefault(text, len(self.numbers) + 1)

    def add(self, texts: pl.Series) -> None:
        for text in texts.drop_nulls().unique(maintain_order=True):
            self.number(text)

    def find(self, texts: pl.Series) -> Integers:
        """The number of each text, 0 for null."""
        used = texts.drop_nulls().unique()
        numbers = pl.Series([self.numbers[text] for text in used], dtype=pl.Int64)
        return texts.replace_strict(used, numbers, default=0, return_dtype=pl.Int64).to_numpy()


class _Writer:
    def __init__(self, trace: Trace, file: BinaryIO) -> None:
        self._trace = trace
        self._file = file
        self._tracks = Tracks(trace.facts)
        self._categories, self._names, self._arguments, self._texts = _Names(1), _Names(2), _Names(3), _Names(29)
        self._slices = [slices for slices in OUTER_FIRST if slices.table in trace.scope]
        self._recorded = recorded_collectives(trace)
        window = trace.window()
        self._first_ns = window[0] if window else 0
        self._shift_ns = max(0, -self._first_ns)

    def write(self) -> Rows:
        placed = [self._place(slices) for slices in self._slices]
        uuids = self._lay_out(placed)
        counters = self._place_counters()
        self._write_head()
        for (_, starts, ends), own in zip(placed, uuids, strict=True):
            self._write_ends(ends[ends > starts], own[ends > starts])
        flows = self._find_flows()
        for slices, own in zip(self._slices, uuids, strict=True):
            self._write_begins(slices, own, flows.get(slices.table))
        rows = {slices.table: len(own) for slices, own in zip(self._slices, uuids, strict=True)}
        if {"launches", "collectives"} <= self._trace.scope:
            rows["collectives"] = int(self._ordered("launches").select(pl.col("is_collective").sum()).collect().item())
        return {table: n for table, n in (rows | {"counters": self._write_counters(counters)}).items() if n}

    def _place(self, slices: Slices) -> tuple[Integers, Integers, Integers]:
        """Track, start and end of each row, in the order in which they are written; takes up the names used."""
        texts = [pl.col(name) for name in slices.texts]
        named = (slices.name.alias("name"), slices.category.alias("category"))
        end = (pl.col("start_ns") + pl.col("dur_ns")).alias("end_ns")
        frame = self._ordered(slices.table).select(*key_columns(slices.key), *named, *texts, "start_ns", end).collect()
        self._names.add(frame["name"])
        self._categories.add(frame["category"])
        for name in slices.texts:
            self._texts.add(frame[name])
        for name in slices.arguments():
            self._arguments.number(name)
        return self._track_numbers(frame), frame["start_ns"].to_numpy(), frame["end_ns"].to_numpy()

    def _ordered(self, table: str) -> pl.LazyFrame:
        placed = pl.col("start_ns").is_not_null() & pl.col("dur_ns").is_not_null()  # a step's times may be unknown
        rows = self._trace.tables[table]
        if table == "launches":
            rows = join_collectives(rows, self._recorded)
        by_time = rows.filter(placed) if table == "steps" else rows
        return by_time.sort("start_ns", "dur_ns", descending=[False, True], maintain_order=True)

    def _track_numbers(self, frame: pl.DataFrame) -> Integers:
        names = [name for name in frame.columns if name.startswith("key_")]
        keys = frame.select(names).unique(maintain_order=True)
        numbers = [self._tracks.number(Track(*row)) for row in keys.iter_rows()]
        keys = keys.with_columns(pl.Series("number", numbers, dtype=pl.Int64))
        found = frame.select(names).join(keys, on=names, how="left", nulls_equal=True, maintain_order="left")
        return found["number"].to_numpy()

    def _lay_out(self, placed: list[tuple[Integers, Integers, Integers]]) -> list[Integers]:
        """The uuid of each slice's track, such that slices of one track nest."""
        if not placed:
            return []
        tracks, starts, ends = (np.concatenate(each) for each in zip(*placed, strict=True))
        long = np.flatnonzero(ends > starts)
        order = long[np.lexsort((starts[long], tracks[long]))]
        lanes = np.zeros(len(tracks), np.int64)
        for own in np.split(order, np.flatnonzero(np.diff(tracks[order])) + 1):
            lanes[own] = assign_lanes(starts[own], ends[own])
        width = int(lanes.max(initial=0)) + 1
        used, which = np.unique(tracks * width + lanes, return_inverse=True)
        uuids = np.array([self._tracks.uuid(*divmod(place, width)) for place in used.tolist()], np.int64)
        sizes = [len(each) for each, _, _ in placed]
        return np.split(uuids[which], np.cumsum(sizes)[:-1])

    def _write_head(self) -> None:
        """Clocks, tracks and names, which all other packets refer to."""
        base_ns = self._trace.facts.clock_base_ns
        if base_ns is not None and self._first_ns + base_ns >= 0:
            clocks = [(_BOOTTIME, self._first_ns + self._shift_ns), (_REALTIME, self._first_ns + base_ns)]
            self._write({_CLOCKS: encode({1: [encode({1: clock, 2: time}) for clock, time in clocks]})})
        for descriptor in self._tracks.describe():
            self._write({_DESCRIPTOR: descriptor})
        self._write({_FLAGS: _CLEARED})
        for names in (self._categories, self._names, self._arguments, self._texts):
            entries = [encode({1: number, 2: text}) for text, number in names.numbers.items()]
            for i in range(0, len(entries), _NAMES_A_PACKET):
                data = encode({names.field: entries[i : i + _NAMES_A_PACKET]})
                self._write({_FLAGS: _CONTINUED, _INTERNED: data})

    def _write(self, packet: dict[int, int | bytes]) -> None:
        self._file.write(encode({_PACKET: encode({_SEQUENCE: 1, **packet})}))

    def _write_events(self, times: Integers, *fields: Columns) -> None:
        """A packet with a track event for each row."""
        usual = same(encode({_SEQUENCE: 1, _FLAGS: _CONTINUED}), len(times))
        event = messages(_EVENT, joined(*fields))
        packet = joined(integers(_TIMESTAMP, times + self._shift_ns), usual, event)
        self._file.write(messages(_PACKET, packet).data.data)

    def _write_ends(self, ends: Integers, uuids: Integers) -> None:
        for i in range(0, len(ends), BATCH_ROWS):
            batch = slice(i, i + BATCH_ROWS)
            kind = same(encode({_TYPE: _END}), len(ends[batch]))
            self._write_events(ends[batch], kind, integers(_TRACK, uuids[batch]))

    def _write_begins(self, slices: Slices, uuids: Integers, flows: Flows | None) -> None:
        named = {"name": slices.name, "category": slices.category, "start": pl.col("start_ns"), "dur": pl.col("dur_ns")}
        columns = [expression.alias(f"slice {name}") for name, expression in named.items()]
        arguments = [expression.alias(name) for name, expression in slices.arguments().items()]
        frame = self._ordered(slices.table).select(*columns, *arguments).collect()
        names = self._names.find(frame["slice name"])
        categories = self._categories.find(frame["slice category"])
        kinds = np.where(frame["slice dur"].to_numpy() > 0, _BEGIN, _INSTANT)
        for i in range(0, frame.height, BATCH_ROWS):
            rows = slice(i, min(i + BATCH_ROWS, frame.height))
            batch = frame[rows]
            found = (self._argument(batch[name]) for name in slices.arguments())
            self._write_events(
                batch["slice start"].to_numpy(),
                integers(_TYPE, kinds[rows]),
                integers(_TRACK, uuids[rows]),
                integers(_NAME, names[rows]),
                integers(_CATEGORY, categories[rows]),
                *(argument for argument in found if argument),
                *([] if flows is None else [_flow_columns(flows, rows)]),
            )

    def _argument(self, values: pl.Series) -> Columns | None:
        """A debug annotation of each row whose value isn't null; None when all are."""
        nulls = values.null_count()
        if nulls == len(values):
            return None
        present: Mask | None = values.is_not_null().to_numpy() if nulls else None
        name = encode({_ARGUMENT_NAME: self._arguments.number(values.name)})
        if values.dtype == pl.String:
            return small_messages(_ARGUMENT, name, _TEXT, self._texts.find(values), present)
        numbers = (values.fill_null(0) if nulls else values).to_numpy()
        return small_messages(_ARGUMENT, name, _DOUBLE if values.dtype == pl.Float64 else _WHOLE, numbers, present)

    def _find_flows(self) -> dict[str, Flows]:
        """An arrow from each launch's call: its id is the launch's position, from 1."""
        if not {"launches", "calls"} <= self._trace.scope:
            return {}
        launches, calls = (
            self._ordered(table).select(_CALL_KEY).with_row_index(table).filter(pl.col("correlation_id").is_not_null())
            for table in ("launches", "calls")
        )
        calls = calls.unique(_CALL_KEY, keep="first", maintain_order=True)
        pairs = launches.join(calls, on=_CALL_KEY, nulls_equal=True).sort("calls", "launches").collect()
        rows = {name: self._trace.tables[name].select(pl.len()).collect().item() for name in ("launches", "calls")}
        ids = pairs["launches"].to_numpy().astype(np.int64) + 1
        counts = {name: np.bincount(pairs[name].to_numpy(), minlength=n) for name, n in rows.items()}
        return {
            "calls": (_FLOW_BEGINS, counts["calls"], ids),
            "launches": (_FLOW_ENDS, counts["launches"], np.sort(ids)),
        }

    def _place_counters(self) -> list[tuple[int, Integers, NDArray[np.float64]]]:
        """Uuid, times and values of each counter's samples, those without a finite value left out."""
        if "counters" not in self._trace.scope:
            return []
        samples = self._trace.tables["counters"].filter(pl.col("value").is_finite())
        frame = samples.select(*key_columns(COUNTER_KEY), "time_ns", "value").collect()
        uuids = [self._tracks.uuid(number) for number in self._track_numbers(frame).tolist()]
        parts = frame.with_columns(pl.Series("uuid", uuids, dtype=pl.Int64)).partition_by("uuid", maintain_order=True)
        return [(part["uuid"][0], part["time_ns"].to_numpy(), part["value"].to_numpy()) for part in parts]

    def _write_counters(self, counters: list[tuple[int, Integers, NDArray[np.float64]]]) -> int:
        for uuid, times, values in counters:
            for i in range(0, len(times), BATCH_ROWS):
                batch = slice(i, i + BATCH_ROWS)
                kind = same(encode({_TYPE: _COUNTER, _TRACK: uuid}), len(times[batch]))
                self._write_events(times[batch], kind, fixed64(_VALUE, values[batch]))
        return sum(len(times) for _, times, _ in counters)


def _flow_columns(flows: Flows, rows: slice) -> Columns:
    field, counts, ids = flows
    begin = int(counts[: rows.start].sum())
    own = counts[rows]
    return repeated(fixed64(field, ids[begin : begin + int(own.sum())]), own)
