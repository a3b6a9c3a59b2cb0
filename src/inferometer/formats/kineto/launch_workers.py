"""Processes that cut and decode the launches of a large file, while this one imports polars.

Each takes every n-th range of the file's bytes, and hands back columns. Parts are read in the order of the file, and a
process waits when it is a few parts ahead, so memory is bounded. A compressed file is one range. Nothing heavy is
imported here, so that a process begins to read at once.
"""

import gc
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Collection, Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import IO, BinaryIO

import msgspec

from inferometer.errors import InferometerError
from inferometer.formats.json_text.window import Truncated, Window
from inferometer.formats.kineto.cut import (
    CutFailed,
    cut_launches,
    find_separator,
    go_to_events,
    learn_separator,
    pass_separator,
)
from inferometer.formats.kineto.launch_columns import Batch, Irregular, LaunchBatches
from inferometer.formats.source import Source, Stream

RANGE_BYTES = 16 << 20
_LENGTH_BYTES = 8
_PARTS_AHEAD = 8


class Part(msgspec.Struct):
    """Launches of one range, or of one stretch of a compressed file.

    `begin`: where the array of events begins in the text. `offset`: how far the text was read. `rest`: at the end of
    the text, what stands from `offset` on and was not cut.
    """

    begin: int
    offset: int
    batches: list[Batch]
    rest: bytes | None = None


_decode = msgspec.msgpack.Decoder(Part).decode


class LaunchWorkers:
    """`count` processes at work on one file. `columns` as of `LaunchBatches`."""

    def __init__(self, path: Path, columns: Collection[str] | None, count: int) -> None:
        program = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import main; main()"
        wanted = json.dumps(None if columns is None else sorted(columns))
        self._processes: list[subprocess.Popen[bytes]] = []
        try:
            for n in range(count):
                arguments = [str(path.absolute()), wanted, str(n), str(count)]
                self._processes.append(
                    subprocess.Popen(
                        [sys.executable, "-S", "-c", program, *arguments],
                        stdin=subprocess.DEVNULL,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.DEVNULL,
                    )
                )
        except (OSError, ValueError) as error:
            self.close()
            raise CutFailed from error

    def parts(self, begin: int) -> Iterator[Part]:
        """The parts of a file whose events begin at `begin`, in order; the last one has a rest.

        Raises:
            CutFailed: A process failed, or found another beginning.
        """
        n = 0
        while True:
            part = _received(self._processes[n % len(self._processes)].stdout)
            if part.begin != begin:
                raise CutFailed
            yield part
            if part.rest is not None:
                return
            n += 1

    def close(self) -> None:
        """End the processes."""
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.communicate()


def _received(pipe: IO[bytes] | None) -> Part:
    if pipe is None or len(head := pipe.read(_LENGTH_BYTES)) < _LENGTH_BYTES:
        raise CutFailed
    data = pipe.read(int.from_bytes(head, "little"))
    try:
        return _decode(data)
    except msgspec.DecodeError as error:  # it ended meanwhile
        raise CutFailed from error


def main() -> None:
    """One process: write parts to stdout. That none of them has a rest tells that it failed."""
    gc.disable()  # what is made here has no cycles
    path, columns, n, count = sys.argv[1:]
    out = _Writer(sys.stdout.buffer)
    try:
        source = Source(path)
        with closing(source.open()) as stream:
            work = Work(stream, json.loads(columns))
            parts = work.stretches(stream) if source.is_packed else work.ranges(Path(path), int(n), int(count))
            for part in parts:
                out.put(msgspec.msgpack.encode(part))
    except (CutFailed, Irregular, Truncated, InferometerError, OSError):
        pass
    out.close()


class Work:
    """Reads up to the events; then what it is asked for."""

    def __init__(self, stream: Stream, columns: Collection[str] | None) -> None:
        self._columns = columns
        self._text = Window(stream)
        go_to_events(self._text)
        self._begin = self._text.offset
        self._between = learn_separator(self._text)

    def ranges(self, path: Path, n: int, count: int) -> Generator[Part]:
        """Every `count`-th range from the `n`-th on, up to the one in which the text ends."""
        with path.open("rb", buffering=0) as file:
            while True:
                start = self._begin + n * RANGE_BYTES
                file.seek(start)
                self._text.replace(file, start)
                if n == 0 or find_separator(self._text, self._between):
                    yield self._part(cut_launches(self._text, self._between, start + RANGE_BYTES))
                if self._text.eof:
                    return
                n += count

    def stretches(self, stream: Stream) -> Iterator[Part]:
        """All of the text."""
        while True:
            part = self._part(cut_launches(self._text, self._between, self._text.offset + RANGE_BYTES))
            if stream.damage is not None:
                raise CutFailed
            yield part
            if self._text.eof:
                return

    def _part(self, blocks: Iterator[bytes]) -> Part:
        launches, text = LaunchBatches(self._columns), self._text
        batches = [batch for block in blocks for batch in launches.take(b"[" + block + b"]")]
        batches += launches.flush()
        if not text.eof:
            return Part(self._begin, text.offset, batches)
        pass_separator(text, self._between)
        return Part(self._begin, text.offset, batches, bytes(text.buf[text.pos : text.end]))


class _Writer:
    """Writes parts in a thread, so that the work goes on while the reader is busy."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._queue: queue.Queue[bytes | None] = queue.Queue(_PARTS_AHEAD)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def put(self, content: bytes) -> None:
        self._queue.put(len(content).to_bytes(_LENGTH_BYTES, "little") + content)

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        try:
            while (part := self._queue.get()) is not None:
                self._out.write(part)
            self._out.flush()
        except OSError:
            os._exit(1)  # the reader left
