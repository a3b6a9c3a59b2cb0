"""Events of one category to columns of one table.

Each category decodes only its own arguments, all events of a batch in one call. A batch that doesn't decode goes event
by event; a field of an unexpected type becomes null and is counted.
"""

import re
import zlib
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import msgspec
import numpy as np
import polars as pl
from msgspec import Raw, field
from numpy.typing import NDArray

from inferometer.formats.kineto.events import BAD_JSON, Event, Int64
from inferometer.formats.kineto.header import Header
from inferometer.formats.kineto.numbers import OUT_OF_RANGE, UNREADABLE, parse_ns
from inferometer.formats.kineto.repair import repair
from inferometer.trace.builder import TraceBuilder, Values
from inferometer.trace.facts import NamedId

_Id = Int64 | str | None
_Triple = tuple[Int64, Int64, Int64]
_NONE = Raw(b"")
_EMPTY = b"{}"
_HOST_PID = re.compile(r"(.+)\((-?\d{1,18})\)")
_NUMBERED = re.compile(r"(?:stream|thread|pid|process|gpu|queue) *(\d+)", re.IGNORECASE)
_MODULE = "nn.Module: "
LAUNCH_KINDS = {
    "kernel": "kernel",
    "gpu_memcpy": "memcpy",
    "gpu_memset": "memset",
    "memcpy": "memcpy",
    "memset": "memset",
}
_LONGEST_NS = 2**53  # 104 days: a thousand such durations still add up within 64 bits


class LaunchArgs(msgspec.Struct, gc=False):
    """Arguments of device work."""

    external_id: int | None = field(default=None, name="External id")
    queued: int | None = None
    device: _Id = None
    context: int | None = None
    stream: _Id = None
    correlation: int | None = None
    registers: int | None = field(default=None, name="registers per thread")
    shared: int | None = field(default=None, name="shared memory")
    grid: _Triple | None = None
    block: _Triple | None = None
    occupancy: float | None = field(default=None, name="est. achieved occupancy %")
    graph_id: int | None = field(default=None, name="graph id")
    graph_node_id: int | None = field(default=None, name="graph node id")
    bytes: int | None = None
    old_external_id: int | None = field(default=None, name="external id")


class LaunchEvent(msgspec.Struct, gc=False):
    """An event of device work with its arguments decoded in the same pass; otherwise as `Event`."""

    ph: str = ""
    cat: str = ""
    name: str | None = None
    pid: _Id = None
    tid: _Id = None
    ts: Raw = _NONE
    dur: Raw = _NONE
    args: LaunchArgs = field(default_factory=LaunchArgs)


decode_launches = msgspec.json.Decoder(list[LaunchEvent], strict=False).decode


class CallArgs(msgspec.Struct, gc=False):
    """Arguments of a driver or runtime call."""

    external_id: int | None = field(default=None, name="External id")
    correlation: int | None = None
    kernel: str | None = None
    grid: _Triple | None = None
    block: _Triple | None = None
    stream: _Id = None
    bytes: int | None = None
    size: int | None = None
    old_external_id: int | None = field(default=None, name="external id")


class OpArgs(msgspec.Struct, gc=False):
    """Arguments of a framework operator; shapes stay JSON text."""

    external_id: int | None = field(default=None, name="External id")
    scalars: Raw = field(default=_NONE, name="Concrete Inputs")
    dtypes: Raw = field(default=_NONE, name="Input type")
    strides: Raw = field(default=_NONE, name="Input Strides")
    dims: Raw = field(default=_NONE, name="Input Dims")
    sequence_number: int | None = field(default=None, name="Sequence number")
    kernel_file: str | None = None
    kernel_hash: str | None = None
    kernel_backend: str | None = None
    old_dims: Raw = field(default=_NONE, name="Input dims")
    old_external_id: int | None = field(default=None, name="external id")


class FrameArgs(msgspec.Struct, gc=False):
    """Arguments of a Python frame."""

    parent: int | None = field(default=None, name="Python parent id")
    frame_id: int | None = field(default=None, name="Python id")


class TrackArgs(msgspec.Struct, gc=False):
    """Arguments of an event on a device's track."""

    device: _Id = None
    stream: _Id = None


class MemoryArgs(msgspec.Struct, gc=False):
    """Arguments of a memory record."""

    total: int | None = field(default=None, name="Total Allocated")
    device: int | None = field(default=None, name="Device Id")
    device_type: int | None = field(default=None, name="Device Type")


A = TypeVar("A", bound=msgspec.Struct)
AnyEvent = Event | LaunchEvent
E = TypeVar("E", Event, LaunchEvent)


class ArgsDecoder(Generic[A]):
    """Decodes the arguments of a batch of events into structs of one type; quoted numbers are numbers."""

    def __init__(self, kind: type[A], out: TraceBuilder) -> None:
        self._kind = kind
        self._many: Callable[[bytes], list[A]] = msgspec.json.Decoder(list[kind], strict=False).decode  # type: ignore[valid-type]
        self._one: Callable[[bytes], A] = msgspec.json.Decoder(kind, strict=False).decode
        self._losses = out.losses

    def decode(self, events: Sequence[Event], category: str) -> list[A]:
        """One struct an event, in order."""
        texts = [event.args or _EMPTY for event in events]
        try:
            return self._many(b"[" + b",".join(texts) + b"]")
        except BAD_JSON:
            return [self._decode_one(bytes(text), category) for text in texts]

    def _decode_one(self, text: bytes, category: str) -> A:
        try:
            return self._one(text)
        except BAD_JSON:
            pass
        text = repair(text, self._losses, category=category)
        try:
            return self._one(text)
        except BAD_JSON:
            return self._loose(text, category)

    def _loose(self, text: bytes, category: str) -> A:
        """Field by field; what has the wrong type is left out and counted."""
        try:
            fields = msgspec.json.decode(text, type=dict[str, Raw])
        except BAD_JSON:
            if text != b"null":
                self._losses.count(
                    "wrong_type", category=f"{category}.args", example=text[:80].decode("utf-8", "replace")
                )
            return self._kind()
        values = {}
        for info in msgspec.structs.fields(self._kind):
            raw = fields.get(info.encode_name)
            if raw is None:
                continue
            try:
                values[info.name] = msgspec.json.decode(raw, type=info.type, strict=False)
            except BAD_JSON:
                example = bytes(raw)[:60].decode("utf-8", "replace")
                self._losses.count("wrong_type", category=f"{category}.{info.encode_name}", example=example)
        return self._kind(**values)


class Ids:
    """Process and thread ids as numbers. Text ids get a negative number of their own and a name in the facts."""

    def __init__(self, header: Header, out: TraceBuilder) -> None:
        self._header = header
        self._losses = out.losses
        self._known: dict[tuple[str, bool], int | None] = {}

    def processes(self, events: Sequence[Event]) -> list[int | None]:
        """The process of each event; `host(123)` is process 123 of that host."""
        return self._numbers([event.pid for event in events], self._name_process)

    def threads(self, events: Sequence[Event]) -> list[int | None]:
        """The thread of each event."""
        return self._numbers([event.tid for event in events], self._name_thread)

    def hosts(self, events: Sequence[AnyEvent]) -> list[str | None] | None:
        """The host that each `host(123)` names, or None when no event names one."""
        pids = {event.pid for event in events}
        named = {pid: match[1] for pid in pids if isinstance(pid, str) and (match := _HOST_PID.fullmatch(pid))}
        self._header.hosts.update(named.values())
        return [named.get(event.pid) for event in events] if named else None  # type: ignore[arg-type]

    def process(self, pid: _Id) -> int | None:
        """One process id."""
        return pid if not isinstance(pid, str) else self._number(pid, self._name_process)

    def thread(self, tid: _Id) -> int | None:
        """One thread id."""
        return tid if not isinstance(tid, str) else self._number(tid, self._name_thread)

    def _numbers(self, ids: list[_Id], name: Callable[[int, str], None]) -> list[int | None]:
        if not any(isinstance(each, str) for each in set(ids)):
            return ids  # type: ignore[return-value]
        return [self._number(each, name) if isinstance(each, str) else each for each in ids]

    def _number(self, text: str, name: Callable[[int, str], None]) -> int | None:
        key = (text, name == self._name_process)
        if key in self._known:
            return self._known[key]
        number: int | None
        if text == "":
            number = None
        elif match := _HOST_PID.fullmatch(text):
            number = int(match[2])
        elif text.removeprefix("-").isdecimal() and len(text) < 19:
            number = int(text)
        else:
            number = -1 - zlib.crc32(text.encode("utf-8", "replace"))
            name(number, text)
            self._losses.count("text_id", example=text[:80])
        self._known[key] = number
        return number

    def _name_process(self, number: int, text: str) -> None:
        self._header.processes.setdefault(number, NamedId(number, name=text))

    def _name_thread(self, number: int, text: str) -> None:
        self._header.threads.setdefault((None, number), NamedId(None, number, name=text))


class Columns:
    """Turns batches of events into rows of the builder's tables."""

    def __init__(self, out: TraceBuilder, header: Header) -> None:
        self._out = out
        self._header = header
        self.ids = Ids(header, out)
        self.call_processes: set[int | None] = set()
        self._launch_args = ArgsDecoder(LaunchArgs, out)
        self._call_args = ArgsDecoder(CallArgs, out)
        self._op_args = ArgsDecoder(OpArgs, out)
        self._frame_args = ArgsDecoder(FrameArgs, out)
        self._track_args = ArgsDecoder(TrackArgs, out)
        self._memory_args = ArgsDecoder(MemoryArgs, out)

    def launches(self, events: list[Event], category: str, kind: str) -> None:
        """`kernel`, `gpu_memcpy`, `gpu_memset`."""
        events, times = self._timed(events, category)
        self._add_launches(events, self._launch_args.decode(events, category), times, kind)

    def decoded_launches(self, events: list[LaunchEvent], category: str) -> None:
        """The same from events whose arguments are decoded."""
        events, times = self._timed(events, category)
        self._add_launches(events, [event.args for event in events], times, LAUNCH_KINDS[category])

    def _add_launches(
        self, events: Sequence[AnyEvent], args: list[LaunchArgs], times: dict[str, Values], kind: str
    ) -> None:
        occupancy = [None if a.occupancy is None else a.occupancy / 100 for a in args]
        self._out.add(
            "launches",
            len(events),
            {
                "kind": kind,
                "kernel": _names(events),
                "device": _devices(args, events),
                "context": [a.context for a in args],
                "stream": _streams(args, events),
                "rank": self._header.rank,
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
                "stream": [_number_in(a.stream) for a in args],
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
        names = _names(events)
        self._out.add(
            "frames",
            len(events),
            {
                "frame": names,
                "module": [name[len(_MODULE) :] if name.startswith(_MODULE) else None for name in names],
                **self._where(events),
                **times,
                "frame_id": [a.frame_id for a in args],
                "parent": [a.parent for a in args],
            },
        )

    def spans(self, events: list[Event], category: str, domain: str | None) -> None:
        """Ranges on host threads."""
        events, times = self._timed(events, category)
        self._out.add("spans", len(events), {"span": _names(events), "domain": domain, **self._where(events), **times})

    def device_spans(self, events: list[Event], category: str, domain: str) -> None:
        """Ranges on a device's track: `gpu_user_annotation`, `cuda_sync`."""
        events, times = self._timed(events, category)
        args = self._track_args.decode(events, category)
        columns = {"span": _names(events), "domain": domain, "device": _devices(args, events)}
        self._out.add("spans", len(events), {**columns, "stream": _streams(args, events), **times})

    def instants(self, events: list[Event], category: str) -> None:
        """Marks without a length."""
        events, start_ns = self._started(events, category)
        columns = {"span": _names(events), "domain": "instant", **self._where(events)}
        self._out.add("spans", len(events), {**columns, "start_ns": start_ns, "dur_ns": 0})

    def memory(self, events: list[Event], category: str) -> None:
        """`cpu_instant_event`: the allocator's records; the total allocated after each is kept."""
        events, start_ns = self._started(events, category)
        args = self._memory_args.decode(events, category)
        self._out.add(
            "counters",
            len(events),
            {
                "metric": "memory_allocated",
                "device": [f"gpu:{a.device}" if a.device_type else "cpu" for a in args],
                "process": self.ids.processes(events),
                "time_ns": start_ns,
                "value": [a.total for a in args],
                "unit": "bytes",
            },
        )

    def counters(self, events: list[Event], category: str) -> None:
        """Phase C: one row for each series of the event's arguments."""
        events, start_ns = self._started(events, category)
        rows: list[tuple[str, int | None, int, float]] = []
        for event, time_ns in zip(events, start_ns.tolist(), strict=True):
            series = self._series(event)
            if not series:
                self._out.losses.count("counter_without_value", category=category, example=event.name)
            for key, value in series.items():
                single = len(series) == 1 and key in ("value", event.name)
                name = event.name if single else f"{event.name}.{key}"
                rows.append((name or key, self.ids.process(event.pid), time_ns, value))
        if rows:
            names, processes, times, values = map(list, zip(*rows, strict=True))
            columns: dict[str, Values] = {"metric": names, "process": processes, "time_ns": times, "value": values}
            self._out.add("counters", len(rows), columns)

    def _series(self, event: Event) -> dict[str, float]:
        text = repair(bytes(event.args or _EMPTY), self._out.losses, category=event.category)
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
            return [str(raw, "utf-8") if raw else None for raw in raws]
        except UnicodeDecodeError:
            texts = [str(raw, "utf-8", "replace") if raw else None for raw in raws]
            damaged = sum("\ufffd" in text for text in texts if text)
            self._out.losses.count("invalid_utf8", damaged, category=category)
            return texts

    def _where(self, events: Sequence[Event]) -> dict[str, Values]:
        return {"process": self.ids.processes(events), "thread": self.ids.threads(events)}

    def _timed(self, events: list[E], category: str) -> tuple[list[E], dict[str, Values]]:
        """Events with a start and a duration; the others are counted."""
        events, start_ns = self._started(events, category)
        dur_ns, states = parse_ns([event.dur for event in events])
        states[dur_ns > _LONGEST_NS] = OUT_OF_RANGE
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

    def _started(self, events: list[E], category: str) -> tuple[list[E], NDArray[np.int64]]:
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


def _kept(events: Sequence[E], good: NDArray[np.bool_]) -> list[E]:
    return [event for event, keep in zip(events, good.tolist(), strict=True) if keep]


def _first(events: Sequence[AnyEvent], bad: NDArray[np.bool_]) -> str | None:
    where = np.flatnonzero(bad)
    return (events[int(where[0])].name or "")[:80] if len(where) else None


def _devices(args: Sequence[LaunchArgs | TrackArgs], events: Sequence[AnyEvent]) -> list[str | None]:
    """`gpu:N` from the arguments, else from a numeric process id, which is the device's on a device track."""
    known: dict[_Id, str | None] = {}
    devices = []
    for a, event in zip(args, events, strict=True):
        number = event.pid if a.device is None else a.device
        if number not in known:
            known[number] = _device_text(number)
        devices.append(known[number])
    return devices


def _device_text(device: _Id) -> str | None:
    number = _number_in(device)
    return f"gpu:{number}" if number is not None and number >= 0 else None


def _streams(args: Sequence[LaunchArgs | TrackArgs], events: Sequence[AnyEvent]) -> list[int | None]:
    return [_number_in(event.tid if a.stream is None else a.stream) for a, event in zip(args, events, strict=True)]


def _number_in(text: _Id) -> int | None:
    """The number in `7`, `stream 7`, `gpu 7`; a handle such as `0x0` is none."""
    if not isinstance(text, str):
        return text
    if text.isdecimal() and len(text) < 19:
        return int(text)
    match = _NUMBERED.search(text)
    return int(match[1]) if match and len(match[1]) < 19 else None


def _triples(values: list[_Triple | None]) -> pl.Series | None:
    """Grid or block sizes as an Array(3) column; None when there are none at all."""
    absent = [value is None for value in values]
    if all(absent):
        return None
    flat = np.array([value or (0, 0, 0) for value in values], dtype=np.int64)
    series = pl.Series(flat, dtype=pl.Array(pl.Int64, 3))
    if any(absent):
        keep = pl.Series(absent).not_()
        series = pl.select(pl.when(keep).then(series).otherwise(None)).to_series()
    return series
