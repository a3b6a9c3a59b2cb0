"""Process and thread ids, devices and streams, however a file writes them: `7`, `host(123)`, `stream 7`, `Spans`."""

import re
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from inferometer.formats.kineto.arguments import Id, LaunchArgs, LaunchEvent, TrackArgs
from inferometer.formats.kineto.events import Event
from inferometer.formats.kineto.typed import CompleteEvent
from inferometer.trace.losses import Losses

if TYPE_CHECKING:
    from inferometer.formats.kineto.header import FileHeader

AnyEvent = Event | LaunchEvent | CompleteEvent
_HOST_PID = re.compile(r"(.+)\((-?\d{1,18})\)")
_COUNTED = re.compile(r"GPU (\d{1,9}) Counters")
_NUMBERED = re.compile(r"(?:stream|thread|pid|process|gpu|queue) *(\d+)", re.IGNORECASE)


class Ids:
    """Process and thread ids as numbers. Text ids get a negative number of their own and a name in the facts."""

    def __init__(self, header: "FileHeader", losses: Losses) -> None:
        self._header = header
        self._losses = losses
        self._known: dict[tuple[str, bool], int | None] = {}

    def processes(self, events: Sequence[AnyEvent]) -> list[int | None]:
        """The process of each event; `host(123)` is process 123 of that host."""
        return self._numbers([event.pid for event in events], is_process=True)

    def threads(self, events: Sequence[AnyEvent]) -> list[int | None]:
        """The thread of each event."""
        return self._numbers([event.tid for event in events], is_process=False)

    def hosts(self, events: Sequence[AnyEvent]) -> list[str | None] | None:
        """The host that each `host(123)` names, or None when no event names one."""
        hosts = find_hosts(events)
        self._header.hosts.update(host for host in hosts or () if host is not None)
        return hosts

    def process(self, pid: Id) -> int | None:
        """One process id."""
        return pid if not isinstance(pid, str) else self._number(pid, is_process=True)

    def thread(self, tid: Id) -> int | None:
        """One thread id."""
        return tid if not isinstance(tid, str) else self._number(tid, is_process=False)

    def _numbers(self, ids: list[Id], *, is_process: bool) -> list[int | None]:
        if not any(isinstance(each, str) for each in set(ids)):
            return ids  # type: ignore[return-value]
        return [self._number(each, is_process=is_process) if isinstance(each, str) else each for each in ids]

    def _number(self, text: str, *, is_process: bool) -> int | None:
        key = (text, is_process)
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
            self._header.name_text_id(number, text, is_process=is_process)
            self._losses.count("text_id", example=text[:80])
        self._known[key] = number
        return number


def find_hosts(events: Sequence[AnyEvent]) -> list[str | None] | None:
    """As `Ids.hosts`, which also notes them."""
    pids = {event.pid for event in events}
    named = {pid: match[1] for pid in pids if isinstance(pid, str) and (match := _HOST_PID.fullmatch(pid))}
    return [named.get(event.pid) for event in events] if named else None  # type: ignore[arg-type]


def find_devices(
    args: Sequence[LaunchArgs | TrackArgs], events: Sequence[AnyEvent], kind: str = "gpu"
) -> list[str | None]:
    """`gpu:N` from the arguments, else from a numeric process id, which is the device's on a device track."""
    ids = [event.pid if a.device is None else a.device for a, event in zip(args, events, strict=True)]
    known = {device: _device_text(device, kind) for device in set(ids)}
    return [known[device] for device in ids]


def _device_text(device: Id, kind: str) -> str | None:
    number = number_in(device)
    return f"{kind}:{number}" if number is not None and number >= 0 else None


def find_counted_device(pid: Id) -> str | None:
    """`gpu:0` of the process `GPU 0 Counters`, under which hardware counters stand; None of any other."""
    match = _COUNTED.fullmatch(pid) if isinstance(pid, str) else None
    return match and f"gpu:{int(match[1])}"


def find_streams(args: Sequence[LaunchArgs | TrackArgs], events: Sequence[AnyEvent]) -> list[int | None]:
    """The stream from the arguments, else from the thread id, which is the stream's on a device track."""
    ids = [event.tid if a.stream is None else a.stream for a, event in zip(args, events, strict=True)]
    return numbers_in(ids)


def numbers_in(texts: Sequence[Id]) -> list[int | None]:
    """`number_in` of each."""
    known = {text: number_in(text) for text in set(texts)}
    return [known[text] for text in texts]


def number_in(text: Id) -> int | None:
    """The number in `7`, `stream 7`, `gpu 7`; a handle such as `0x0` is none."""
    if not isinstance(text, str):
        return text
    if text.isdecimal() and len(text) < 19:
        return int(text)
    match = _NUMBERED.search(text)
    return int(match[1]) if match and len(match[1]) < 19 else None
