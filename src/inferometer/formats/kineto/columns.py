"""Events of one category to columns of one table."""

from collections.abc import Sequence
from itertools import chain, compress

import msgspec
import numpy as np
import polars as pl
from msgspec import Raw
from numpy.typing import NDArray

from inferometer.formats.json_text.records import BAD_JSON
from inferometer.formats.json_text.repair import repair
from inferometer.formats.kineto.arguments import (
    COLLECTIVE_SIGN,
    EMPTY,
    SHAPES_SIGN,
    ArgsDecoder,
    CallArgs,
    CollectiveArgs,
    FrameArgs,
    LaunchArgs,
    MemoryArgs,
    OpArgs,
    ShapeArgs,
    TrackArgs,
    Triple,
)
from inferometer.formats.kineto.decimals import OUT_OF_RANGE, UNREADABLE
from inferometer.formats.kineto.events import Event
from inferometer.formats.kineto.header import FileHeader
from inferometer.formats.kineto.ids import AnyEvent, Ids, find_counted_device, find_devices, find_streams, numbers_in
from inferometer.formats.kineto.launch_columns import DEVICE_KINDS, LONGEST_NS
from inferometer.formats.kineto.memory import MemoryRecords
from inferometer.formats.kineto.numbers import parse_ns
from inferometer.trace.builder import TraceBuilder, Values

_MODULE = "nn.Module: "


class Columns:
    """Turns batches of events into rows of the builder's tables."""

    def __init__(self, out: TraceBuilder, header: FileHeader) -> None:
        self._out = out
        self._header = header
        self.ids = Ids(header, out.losses)
        self.call_processes: set[int | None] = set()
        self._launch_args = ArgsDecoder(LaunchArgs, out.losses)
        self._collective_args = ArgsDecoder(CollectiveArgs, out.losses)
        self._call_args = ArgsDecoder(CallArgs, out.losses)
        self._op_args = ArgsDecoder(OpArgs, out.losses)
        self._shape_args = ArgsDecoder(ShapeArgs, out.losses)
        self._frame_args = ArgsDecoder(FrameArgs, out.losses)
        self._track_args = ArgsDecoder(TrackArgs, out.losses)
        self._memory_args = ArgsDecoder(MemoryArgs, out.losses)
        self.records = MemoryRecords(out)
        self.ranges = 0

    def launches(self, events: list[Event], category: str, kind: str) -> None:
        """`kernel`, `gpu_memcpy`, `gpu_memset`."""
        events, times = self._timed(events, category)
        args = self._launch_args.decode(events, category)
        devices = find_devices(args, events, DEVICE_KINDS.get(category.lower(), "gpu"))
        self._add_launches(events, args, times, kind, devices)
        if kind == "kernel" and self._out.wants("collectives"):
            self._add_collectives(events, args, times["start_ns"], category, devices)

    def _add_launches(
        self,
        events: Sequence[AnyEvent],
        args: list[LaunchArgs],
        times: dict[str, Values],
        kind: str,
        devices: list[str | None],
    ) -> None:
        occupancy = [None if a.occupancy is None else a.occupancy / 100 for a in args]
        self._out.add(
            "launches",
            len(events),
            {
                "kind": kind,
                "kernel": _names(events),
                "device": devices,
                "context": [a.context for a in args],
                "stream": find_streams(args, events),
                "host": self.ids.hosts(events),
                **times,
                "queued_ns": [a.queued or None for a in args],
                "correlation_id": [a.correlation for a in args],
                "external_id": [a.old_external_id if a.external_id is None else a.external_id for a in args],
                "graph_id": [a.graph_id or None for a in args],
                "graph_node_id": [a.graph_node_id or None for a in args],
                "grid": _triples([a.grid for a in args]),
                "block": _triples([a.block for a in args]),
                "registers": [a.registers for a in args],
                "shared_bytes": [a.shared for a in args],
                "bytes": [a.bytes for a in args],
                "occupancy": occupancy,
            },
        )

    def _add_collectives(
        self,
        events: Sequence[AnyEvent],
        launch_args: list[LaunchArgs],
        start_ns: Values,
        category: str,
        devices: list[str | None],
    ) -> None:
        """A further row for each launch whose arguments name a collective."""
        naming = [isinstance(event.args, Raw) and COLLECTIVE_SIGN in bytes(event.args) for event in events]
        if not any(naming):
            return
        named, of_launches = list(compress(events, naming)), list(compress(launch_args, naming))
        args = self._collective_args.decode(named, category)
        self._out.add(
            "collectives",
            len(named),
            {
                "kernel": _names(named),
                "device": [*compress(devices, naming)],
                "stream": find_streams(of_launches, named),
                "start_ns": np.asarray(start_ns)[np.array(naming)],
                **{name: [getattr(each, name) for each in args] for name in CollectiveArgs.__struct_fields__},
            },
        )

    def calls(self, events: list[Event], category: str) -> None:
        """`cuda_runtime`, `cuda_driver`, `hip_runtime`."""
        events, times = self._timed(events, category)
        args = self._call_args.decode(events, category)
        processes = self.ids.processes(events)
        self.call_processes.update(processes)
        self._out.add(
            "calls",
            len(events),
            {
                "api": _names(events),
                "process": processes,
                "thread": self.ids.threads(events),
                **times,
                "correlation_id": [a.correlation for a in args],
                "external_id": [a.old_external_id if a.external_id is None else a.external_id for a in args],
                "kernel": [a.kernel for a in args],
                "grid": _triples([a.grid for a in args]),
                "block": _triples([a.block for a in args]),
                "stream": numbers_in([a.stream for a in args]),
                "bytes": [a.size if a.bytes is None else a.bytes for a in args],
            },
        )

    def ops(self, events: list[Event], category: str) -> None:
        """`cpu_op`."""
        events, times = self._timed(events, category)
        args = self._op_args.decode(events, category)
        self._out.add(
            "ops",
            len(events),
            {
                "op": _names(events),
                **self._where(events),
                **times,
                "external_id": [a.old_external_id if a.external_id is None else a.external_id for a in args],
                "record_function_id": [a.record_function_id or None for a in args],
                "input_dims": self._texts([a.dims or a.old_dims for a in args], category),
                "input_dtypes": self._texts([a.dtypes for a in args], category),
                "input_strides": self._texts([a.strides for a in args], category),
                "scalars": self._texts([a.scalars for a in args], category),
                "sequence_number": [a.sequence_number for a in args],
                "kernel_file": [a.kernel_file for a in args],
                "kernel_hash": [a.kernel_hash for a in args],
                "kernel_backend": [a.kernel_backend for a in args],
            },
        )

    def frames(self, events: list[Event], category: str) -> None:
        """`python_function`."""
        events, times = self._timed(events, category)
        args = self._frame_args.decode(events, category)
        names = pl.Series(_names(events), dtype=pl.String)
        self._out.add(
            "frames",
            len(events),
            {
                "frame": names,
                "module": pl.select(
                    pl.when(names.str.starts_with(_MODULE)).then(names.str.strip_prefix(_MODULE))
                ).to_series(),
                **self._where(events),
                **times,
                "frame_id": [a.frame_id for a in args],
                "parent": [a.parent for a in args],
            },
        )

    def spans(self, events: list[Event], category: str, domain: str | None) -> None:
        """Ranges on host threads."""
        events, times = self._timed(events, category)
        columns = {"span": _names(events), "domain": domain, **self._where(events), **times}
        self._out.add("spans", len(events), columns | self._shapes(events, category))

    def _shapes(self, events: list[Event], category: str) -> dict[str, Values]:
        """Of ranges, few of which have any."""
        if not any(SHAPES_SIGN in bytes(event.args) for event in events):
            return {}
        args = self._shape_args.decode(events, category)
        return {
            "input_dims": self._texts([a.dims for a in args], category),
            "input_dtypes": self._texts([a.dtypes for a in args], category),
        }

    def device_spans(self, events: list[Event], category: str, domain: str) -> None:
        """Ranges on a device's track: `gpu_user_annotation`, `cuda_sync`."""
        events, times = self._timed(events, category)
        args = self._track_args.decode(events, category)
        columns = {"span": _names(events), "domain": domain, "device": find_devices(args, events)}
        self._out.add("spans", len(events), {**columns, "stream": find_streams(args, events), **times})

    def instants(self, events: list[Event], category: str) -> None:
        """Marks without a length."""
        events, start_ns = self._started(events, category)
        columns = {"span": _names(events), "domain": "instant", **self._where(events)}
        self._out.add("spans", len(events), {**columns, "start_ns": start_ns, "dur_ns": 0})

    def memory(self, events: list[Event], category: str) -> None:
        """`cpu_instant_event`: the allocator's records."""
        events, start_ns = self._started(events, category)
        args = self._memory_args.decode(events, category)
        self.records.add(_names(events), args, start_ns, self._where(events))

    def counters(self, events: list[Event], category: str) -> None:
        """Phase C: one row for each series of the event's arguments.

        Hardware counters have a process `GPU 0 Counters`, and a series without a name.
        """
        events, start_ns = self._started(events, category)
        rows: list[tuple[str, str | None, int | None, int, float]] = []
        for event, time_ns in zip(events, start_ns.tolist(), strict=True):
            series = self._series(event)
            if not series:
                self._out.losses.count("counter_without_value", category=category, example=event.name)
            device = find_counted_device(event.pid)
            process = self.ids.process(event.pid) if device is None else None
            for key, value in series.items():
                single = len(series) == 1 and key in ("", "value", event.name)
                name = event.name if single else f"{event.name}.{key}"
                rows.append((name or key, device, process, time_ns, value))
        if rows:
            names = ("metric", "device", "process", "time_ns", "value")
            columns: dict[str, Values] = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
            self._out.add("counters", len(rows), columns)

    def profiler_ranges(self, events: list[Event], category: str) -> None:
        """`cuda_profiler_range`: one row for each metric of a kernel. CUPTI counts in base units, and names none.

        Its times aren't read: they are spaced evenly. Where CUPTI has no name, the kernel is `__missing__`.
        """
        rows: list[tuple[int, str, int | None, str, float]] = []
        for event in events:
            series = self._series(event)
            if event.name is None or not series:
                lost = "without_name" if event.name is None else "counter_without_value"
                self._out.losses.count(lost, category=category, example=event.name)
                continue
            process = self.ids.process(event.pid)
            rows += [(self.ranges, event.name, process, metric, value) for metric, value in series.items()]
            self.ranges += 1
        if rows:
            names = ("launch", "kernel", "process", "metric", "value")
            columns: dict[str, Values] = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
            self._out.add("kernel_counters", len(rows), columns)

    def _series(self, event: Event) -> dict[str, float]:
        text = repair(bytes(event.args or EMPTY), self._out.losses, category=event.category)
        try:
            values = msgspec.json.decode(text)
        except BAD_JSON:
            return {}
        if not isinstance(values, dict):
            return {}
        return {
            str(key): float(value)
            for key, value in values.items()
            if isinstance(value, int | float) and abs(value) < 1e308
        }

    def _texts(self, raws: list[Raw], category: str) -> list[str | None] | None:
        """JSON text as recorded; None when no event has any."""
        if not any(raws):
            return None
        try:
            together = b"\0".join(raws).decode().split("\0")
            if len(together) == len(raws):
                return [text or None for text in together]
            return [str(raw, "utf-8") if raw else None for raw in raws]
        except UnicodeDecodeError:
            texts = [str(raw, "utf-8", "replace") if raw else None for raw in raws]
            damaged = sum("\ufffd" in text for text in texts if text)
            self._out.losses.count("invalid_utf8", damaged, category=category)
            return texts

    def _where(self, events: Sequence[Event]) -> dict[str, Values]:
        return {"process": self.ids.processes(events), "thread": self.ids.threads(events)}

    def _timed(self, events: list[Event], category: str) -> tuple[list[Event], dict[str, Values]]:
        """Events with a start and a duration; the others are counted."""
        events, start_ns = self._started(events, category)
        dur_ns, states = parse_ns([event.dur for event in events])
        states[dur_ns > LONGEST_NS] = OUT_OF_RANGE
        good = (states == 0) & (dur_ns >= 0)
        if not good.all():
            count = self._out.losses.count
            count(
                "without_duration",
                int((states == UNREADABLE).sum()),
                category=category,
                example=_first(events, states == UNREADABLE),
            )
            count("time_out_of_range", int((states == OUT_OF_RANGE).sum()), category=category)
            count("negative_duration", int((dur_ns < 0).sum()), category=category, example=_first(events, dur_ns < 0))
            events, start_ns, dur_ns = _kept(events, good), start_ns[good], dur_ns[good]
        return events, {"start_ns": start_ns, "dur_ns": dur_ns}

    def _started(self, events: list[Event], category: str) -> tuple[list[Event], NDArray[np.int64]]:
        """Events with a name and a start; the others are counted."""
        named = [event for event in events if event.name is not None]
        self._out.losses.count("without_name", len(events) - len(named), category=category)
        start_ns, states = parse_ns([event.ts for event in named])
        good = states == 0
        if not good.all():
            count = self._out.losses.count
            count(
                "without_timestamp", int((states == UNREADABLE).sum()), category=category, example=_first(named, ~good)
            )
            count("time_out_of_range", int((states == OUT_OF_RANGE).sum()), category=category)
            named, start_ns = _kept(named, good), start_ns[good]
        return named, start_ns


def _names(events: Sequence[AnyEvent]) -> list[str]:
    return [event.name or "" for event in events]


def _kept(events: Sequence[Event], good: NDArray[np.bool_]) -> list[Event]:
    return [event for event, keep in zip(events, good.tolist(), strict=True) if keep]


def _first(events: Sequence[AnyEvent], bad: NDArray[np.bool_]) -> str | None:
    where = np.flatnonzero(bad)
    return (events[int(where[0])].name or "")[:80] if len(where) else None


def _triples(values: list[Triple | None]) -> pl.Series | None:
    """Grid or block sizes as an Array(3) column; None when there are none at all."""
    absent = [value is None for value in values]
    if all(absent):
        return None
    numbers = chain.from_iterable([value or (0, 0, 0) for value in values])
    flat = np.fromiter(numbers, np.int64, 3 * len(values)).reshape(-1, 3)
    series = pl.Series(flat, dtype=pl.Array(pl.Int64, 3))
    if any(absent):
        keep = pl.Series(absent).not_()
        series = pl.select(pl.when(keep).then(series).otherwise(None)).to_series()
    return series
