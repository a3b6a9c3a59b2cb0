"""Cut the text of device work out of a Kineto file without decoding the rest; for large files in a process of its own.

A quoted category can't stand inside a JSON string, whose quotes would be escaped, so searching for `"kernel"`
overlooks no launch. What separates two events literally is learned from the first two. The search keeps Python's lock,
so another process does it while this one imports and decodes; nothing heavy is imported here, and it starts in 40 ms.
"""

import io
import os
import queue
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import BinaryIO, NamedTuple

from inferometer.errors import InferometerError
from inferometer.formats.json_text.text import Text, Truncated, object_end
from inferometer.formats.source import Source

PROCESS_FROM_BYTES = 32 << 20  # below this, another process costs more than it saves
PROCESS_FROM_PACKED_BYTES = 3 << 20
BLOCK_BYTES = 1 << 20
_LARGEST_EVENT_BYTES = 64 << 20
_NEEDLES = (b'"kernel"', b'"gpu_mem')
_WHITE = b" \t\r\n"
_FRAME = struct.Struct("<cq")
_OFFSET = struct.Struct("<q")
_START, _LAUNCHES, _TAIL = b"S", b"L", b"T"  # offset of the array; launches; offset of the rest, and the rest
_BLOCKS_AHEAD = 64


class CutFailed(Exception):
    """The file is not as regular as cutting needs it."""


class Separator(NamedTuple):
    """The literal text from the white space before an event's `}` to the next event's first quote."""

    text: bytes

    @property
    def close(self) -> int:
        """Where in it the first event ends."""
        return self.text.index(b"}") + 1

    @property
    def opening(self) -> int:
        """Where in it the second event begins."""
        return self.text.index(b"{")


def learn_separator(text: Text) -> Separator:
    """What stands between events; `text` stands before the first one.

    Raises:
        CutFailed: There are no two events, or more than white space and a comma stands between them.
    """
    text.peek()
    text.fill(BLOCK_BYTES)
    first = object_end(text.buf, text.pos, text.end)
    if first == -1 or text.buf[text.pos] != ord("{"):
        raise CutFailed
    start = first - 1
    while text.buf[start - 1] in _WHITE:
        start -= 1
    stop = text.buf.find(b'"', first, text.end) + 1
    between = bytes(text.buf[start:stop])
    if between.translate(None, _WHITE) != b'},{"':
        raise CutFailed
    return Separator(between)


def cut_launches(text: Text, between: Separator) -> Iterator[bytes]:
    """Text of the launches of each block, joined by commas; afterwards `text` stands at the last event or the first.

    Other events that hold the same words come along: the decoder sorts them out.
    """
    cut_any, need = False, BLOCK_BYTES
    while True:
        text.fill(need)
        if text.eof:
            break
        before = text.offset
        yield _cut_block(text, between)
        cut_any = True
        need = BLOCK_BYTES if text.offset > before else 2 * need  # one event fills the window
        if need > _LARGEST_EVENT_BYTES:
            raise CutFailed
    if cut_any:
        text.pos += between.opening


def _cut_block(text: Text, between: Separator) -> bytes:
    """Launches of all events that end in the window; the last separator stays for the next block."""
    buf, pos, (separator,) = text.buf, text.pos, between
    close, opening = between.close, between.opening
    cut = buf.rfind(separator, pos, text.end)
    if cut == -1:
        raise CutFailed
    pieces: dict[int, bytes] = {}
    for needle in _NEEDLES:
        at = buf.find(needle, pos, cut)
        while at != -1:
            start = buf.rfind(b"{", pos, at)
            if start < opening or not buf.startswith(separator, start - opening):
                before = buf.rfind(separator, pos, at)
                start = pos if before == -1 else before + opening
            stop = buf.find(separator, at, cut + len(separator)) + close
            pieces[start] = bytes(buf[start:stop])
            at = buf.find(needle, stop, cut)
    text.pos = cut
    return b",".join(pieces.values())


def is_worth_a_process(source: Source) -> bool:
    """Whether the file is large enough, and this machine has a core to spare."""
    if source.path is None or (os.cpu_count() or 1) < 2:
        return False
    try:
        size = source.path.stat().st_size
        return size >= (PROCESS_FROM_PACKED_BYTES if source.is_packed else PROCESS_FROM_BYTES)
    except OSError:
        return False


class CuttingProcess:
    """Another process that cuts the launches out of one file, from its first byte on."""

    def __init__(self, path: Path) -> None:
        program = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import main; main(sys.argv[1])"
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-S", "-c", program, str(path.absolute())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        except (OSError, ValueError) as error:
            raise CutFailed from error

    def blocks(self, text: Text) -> Iterator[bytes]:
        """Text of the launches of each block; afterwards `text` stands at the last event.

        Raises:
            CutFailed: The process failed, or its array of events doesn't begin where `text` stands.
        """
        for kind, content in self._frames():
            if kind == _LAUNCHES:
                yield content
                continue
            (offset,) = _OFFSET.unpack_from(content)
            if kind == _TAIL:
                text.replace(io.BytesIO(content[_OFFSET.size :]), offset)
            elif offset != text.offset:
                raise CutFailed

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()

    def _frames(self) -> Iterator[tuple[bytes, bytes]]:
        pipe, kind = self._process.stdout, b""
        while pipe and len(head := pipe.read(_FRAME.size)) == _FRAME.size:
            kind, size = _FRAME.unpack(head)
            yield kind, pipe.read(size)
        if kind != _TAIL:
            raise CutFailed


def main(path: str) -> None:
    """The other process: write frames to stdout. A missing tail tells that it failed."""
    out = _Writer(sys.stdout.buffer)
    try:
        with closing(Source(path).open()) as stream:
            text = Text(stream)
            _go_to_events(text)
            out.put(_START, _OFFSET.pack(text.offset))
            for block in cut_launches(text, learn_separator(text)):
                out.put(_LAUNCHES, block)
            if stream.damage is None:
                out.put(_TAIL, _OFFSET.pack(text.offset) + text.buf[text.pos : text.end])
    except (CutFailed, Truncated, InferometerError, OSError):
        pass
    out.close()


def _go_to_events(text: Text) -> None:
    if text.skip_mark() != ord("{"):
        raise CutFailed
    for key in text.fields():
        if key == "traceEvents" and text.take(ord("[")):
            return
        text.take_value()
    raise CutFailed


class _Writer:
    """Writes frames in a thread, so that the search goes on while the reader is busy decoding."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._queue: queue.Queue[bytes | None] = queue.Queue(_BLOCKS_AHEAD)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def put(self, kind: bytes, content: bytes) -> None:
        self._queue.put(_FRAME.pack(kind, len(content)) + content)

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        try:
            while (frame := self._queue.get()) is not None:
                self._out.write(frame)
            self._out.flush()
        except OSError:
            os._exit(1)  # the reader left
