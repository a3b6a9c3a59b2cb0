"""Perfetto traces as Google's own decoder reads them, and slices as Perfetto's importer makes them of packets.

Packets are sorted by time, those of one time staying in the file's order; a beginning opens a slice on its track, an
end closes the innermost one, an instant is a slice of 0 ns.
"""

import gzip
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import InternedData, TracePacket, TrackEvent
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace as PerfettoTrace

NEEDS_STATE = TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
TABLES = ("event_categories", "event_names", "debug_annotation_names", "debug_annotation_string_values")


@dataclass
class Slice:
    """One slice; `track` is its place from the group down: `("gpu:0", "stream 7")`."""

    track: tuple[str, ...]
    uuid: int
    name: str
    category: str
    start_ns: int
    end_ns: int | None
    args: dict[str, Any]
    flows: tuple[int, ...]
    depth: int


@dataclass
class Decoded:
    """A whole trace: slices in order of their beginnings, samples by track, packets."""

    slices: list[Slice] = field(default_factory=list)
    samples: dict[tuple[str, ...], list[tuple[int, float]]] = field(default_factory=dict)
    tracks: dict[int, tuple[str, ...]] = field(default_factory=dict)
    packets: list[Any] = field(default_factory=list)


def decode(path: Path) -> Decoded:
    """Decode a file; fails where an end closes nothing or a slice stays open."""
    data = path.read_bytes()
    trace = PerfettoTrace()
    trace.ParseFromString(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    found = Decoded(packets=list(trace.packet))
    found.tracks = _tracks(found.packets)
    names = _names(found.packets)
    events = [packet for packet in found.packets if packet.HasField("track_event")]
    open_slices: dict[int, list[Slice]] = {uuid: [] for uuid in found.tracks}
    for packet in sorted(events, key=lambda packet: packet.timestamp):
        _take(packet, names, found, open_slices)
    assert not any(open_slices.values())
    return found


def _take(packet: Any, names: dict[str, dict[int, str]], found: Decoded, open_slices: dict[int, list[Slice]]) -> None:
    event, now = packet.track_event, packet.timestamp
    assert packet.sequence_flags == NEEDS_STATE
    track, stack = found.tracks[event.track_uuid], open_slices[event.track_uuid]
    if event.type == TrackEvent.TYPE_COUNTER:
        found.samples.setdefault(track, []).append((now, event.double_counter_value))
    elif event.type == TrackEvent.TYPE_SLICE_END:
        stack.pop().end_ns = now
    else:
        one = _slice(event, now, names, track, len(stack))
        found.slices.append(one)
        if event.type == TrackEvent.TYPE_SLICE_BEGIN:
            stack.append(one)
        else:
            assert event.type == TrackEvent.TYPE_INSTANT
            one.end_ns = now


def _slice(event: Any, now: int, names: dict[str, dict[int, str]], track: tuple[str, ...], depth: int) -> Slice:
    args = {}
    for each in event.debug_annotations:
        kind = each.WhichOneof("value")
        value = getattr(each, kind)
        name = names["debug_annotation_names"][each.name_iid]
        args[name] = names["debug_annotation_string_values"][value] if kind == "string_value_iid" else value
    return Slice(
        track,
        event.track_uuid,
        names["event_names"][event.name_iid],
        names["event_categories"][event.category_iids[0]],
        now,
        None,
        args,
        (*event.flow_ids, *event.terminating_flow_ids),
        depth,
    )


def _names(packets: list[Any]) -> dict[str, dict[int, str]]:
    """Interned texts; all of them stand before the first event that may use them."""
    names: dict[str, dict[int, str]] = {table: {} for table in TABLES}
    for packet in packets:
        data: InternedData = packet.interned_data
        for table in TABLES:
            for entry in getattr(data, table):
                text = entry.str.decode() if table == TABLES[-1] else entry.name
                assert names[table].setdefault(entry.iid, text) == text
    first_event = next((i for i, packet in enumerate(packets) if packet.HasField("track_event")), len(packets))
    assert not any(packet.HasField("interned_data") for packet in packets[first_event:])
    return names


def _tracks(packets: list[Any]) -> dict[int, tuple[str, ...]]:
    """Each track's place, from the group down."""
    descriptors = {p.track_descriptor.uuid: p.track_descriptor for p in packets if p.HasField("track_descriptor")}
    groups = {d.process.pid: d for d in descriptors.values() if d.HasField("process")}
    assert len(groups) == sum(d.HasField("process") for d in descriptors.values())
    places: dict[int, tuple[str, ...]] = {}
    for uuid, each in descriptors.items():
        if each.HasField("process"):
            places[uuid] = (each.process.process_name,)
        elif each.HasField("thread"):
            places[uuid] = (groups[each.thread.pid].process.process_name, each.thread.thread_name)
        else:
            places[uuid] = (descriptors[each.parent_uuid].process.process_name, each.name)
    return places
