"""Sections of an array of events that the library decodes; each that is unusual is read by Python, where it stands.

Sections are those of `sections.py`, so nothing depends on who reads which. Those of a plain file that is large are
decoded in threads, which guess where their section begins; what was guessed wrong is decoded again.
"""

import ctypes
import io
import os
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, wait
from contextlib import closing, nullcontext
from functools import partial
from itertools import repeat
from typing import Final

from inferometer.formats.json_text.records import BEFORE_BYTES
from inferometer.formats.json_text.window import Window
from inferometer.formats.kineto import dispatch
from inferometer.formats.kineto.dispatch import Sorter
from inferometer.formats.kineto.native.columns import Decoded, decode
from inferometer.formats.kineto.native.rows import SectionRows, wanted_tables
from inferometer.formats.kineto.sections import SectionReader, Sections
from inferometer.formats.native.library import reading_threads
from inferometer.formats.native.threads import DecoderThreads
from inferometer.formats.source import Source, Stream
from inferometer.trace.builder import TraceBuilder

FROM_BYTES = 24 << 20  # below this, one thread is enough
BEHIND_BYTES: Final = 1 << 20  # how far behind its limit a section's last event may end
_MISSES: Final = 4  # one section of so many may be unusual, and one more


class NativeSections:
    """Reads the array's sections in order into the tables.

    Args:
        library: The library.
        source: What is read.
        reader: How Python reads a section.
        sections: Those of the array.
        out: Where rows and losses go.
        sorter: Where events go that Python reads.
    """

    def __init__(
        self,
        library: ctypes.CDLL,
        source: Source,
        reader: SectionReader,
        sections: Sections,
        out: TraceBuilder,
        sorter: Sorter,
    ) -> None:
        self._library, self._source, self._reader, self._sections = library, source, reader, sections
        self._out, self._sorter = out, sorter
        self._rows = SectionRows(out, sorter)
        self._decode = partial(decode, library, wanted=wanted_tables(out), batch_events=dispatch.FLUSH_EVENTS)

    def read(self, text: Window, stream: Stream) -> int | None:
        """Read from `text` on, a window over `stream`, and leave it behind what was read.

        Returns:
            The number of the section that begins there: too many were unusual, so others shall read on. None: the
            array has ended.
        """
        file = self._plain_file()
        if file is None:
            self._read_text(text)
            return None
        shared = self._source.threads
        with file, nullcontext(shared) if shared else DecoderThreads(self._library, reading_threads()) as threads:
            decode_from = partial(self._decode_from, threads.buffer, file.fileno())
            size = os.fstat(file.fileno()).st_size - text.offset
            if size < FROM_BYTES:
                return self._read_file(decode_from, text, stream, _no_guesses())
            guess = partial(self._guess, decode_from)
            with closing(_ahead(threads, guess, -(-size // self._sections.size))) as guesses:
                return self._read_file(decode_from, text, stream, guesses)

    def _plain_file(self) -> io.FileIO | None:
        """The file anew; None where it is none, packed, or gone since the stream was opened, which still has it."""
        path = self._source.path
        if path is None or not self._source.rewindable or self._source.is_packed:
            return None
        try:
            return path.open("rb", buffering=0)
        except OSError:
            return None

    def _read_text(self, text: Window) -> None:
        """All sections one after the other, from the window."""
        number, is_last = 0, False
        while not is_last:
            start, limit = text.offset, self._sections.limit(number)
            text.fill(limit + BEHIND_BYTES - start)
            decoded = self._decode(text.buf, start - text.pos, text.end, begin=start, limit=limit)
            if decoded and self._rows.add(decoded):
                text.pos += decoded.stop - start
                is_last = decoded.is_last
            else:
                is_last = self._reader.read(text, self._out.losses, self._sorter, limit)
            number += 1

    def _read_file(
        self,
        decode_from: Callable[..., Decoded | None],
        text: Window,
        stream: Stream,
        guesses: Iterator[Decoded | None],
    ) -> int | None:
        """All sections of a plain file, as they were guessed where that was right."""
        number, misses, is_last = 0, 0, False
        while not is_last and misses <= 1 + number // _MISSES:
            decoded = next(guesses)
            if decoded is None or decoded.start != text.offset:
                decoded = decode_from(text.offset, number)
            if decoded and self._rows.add(decoded):
                _go_to(decoded.stop, text, stream)
                is_last = decoded.is_last
            else:
                misses += 1
                is_last = self._reader.read(text, self._out.losses, self._sorter, self._sections.limit(number))
            number += 1
            self._source.report(text.offset)
        return None if is_last else number

    def _guess(self, decode_from: Callable[..., Decoded | None], number: int) -> Decoded | None:
        """A section, from where it seems to begin."""
        begin = self._sections.limit(number - 1)
        return decode_from(begin, number, min(begin, BEFORE_BYTES) if number else 0)

    def _decode_from(
        self, buffer: Callable[[int], bytearray], file: int, begin: int, number: int, before: int = 0
    ) -> Decoded | None:
        """A section that begins there; with some text before it, at the first event from there on."""
        base, limit = begin - before, self._sections.limit(number)
        most = max(0, min(limit + BEHIND_BYTES, os.fstat(file).st_size) - base)
        data = buffer(most)
        with memoryview(data)[:most] as view:
            size = os.preadv(file, [view], base)
        return self._decode(data, base, size, begin=begin, limit=limit, is_guess=before > 0)


def _go_to(place: int, text: Window, stream: Stream) -> None:
    """Have the window stand there; of a plain file."""
    stream.seek(place)
    text.replace(stream, place)


def _ahead(threads: DecoderThreads, guess: Callable[[int], Decoded | None], count: int) -> Generator[Decoded | None]:
    """`guess` of each number below `count`, one more of them at work or waiting than there are threads; then None."""
    waiting: deque[Future[Decoded | None]] = deque()
    try:
        for number in range(count):
            waiting.append(threads.submit(guess, number))
            if len(waiting) > threads.count:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:  # the file is about to be closed
        wait([each for each in waiting if not each.cancel()])
    yield from _no_guesses()


def _no_guesses() -> Iterator[None]:
    return repeat(None)
