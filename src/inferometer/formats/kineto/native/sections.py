"""Sections of an array of events that the library decodes; each that is unusual is read by Python, where it stands.

Sections are those of `sections.py`, so nothing depends on who reads which. Those of a plain file that is large are
decoded in threads, which guess where their section begins; what was guessed wrong is decoded again.
"""

import ctypes
import io
import os
from contextlib import AbstractContextManager, closing, nullcontext
from functools import partial
from typing import Final

from inferometer.formats.json_text.window import Window
from inferometer.formats.kineto import dispatch
from inferometer.formats.kineto.dispatch import Sorter
from inferometer.formats.kineto.native.columns import decode
from inferometer.formats.kineto.native.rows import SectionRows, wanted_tables
from inferometer.formats.kineto.native.texts import BEHIND_BYTES, PackedText, PlainText, SectionTexts
from inferometer.formats.kineto.sections import SectionReader, Sections
from inferometer.formats.native.library import reading_threads
from inferometer.formats.native.threads import DecoderThreads
from inferometer.formats.source import Source, Stream
from inferometer.trace.builder import TraceBuilder

FROM_BYTES: Final = 24 << 20  # below this, one thread is enough
FROM_PACKED_BYTES: Final = 3 << 19  # the same of a packed file
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
        if not file and not self._is_large_and_packed():
            self._read_text(text)
            return None
        with self._decoders() as threads:
            if not file:
                with closing(PackedText(text, stream, self._sections, self._decode, threads)) as packed:
                    return self._read_ahead(packed, text)
            plain = PlainText(file, stream, self._sections, self._decode, threads, self._source.report)
            plain.guesses = os.fstat(file.fileno()).st_size - text.offset >= FROM_BYTES
            with file, closing(plain):
                return self._read_ahead(plain, text, gives_up=True)

    def _decoders(self) -> AbstractContextManager[DecoderThreads]:
        """Those that all files share that are read at the same time, or our own."""
        shared = self._source.threads
        return nullcontext(shared) if shared else DecoderThreads(self._library, reading_threads())

    def _is_large_and_packed(self) -> bool:
        """Whether it pays to unpack in another thread than those that decode."""
        source = self._source
        return source.is_packed and (source.size or 0) >= FROM_PACKED_BYTES and reading_threads() > 1

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

    def _read_ahead(self, texts: SectionTexts, text: Window, *, gives_up: bool = False) -> int | None:
        """All sections, as they were guessed where that was right."""
        number, misses, is_last = 0, 0, False
        guesses = texts.ahead()
        while not is_last and (not gives_up or misses <= 1 + number // _MISSES):
            decoded = next(guesses)
            if decoded is None or decoded.start != text.offset:
                decoded = texts.decode(text.offset, number)
            if decoded and self._rows.add(decoded):
                texts.go_to(decoded.stop, text)
                is_last = decoded.is_last
            else:
                misses += 1
                is_last = self._reader.read(text, self._out.losses, self._sorter, self._sections.limit(number))
            number += 1
            texts.tell(text.offset)
        return None if is_last else number
