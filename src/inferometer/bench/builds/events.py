"""What the process that compiles is given, and what it says, line by line: so that all until a time limit is kept.

The candidate's code runs in that process. It could write such lines itself: this shows what honest candidates compile
to, and is no defence against others.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from inferometer.bench.builds.record import KernelBuild
from inferometer.errors import InputError
from inferometer.side_files import read_side_file

_LARGEST = 256 << 20
"""Bytes of events; one of a kernel has about 2 kB, its machine code included."""


class Job(msgspec.Struct, frozen=True):
    """What to compile: `cases` are the arguments of the operator's `inputs`, one mapping a call.

    `candidate` is a file, or with `backend` nothing.
    """

    candidate: str
    backend: str | None
    operator: str
    architecture: str
    cases: Sequence[Mapping[str, Any]]
    events: str
    messages: str  # the file behind the process' stderr


class Began(msgspec.Struct, tag=True, frozen=True):
    """A kernel's compilation; the last of them names the culprit where a compiler crashes."""

    kernel: str


class Built(msgspec.Struct, tag=True, frozen=True):
    """A kernel that wasn't built before. `key` is unique in the process."""

    key: str
    build: KernelBuild


class Launched(msgspec.Struct, tag=True, frozen=True):
    """A kernel that was built before, for the first time in this case."""

    key: str
    case: int


class Refused(msgspec.Struct, tag=True, frozen=True):
    """A kernel that doesn't compile."""

    kernel: str
    configuration: str
    case: int | None
    tuned: bool
    message: str


class Multiplied(msgspec.Struct, tag=True, frozen=True):
    """Functions of PyTorch's that multiplied matrices in a call of the candidate's."""

    names: Sequence[str]


class Stopped(msgspec.Struct, tag=True, frozen=True):
    """The candidate can't be called, or raised."""

    message: str


class Lacking(msgspec.Struct, tag=True, frozen=True):
    """Something that this machine lacks, and how to get it."""

    message: str
    hint: str


class Ready(msgspec.Struct, tag=True, frozen=True):
    """The process runs; what ends it from here on is the candidate's or the compiler's doing."""


class Ended(msgspec.Struct, tag=True, frozen=True):
    """All was done."""


Event = Began | Built | Launched | Refused | Multiplied | Stopped | Lacking | Ready | Ended


class Events:
    """Appends events to a file, one per line."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)

    def send(self, event: Event) -> None:
        """Written through at once, since the process may be stopped at any time."""
        with self._path.open("ab") as file:
            file.write(msgspec.json.encode(event) + b"\n")


def read_events(path: Path) -> list[Event]:
    """All whole lines; what isn't an event is passed over (a line may be cut, or the candidate's)."""
    found: list[Event] = []
    for line in _bytes_of(path).splitlines():
        try:
            found.append(_DECODER.decode(line))
        except (msgspec.DecodeError, RecursionError):
            continue
    return found


def _bytes_of(path: Path) -> bytes:
    """All of a plain file of ordinary size; none of anything else that a candidate put there."""
    try:
        return read_side_file(path, most=_LARGEST)
    except InputError:
        return b""


_DECODER: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)
