"""The tracks of a Perfetto trace: a group per process, a track per thread; a group per device, a track per stream.

Source: `track_descriptor.proto` of Perfetto 59. A device is a process of its own, with a number that no real process
has. Slices that would cross another's end lie on further tracks of the same name, which the UI shows as one.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any, NamedTuple

import polars as pl

from inferometer.analyses.hardware.traced_names import name_devices
from inferometer.reports.perfetto.protobuf import Value, encode
from inferometer.trace.facts import Facts, NamedId

_UUID, _NAME, _PROCESS, _THREAD, _PARENT, _COUNTER, _ORDER, _POSITION = 1, 2, 3, 4, 5, 8, 11, 12
_EXPLICIT = 3
_UNIT, _UNIT_NAME, _SIZE_BYTES = 3, 6, 3
_MAX_PID = (1 << 31) - 1
_FIRST_FREE_PID = 1 << 30


class Track(NamedTuple):
    """Where slices or samples lie. `group` is `device` or `process`; `what` tells tracks of one place apart.

    A counter's track has the metric as `what`, and a `unit` that may be empty.
    """

    group: str
    rank: int | None
    host: str | None
    device: str | None
    process: int | None
    context: int | None
    stream: int | None
    thread: int | None
    what: str | None
    unit: str | None

    @property
    def parent(self) -> tuple[Any, ...]:
        """The device or process that it belongs to."""
        return self.group, self.rank, self.host, self.device if self.group == "device" else self.process


KEY = Track._fields
KEY_TYPES = {
    **dict.fromkeys(("group", "host", "device", "what", "unit"), pl.String()),
    **dict.fromkeys(("rank", "process", "context", "stream", "thread"), pl.Int64()),
}


class Tracks:
    """Hands out tracks, and describes all that it handed out."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._numbers: dict[Track, int] = {}
        self._lanes: dict[tuple[int, int], int] = {}
        self._groups: dict[tuple[Any, ...], int] = {}
        self._pids: dict[tuple[Any, ...], int] = {}
        self._uuids = count(1)
        self._free_pids = count(_FIRST_FREE_PID)

    def number(self, track: Track) -> int:
        """A small number for `track`, the same each time."""
        return self._numbers.setdefault(track, len(self._numbers))

    def uuid(self, number: int, lane: int = 0) -> int:
        """The id of a lane of the track with this number."""
        if (number, lane) not in self._lanes:
            self._lanes[number, lane] = next(self._uuids)
        return self._lanes[number, lane]

    def describe(self) -> Iterator[bytes]:
        """A TrackDescriptor for each group and each lane that was asked for, a group before its tracks."""
        tracks = list(self._numbers)
        lanes = [(tracks[number], lane, uuid) for (number, lane), uuid in self._lanes.items()]
        lanes.sort(key=lambda each: (_sort_key(each[0]), each[1]))
        shared = _shared_streams(tracks)
        for position, (track, lane, uuid) in enumerate(lanes):
            if track.parent not in self._groups:
                yield self._describe_group(track)
            yield encode({_UUID: uuid, _POSITION: position, **self._describe(track, lane, shared)})

    def _describe_group(self, track: Track) -> bytes:
        uuid = self._groups[track.parent] = next(self._uuids)
        pid = self._pids[track.parent] = self._pid(track)
        words = [self._device_name(track) if track.group == "device" else self._process_name(track)]
        words += [f"on {track.host}"] if track.host else []
        words += [] if track.rank is None else [f"rank {track.rank}"]
        return encode({_UUID: uuid, _PROCESS: encode({1: pid, 6: ", ".join(words)}), _ORDER: _EXPLICIT})

    def _describe(self, track: Track, lane: int, shared: set[tuple[Any, ...]]) -> dict[int, Value]:
        thread = track.thread
        if track.unit is not None:
            unit = {_UNIT: _SIZE_BYTES} if track.unit == "bytes" else {_UNIT_NAME: track.unit}
            return {_PARENT: self._groups[track.parent], _NAME: track.what or "", _COUNTER: encode(unit)}
        if thread is not None and thread > 0 and not lane and not track.what:
            return {_THREAD: encode({1: self._pids[track.parent], 2: thread, 5: self._thread_name(track)})}
        title = self._thread_name(track) if track.group == "process" else _stream_name(track, _place(track) in shared)
        return {_PARENT: self._groups[track.parent], _NAME: title}

    def _device_name(self, track: Track) -> str:
        device = track.device or "unknown device"
        product = name_devices(self._facts, [device], track.rank).get(device)
        return f"{device} {product}" if product else device

    def _process_name(self, track: Track) -> str:
        number = "unknown process" if track.process is None else f"process {track.process}"
        name = _find_name(self._facts.processes, track.rank, (track.process, None))
        return number if name is None else name if _is_text_id(track.process) else f"{name} ({number})"

    def _thread_name(self, track: Track) -> str:
        name = _find_name(self._facts.threads, track.rank, (track.process, track.thread))
        if name is None and _is_text_id(track.thread):
            name = _find_name(self._facts.threads, track.rank, (None, track.thread))
        number = "unknown thread" if track.thread is None else f"thread {track.thread}"
        if track.what:
            return track.what if track.thread is None else f"{name or number}: {track.what}"
        return name or number

    def _pid(self, track: Track) -> int:
        """The process's own number where it has one that Perfetto can hold and no other rank has taken it."""
        taken, own = set(self._pids.values()), track.process
        if track.group == "process" and own is not None and 0 < own <= _MAX_PID and own not in taken:
            return own
        return next(pid for pid in self._free_pids if pid not in taken)


def _place(track: Track) -> tuple[Any, ...]:
    return *track.parent, track.stream, track.what


def _shared_streams(tracks: Iterable[Track]) -> set[tuple[Any, ...]]:
    """Streams of a device whose number several processes or contexts use."""
    users = defaultdict(set)
    for track in tracks:
        users[_place(track)].add((track.process, track.context))
    return {place for place, found in users.items() if len(found) > 1}


def _stream_name(track: Track, is_shared: bool) -> str:
    words = ["unknown stream" if track.stream is None else f"stream {track.stream}"]
    if is_shared:
        parts = (("process", track.process), ("context", track.context))
        words += [f"{word} {number}" for word, number in parts if number is not None]
    return ", ".join(words) + (f": {track.what}" if track.what else "")


def _is_text_id(number: int | None) -> bool:
    return number is not None and number < 0


def _find_name(names: Iterable[NamedId], rank: int | None, wanted: tuple[int | None, int | None]) -> str | None:
    for each in names:
        if each.rank in (None, rank) and (each.process, each.thread) == wanted and each.name:
            return each.name
    return None


def _sort_key(track: Track) -> tuple[Any, ...]:
    """Processes before devices, counters first, ranges before the work on their stream."""
    numbers = (track.rank, track.process, track.stream, track.context, track.thread)
    ordered = [(number is not None, number or 0) for number in numbers]
    last = (track.unit is None, *ordered[2:], not track.what, track.what or "")
    return track.group != "process", ordered[0], track.host or "", track.device or "", ordered[1], last
