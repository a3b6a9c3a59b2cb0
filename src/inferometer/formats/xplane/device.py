"""Device planes: launches of a GPU's streams and of a TPU's cores, and what else stands on a device's lines.

Source: openxla/xla, `xla/tsl/profiler/utils/xplane_schema.cc`; xprof, `docs/trace_viewer.md`. A GPU's streams are
lines `Stream #17(Kernel)`; a TPU's core has the line `XLA Ops`. Viewers derive further lines from these (`XLA Ops` of
a GPU, `Framework Ops`, `Source code`) and write them into files: read with the others, all time would count twice.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from inferometer.formats.xplane.counters import COUNTERS, read_counters
from inferometer.formats.xplane.details import read_copied_bytes, read_kernel_details
from inferometer.formats.xplane.instructions import TABLES, Instructions
from inferometer.formats.xplane.lines import Events, LineReader, Numbers, count_line, line_name
from inferometer.formats.xplane.plane import Plane, Value, text, whole
from inferometer.trace.builder import TraceBuilder, Values
from inferometer.trace.tables import LAUNCHES

_DEVICE = re.compile(r"/device:(?P<kind>GPU|TPU):(?P<number>\d+)(?: SparseCore (?P<part>\d+))?")
_STREAM = re.compile(r"Stream #(\d{1,18})")
_OPS, _MODULES, _ASYNC, _STEPS = "XLA Ops", "XLA Modules", "Async XLA Ops", "Steps"
_DERIVED = frozenset(
    {_OPS, _MODULES, _STEPS, "Framework Ops", "Framework Name Scope", "Source code", "Launch Stats", "XLA TraceMe"}
    | {"TensorFlow Ops", "TensorFlow Name Scope"}
)
_PROGRAM = r"\(\d+\)$"  # the number of a compiled program after its name
_PLAIN = {  # columns that are stats as they are
    "correlation_id": "correlation_id",
    "context": "context_id",
    "graph_id": "cuda_graph_id",
    "graph_node_id": "cuda_graph_node_id",
}
_DETAILED = ("grid", "block", "registers", "shared_bytes")
_HLO = ("hlo_op", "hlo_module", "name", "tf_op", "source")
_SIZED = ("memcpy_details", "memset_details")
_NO_OP = "XlaModule:"


@dataclass(frozen=True)
class Device:
    """`name` is what tables call it (`gpu:0`); a TPU's work stands on `XLA Ops`, a GPU's on streams."""

    name: str
    is_tpu: bool


def device_of(plane: str) -> Device | None:
    """The device of a plane; None for a plane of something else."""
    match = _DEVICE.fullmatch(plane)
    if match is None:
        return None
    part = "" if match["part"] is None else f" sparsecore:{match['part']}"
    return Device(f"{match['kind'].lower()}:{match['number']}{part}", is_tpu=match["kind"] == "TPU")


class DeviceReader:
    """Reads planes of devices into `launches` and `spans`, and says which launch belongs to which instruction."""

    def __init__(self, out: TraceBuilder, lines: LineReader, instructions: Instructions) -> None:
        self._out = out
        self._lines = lines
        self._instructions = instructions
        self._columns = out.narrow("launches")
        self._needs_instructions = out.wants(*TABLES) or "external_id" in self._columns
        self.kernels: set[str] = set()

    def read(self, plane: Plane, process: int | None) -> None:
        """One plane, which `process` recorded; nothing of a plane that is of no device."""
        device = device_of(plane.name)
        if device is None:
            return
        modules = _find_modules(plane, self._lines) if device.is_tpu else None
        for line in plane.lines:
            name = line_name(line)
            stream = _STREAM.match(name)
            if device.is_tpu and name == _OPS:
                self._launches(plane, line, _Place(device, line.id, process), modules)
            elif device.is_tpu and name in (_MODULES, _ASYNC, _STEPS):
                self._spans(plane, device, line, name)
            elif stream is not None and not device.is_tpu:
                self._launches(plane, line, _Place(device, int(stream[1]), process), modules)
            elif name == COUNTERS:
                read_counters(plane, line, device.name, self._lines, self._out)
            else:
                count_line(line, name, "derived_event" if name in _DERIVED else "unknown_category", self._out)

    def _launches(self, plane: Plane, line: Any, place: "_Place", modules: "_Modules | None") -> None:
        events = self._lines.read(line, "launches")
        names = plane.names(events.name_id, prefer_short=place.device.is_tpu)
        if self._out.wants("launches"):
            plane.count_bad_names(events.name_id, "launches")
        if self._out.wants("calls"):
            self.kernels.update(names.unique().cast(pl.String))
        stats = self._stats(plane, events)
        columns: dict[str, Values] = {
            "kind": names.cast(pl.String).str.to_lowercase().str.extract("^(memcpy|memset)").fill_null("kernel"),
            "kernel": names,
            "device": place.device.name,
            "stream": place.stream,
            "process": place.process,
            "start_ns": events.start_ns,
            "dur_ns": events.dur_ns,
        }
        if self._needs_instructions:
            columns["external_id"] = self._instruct(plane, events, place, stats, modules)
        for ours, theirs in _PLAIN.items():
            if theirs in stats:
                columns[ours] = [whole(value) for value in stats[theirs]]
        columns |= _detailed(stats)
        kept = {name: values for name, values in columns.items() if name in self._columns}
        self._out.add("launches", len(events.messages), kept)

    def _stats(self, plane: Plane, events: Events) -> dict[str, list[Value]]:
        """The values that the question needs, of each event."""
        wanted = {theirs for ours, theirs in _PLAIN.items() if ours in self._columns}
        wanted |= {"kernel_details"} if self._columns & {*_DETAILED} else set()
        wanted |= {*_SIZED} if "bytes" in self._columns else set()
        wanted |= {*_HLO, "correlation_id"} if self._needs_instructions else set()
        return plane.columns(events, wanted)

    def _instruct(
        self,
        plane: Plane,
        events: Events,
        place: "_Place",
        stats: Mapping[str, Sequence[Value]],
        modules: "_Modules | None",
    ) -> pl.Series:
        """Note the instruction of each launch; their `external_id`, null where the file names none."""
        nothing: list[Value] = [None] * len(events.messages)
        named = {name: pl.Series([text(value) for value in stats.get(name, nothing)], dtype=pl.String) for name in _HLO}
        op, module = named["hlo_op"], named["hlo_module"]
        if modules is not None:  # a TPU's launches are instructions, of the program that runs at the time
            op = op.zip_with(op.is_not_null(), plane.names(events.name_id, prefer_short=True).cast(pl.String))
            module = module.zip_with(module.is_not_null(), modules.around(events.start_ns))
        rows = pl.DataFrame(
            {
                "correlation_id": [whole(value) for value in stats.get("correlation_id", nothing)],
                "op": op,
                "module": module,
                "framework_op": [_framework_op(*pair) for pair in zip(named["name"], named["tf_op"], strict=True)],
                "source": named["source"],
                "name_id": events.name_id,
                "start_ns": events.start_ns,
                "dur_ns": events.dur_ns,
            },
            schema_overrides={"correlation_id": pl.Int64, "framework_op": pl.String},
        ).with_row_index("row")
        return self._instructions.note_launches(plane, place.process, place.device.name, rows)

    def _spans(self, plane: Plane, device: Device, line: Any, name: str) -> None:
        events = self._lines.read(line, "spans")
        columns: dict[str, Values] = {
            "span": plane.names(events.name_id, prefer_short=True),
            "domain": name,
            "device": device.name,
            "stream": line.id,
            "start_ns": events.start_ns,
            "dur_ns": events.dur_ns,
        }
        self._out.add("spans", len(events.messages), columns)


@dataclass(frozen=True)
class _Place:
    """Where a line's launches ran, and which process queued them."""

    device: Device
    stream: int
    process: int | None


@dataclass(frozen=True)
class _Modules:
    """Which compiled program runs when, on a TPU's core: sorted starts, ends and names."""

    start_ns: Numbers
    end_ns: Numbers
    names: pl.Series

    def around(self, times: Numbers) -> pl.Series:
        """The program that runs at each time; null where none does."""
        at = np.searchsorted(self.start_ns, times, side="right") - 1
        is_inside = (at >= 0) & (times < self.end_ns[at]) if len(self.end_ns) else np.zeros(len(times), np.bool_)
        places = pl.Series(np.where(is_inside, at, 0)).set(pl.Series(~is_inside), None)
        return self.names.gather(places) if len(self.names) else pl.Series([None] * len(times), dtype=pl.String)


def _find_modules(plane: Plane, lines: LineReader) -> _Modules:
    line = next((line for line in plane.lines if line_name(line) == _MODULES), None)
    if line is None:
        return _Modules(np.empty(0, np.int64), np.empty(0, np.int64), pl.Series([], dtype=pl.String))
    events = lines.peek(line)
    names = plane.names(events.name_id, prefer_short=True).cast(pl.String).str.replace(_PROGRAM, "")
    order = np.argsort(events.start_ns, kind="stable")
    return _Modules(events.start_ns[order], (events.start_ns + events.dur_ns)[order], names.gather(order))


def _detailed(stats: Mapping[str, Sequence[Value]]) -> dict[str, Values]:
    """The columns that XLA writes as one text, which is read once however many launches have it."""
    columns: dict[str, Values] = {}
    if "kernel_details" in stats:
        texts = [text(value) or "" for value in stats["kernel_details"]]
        place = {each: i for i, each in enumerate(dict.fromkeys(texts))}
        rows = [place[each] for each in texts]
        details = [read_kernel_details(each) for each in place]
        for name in _DETAILED:
            values = pl.Series([getattr(each, name) for each in details], dtype=LAUNCHES.schema[name])
            columns[name] = values.gather(rows)
    for name in _SIZED:
        if name in stats:
            columns["bytes"] = [read_copied_bytes(text(value) or "") for value in stats[name]]
    return columns


def _framework_op(name: str | None, tf_op: str | None) -> str | None:
    """The path of JAX's op: `name` on a GPU, where `tf_op` only says `XlaModule:`; `tf_op` with a colon on a TPU."""
    return name or (None if tf_op is None or tf_op == _NO_OP else tf_op.removesuffix(":"))
