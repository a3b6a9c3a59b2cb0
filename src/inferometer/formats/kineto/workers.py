"""Sections of a large file decoded by several processes, this one among them.

Whoever is free takes the next section. A section's rows come back as Parquet files and all else as one message
(`section_parts.py`), and they are joined in the file's order. A section that began where the one before it didn't end
is read again from there, so what the other processes guess has no influence on the result. The numbers of sections
wait in a pipe, from which all processes read.

Left out: systems without POSIX's pipes between processes, and what can be read only once. These have one process.
"""

import io
import os
import queue
import struct
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import IO, Final

import msgspec

from inferometer.errors import InputError
from inferometer.formats.json_text.window import Window
from inferometer.formats.kineto.dispatch import Sorter
from inferometer.formats.kineto.header import FileHeader
from inferometer.formats.kineto.section_parts import Compression, SectionParts, join_parts, read_parts
from inferometer.formats.kineto.sections import Places, SectionReader, Sections, find_start, read_in_sections
from inferometer.formats.source import Limits, Source
from inferometer.processes import VARIABLE, asked_processes, own_cores
from inferometer.trace.builder import TraceBuilder

FROM_BYTES: Final = 64 << 20  # below this, another process costs more than it saves
FROM_PACKED_BYTES: Final = 6 << 20
_MOST_PROCESSES: Final = 4  # each takes some 130 MB
_MOST_SECTIONS: Final = 4096  # their numbers fit a pipe's buffer
_TAIL_BYTES: Final = 1 << 20
_STEM: Final = "section-"
_NUMBER: Final = struct.Struct("<I")
_LENGTH: Final = struct.Struct("<Q")
_ALONE: Final = {"POLARS_MAX_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
_HINT: Final = f"Try again with {VARIABLE}=1, which needs less memory."


class Task(msgspec.Struct, frozen=True):
    """What every process is told: the file and its limits, the array of events, what is wanted, and where rows go."""

    path: str
    limits: dict[str, float | int | None]
    begin: int
    size: int
    bare: bool
    tables: list[str]
    constants: dict[str, int | str | None]
    folder: str
    compression: Compression


class Decoded(msgspec.Struct):
    """A section's parts; None where its start wasn't found, or it needs another look.

    Of the last section, `tail` is the text behind the array where that is short, and `damage` what was wrong with the
    compressed data up to there.
    """

    number: int
    parts: SectionParts | None = None
    tail: bytes | None = None
    damage: str | None = None


def processes_for(source: Source) -> int:
    """How many processes read a file, this one included."""
    if os.name != "posix" or source.path is None or not source.rewindable or source.is_folder:
        return 1
    if (asked := asked_processes()) is not None:
        return asked
    is_small = (source.size or 0) < (FROM_PACKED_BYTES if source.is_packed else FROM_BYTES)
    return 1 if is_small else min(len(own_cores()), _MOST_PROCESSES)


class Crew:
    """The processes that read one array of events.

    Args:
        source: A file.
        reader: How this process reads sections.
        sections: Those of the array.
        out: Where rows and losses go.
        header: Where names go.
        sorter: Where begin and end events wait.
        first: The first section to be read.
        at: Where it begins.
    """

    def __init__(
        self,
        source: Source,
        reader: SectionReader,
        sections: Sections,
        out: TraceBuilder,
        header: FileHeader,
        sorter: Sorter,
        *,
        first: int,
        at: int,
    ) -> None:
        self._source, self._reader, self._sections = source, reader, sections
        self._out, self._header, self._sorter = out, header, sorter
        self._places = Places(source)
        self._task = Task(
            path=str(source.path.absolute() if source.path else ""),
            limits=msgspec.to_builtins(source.limits),
            begin=sections.begin,
            size=sections.size,
            bare=reader.bare,
            tables=sorted(out.tables),
            constants=out.constants,
            folder=str(out.work.absolute()),
            compression="zstd" if out.is_stored else "lz4",
        )
        self._decoded: dict[int, Decoded] = {}
        self._replies: queue.Queue[Decoded | _Worker] = queue.Queue()
        self._at = at
        self._next = first

    def run(self, processes: int) -> tuple[Window, str | None]:
        """Read the array. The text behind it, and what was wrong with the compressed data.

        Raises:
            InputError: The file can't be read, or a process ended.
        """
        numbers = _numbers(range(self._next, self._next + self._count()))
        workers: list[_Worker] = []
        try:
            workers += [_Worker(self._task, numbers, self._replies) for _ in range(processes - 1)]
            last = self._read(numbers, workers)
        except BaseException:
            self._out.reset()
            raise
        finally:
            for worker in workers:
                worker.close()
            os.close(numbers)
            for left in Path(self._task.folder).glob(f"{_STEM}*"):  # of sections that were read again
                left.unlink(missing_ok=True)
        if last is None:
            text = self._places.at(self._at)
            read_in_sections(text, self._out.losses, self._sorter, self._reader, self._sections, self._next)
            return text, self._places.damage
        if last.tail is not None:
            return Window(io.BytesIO(last.tail), self._at), last.damage
        return self._places.at(self._at), last.damage

    def close(self) -> None:
        """Close the file."""
        self._places.close()

    def _count(self) -> int:
        """Sections that may be there: of packed data, as many as there can be numbers."""
        if self._source.path is None or self._source.is_packed:
            return _MOST_SECTIONS
        size = (self._source.size or 0) - self._at
        return max(1, min(_MOST_SECTIONS, -(-size // self._sections.size)))

    def _read(self, numbers: int, workers: list["_Worker"]) -> Decoded | None:
        """Decode and join sections until the array ends; the last one, or None where the numbers ended first."""
        for decoded in _decode_all(self._task, self._places, self._reader, numbers):
            self._decoded[decoded.number] = decoded
            while not self._replies.empty():
                self._take(self._replies.get())
            if last := self._join():
                return last
        waiting = len([worker for worker in workers if not worker.is_done])
        while waiting:
            reply = self._replies.get()
            waiting -= isinstance(reply, _Worker)
            self._take(reply)
            if last := self._join():
                return last
        for status in filter(None, (worker.wait() for worker in workers)):  # it may have taken a section with it
            what = f"signal {-status}" if status < 0 else f"exit status {status}"
            raise InputError(f"{self._source.name}: a process that decoded a part of it ended ({what})", hint=_HINT)
        return None

    def _take(self, reply: "Decoded | _Worker") -> None:
        if isinstance(reply, _Worker):
            reply.is_done = True
        else:
            self._decoded[reply.number] = reply

    def _join(self) -> Decoded | None:
        """Add what follows what was added; the last section, where the array ends with it."""
        while decoded := self._decoded.pop(self._next, None):
            if decoded.parts is None or decoded.parts.start != self._at:
                decoded = self._again()
            assert decoded.parts is not None
            join_parts(decoded.parts, self._out, self._header, self._sorter)
            self._at = decoded.parts.stop
            self._next += 1
            self._source.report(self._at)
            if decoded.parts.is_last:
                return decoded
        return None

    def _again(self) -> Decoded:
        """The next section, from where it begins."""
        places = Places(self._source)
        with closing(places):
            return _decode(self._task, places.at(self._at), places, self._reader, self._next)


class _Worker:
    """Another process; a thread puts what it sends into a queue, and the worker itself when that was all."""

    def __init__(self, task: Task, numbers: int, replies: "queue.Queue[Decoded | _Worker]") -> None:
        program = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import main; main({numbers})"
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-S", "-c", program],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                pass_fds=[numbers],
                env=os.environ | _ALONE,
            )
        except (OSError, ValueError) as error:
            raise InputError(f"no process could be started to decode: {error}", hint=_HINT) from error
        assert self._process.stdin is not None
        with suppress(OSError), self._process.stdin as pipe:
            pipe.write(msgspec.msgpack.encode(task))
        self._replies = replies
        self.is_done = False
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def wait(self) -> int:
        """How it ended: 0, an exit status, or less than 0 for a signal."""
        return self._process.wait()

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()
        self._thread.join()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with suppress(msgspec.DecodeError):
            for message in _messages(self._process.stdout):
                self._replies.put(msgspec.msgpack.decode(message, type=Decoded))
        self._replies.put(self)


def main(numbers: int) -> None:
    """The other process: read the task from stdin, and write what is decoded to stdout."""
    import gc

    gc.disable()
    task = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=Task)
    source = Source(task.path, limits=msgspec.convert(task.limits, Limits))
    reader = SectionReader(frozenset(task.tables), event_bytes=source.limits.event_bytes, bare=task.bare)
    out = sys.stdout.buffer
    with closing(Places(source)) as places:
        for decoded in _decode_all(task, places, reader, numbers):
            message = msgspec.msgpack.encode(decoded)
            out.write(_LENGTH.pack(len(message)) + message)
            out.flush()


def _decode_all(task: Task, places: Places, reader: SectionReader, numbers: int) -> Iterator[Decoded]:
    """Sections as their numbers come; nothing more once one is the last."""
    sections = Sections(task.begin, task.size)
    before: Decoded | None = None
    while len(head := os.read(numbers, _NUMBER.size)) == _NUMBER.size:
        (number,) = _NUMBER.unpack(head)
        before = _decode_next(task, places, reader, sections, number, before)
        yield before
        if before.parts and before.parts.is_last:
            return


def _decode_next(
    task: Task, places: Places, reader: SectionReader, sections: Sections, number: int, before: Decoded | None
) -> Decoded:
    """One section; anything that can't be done here is left to be tried once more, where its errors are met."""
    begin = sections.limit(number - 1)
    try:
        if number == 0:
            text = places.at(begin)
        elif before and before.parts and before.number == number - 1:
            text = places.at(before.parts.stop)
        else:
            text = places.near(begin)
            if not find_start(text, begin):
                return Decoded(number)
        return _decode(task, text, places, reader, number)
    except Exception:  # noqa: BLE001 - the edge of a worker: whoever joins meets it again, and raises it
        return Decoded(number)


def _decode(task: Task, text: Window, places: Places, reader: SectionReader, number: int) -> Decoded:
    parts = read_parts(
        text,
        Sections(task.begin, task.size).limit(number),
        reader,
        tables=frozenset(task.tables),
        constants=task.constants,
        stem=Path(task.folder) / f"{_STEM}{number:05}-{os.getpid()}",
        compression=task.compression,
    )
    if not parts.is_last:
        return Decoded(number, parts)
    text.fill(_TAIL_BYTES)
    tail = bytes(text.buf[text.pos : text.end]) if text.eof else None
    return Decoded(number, parts, tail, places.damage)


def _numbers(wanted: Iterable[int]) -> int:
    """A pipe's end from which the numbers of sections can be read, each once."""
    take, give = os.pipe()
    with suppress(BlockingIOError):
        os.set_blocking(give, False)
        os.write(give, b"".join(_NUMBER.pack(number) for number in wanted))
    os.close(give)
    return take


def _messages(pipe: IO[bytes]) -> Iterator[bytes]:
    while len(head := pipe.read(_LENGTH.size)) == _LENGTH.size:
        (size,) = _LENGTH.unpack(head)
        message = pipe.read(size)
        if len(message) < size:
            return
        yield message
