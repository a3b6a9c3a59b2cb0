"""Where a track lies: on which process and thread, or on which device, queue and stream.

A track names its process, its thread, or a track around it. Devices, queues and streams are known by names alone: those
that our own export gives (`gpu:0 NVIDIA H100, rank 1`, `stream 7`), and AMD's (`GPU 0`, `AGENT [4] QUEUE [0]`). An
agent's number counts CPUs too: that of a GPU is not in the file. Our export also names hosts, ranks, and the process
of a group that stands for one whose own number another rank has.
"""

import re
from dataclasses import dataclass
from typing import Any

from inferometer.trace.facts import NamedId

_DEVICE = re.compile(r"((?:gpu|webgpu|tpu|mtia|hpu|xpu):\d{1,6}|cpu|host)\b")
_OF_GROUP = re.compile(r"(?:, on (?P<host>[^,]+))?(?:, rank (?P<rank>\d{1,9}))?$")
_PROCESS = re.compile(r"\bprocess (\d{1,18})\b")
_FIRST_FREE_PID = 1 << 30  # no process has such a number
_GPU = re.compile(r"\bGPU[ :]*\[?(\d{1,6})\]?")
_AGENT = re.compile(r"\bAgent[ :]*\[?(\d{1,6})\]?", re.IGNORECASE)
_QUEUE = re.compile(r"\bqueue[ :]*\[?(\d{1,18})\]?", re.IGNORECASE)
_STREAM = re.compile(r"\bstream[ :]*\[?(\d{1,18})\]?", re.IGNORECASE)
_DEEPEST = 64
_UNITS = {1: "ns", 3: "bytes"}
_LARGEST = 2**63


@dataclass(frozen=True)
class Place:
    """A track's place; None where the file doesn't say. `is_agent`: the device's number is that of AMD's agents."""

    title: str | None = None
    process: int | None = None
    thread: int | None = None
    device: str | None = None
    rank: int | None = None
    host: str | None = None
    queue: int | None = None
    stream: int | None = None
    is_agent: bool = False


@dataclass(frozen=True)
class Metric:
    """What a counter's track counts. `factor`: what its values are multiples of."""

    name: str
    unit: str | None
    factor: int
    is_incremental: bool


def find_device(text: str) -> tuple[str | None, bool]:
    """The device that a text names, and whether its number is an agent's."""
    own = _DEVICE.match(text)
    if own:
        return own[1], False
    gpu = _GPU.search(text)
    agent = None if gpu else _AGENT.search(text)
    found = gpu or agent
    return (f"gpu:{int(found[1])}", agent is not None) if found else (None, False)


class Tracks:
    """All tracks that a file describes, by their numbers."""

    def __init__(self) -> None:
        self._described: dict[int, Any] = {}
        self._processes: dict[int, Any] = {}
        self._places: dict[int, Place] = {}

    def take(self, descriptor: Any) -> None:
        """A description; a later one of the same track replaces it."""
        self._described[descriptor.uuid] = descriptor
        if descriptor.HasField("process"):
            self._processes[descriptor.process.pid] = descriptor
        self._places.clear()

    def place(self, uuid: int) -> Place:
        """Where the track lies."""
        if uuid not in self._places:
            self._places[uuid] = self._find(uuid)
        return self._places[uuid]

    def metric(self, uuid: int) -> Metric | None:
        """What the track counts; None where it has no name."""
        descriptor = self._described.get(uuid)
        name = None if descriptor is None else _name(descriptor)
        if descriptor is None or not name:
            return None
        counter = descriptor.counter
        unit = _text(counter.unit_name) or _UNITS.get(counter.unit)
        return Metric(name, unit, counter.unit_multiplier or 1, counter.is_incremental)

    def named(self) -> tuple[tuple[NamedId, ...], tuple[NamedId, ...]]:
        """The processes and the threads of the file; not the groups that stand for devices."""
        processes: dict[int, NamedId] = {}
        threads: dict[tuple[int, int], NamedId] = {}
        for each in self._described.values():
            if each.HasField("process"):
                process = _of_group(each.process.pid, _text(each.process.name)).get("process")
                if process is not None:
                    processes[process] = NamedId(process, name=_text(each.process.name) or None)
            if each.HasField("thread"):
                place = self.place(each.uuid)
                if place.process is not None and place.thread is not None:
                    name = _text(each.thread.name) or None
                    threads[place.process, place.thread] = NamedId(place.process, place.thread, name=name)
        return tuple(processes.values()), tuple(each for each in threads.values() if each.name)

    def _find(self, uuid: int) -> Place:
        found: dict[str, Any] = {}
        names: list[str] = []
        for descriptor in self._way_up(uuid):
            if descriptor.HasField("thread"):
                found.setdefault("thread", descriptor.thread.tid)
                if descriptor.thread.pid not in self._processes:
                    found.setdefault("process", descriptor.thread.pid)
            if descriptor.HasField("process"):
                names.append(_text(descriptor.process.name))
                found = _of_group(descriptor.process.pid, names[-1]) | found
            else:
                names.append(_name(descriptor))
        if "thread" not in found and "device" not in found:
            self._look_for_device(names[:-1] or names, found)
        if "thread" not in found:
            found |= {each: _number(pattern, names) for each, pattern in (("queue", _QUEUE), ("stream", _STREAM))}
        return Place(title=next((name for name in names if name), None), **found)

    def _look_for_device(self, names: list[str], found: dict[str, Any]) -> None:
        """By a track's own name or one around it, the process's left out: programs are called anything."""
        for name in names:
            device, is_agent = find_device(name)
            if device is not None:
                found |= {"device": device, "is_agent": is_agent}
                return

    def _way_up(self, uuid: int) -> list[Any]:
        """The track, those around it, and its thread's process."""
        way: list[Any] = []
        while uuid and uuid in self._described and len(way) < _DEEPEST:
            way.append(self._described[uuid])
            uuid = way[-1].parent_uuid
        owner = next((self._processes.get(each.thread.pid) for each in way if each.HasField("thread")), None)
        return way if owner is None or owner in way else [*way, owner]


def _of_group(pid: int, name: str) -> dict[str, Any]:
    """What a process's name says, which may be a device's."""
    about = _OF_GROUP.search(name)
    found: dict[str, Any] = {} if about is None else {"host": about["host"]}
    if about is not None and about["rank"] is not None:
        found["rank"] = int(about["rank"])
    device = _DEVICE.match(name)
    if device is not None:
        return found | {"device": device[1]}
    own = _PROCESS.search(name) if pid >= _FIRST_FREE_PID else None
    return found | {"process": int(own[1]) if own else pid}


def _name(descriptor: Any) -> str:
    own = _text(descriptor.name) or _text(descriptor.static_name)
    return own or (_text(descriptor.thread.name) if descriptor.HasField("thread") else "")


def _number(pattern: re.Pattern[str], names: list[str]) -> int | None:
    found = next((match for name in names if (match := pattern.search(name))), None)
    number = None if found is None else int(found[1])
    return number if number is None or number < _LARGEST else None


def _text(data: bytes) -> str:
    return data.decode(errors="replace")
