"""The text of a file as its sections are decoded from it: by threads, some sections ahead of who takes them.

Threads guess where a section begins; who takes it knows, and has a section decoded again that was guessed wrong. A
plain file is read at any place. A packed one is unpacked by a thread of its own to pieces of a section each, with what
stands around it; they are kept until their section is taken.
"""

import io
import os
import queue
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, wait
from itertools import count
from typing import Final

import msgspec

from inferometer.formats.json_text.records import BEFORE_BYTES
from inferometer.formats.json_text.window import ReadsInto, Window
from inferometer.formats.kineto.native.columns import Decoded
from inferometer.formats.kineto.sections import Sections
from inferometer.formats.native.threads import DecoderThreads
from inferometer.formats.source import Stream

BEHIND_BYTES: Final = 1 << 20  # how far behind its limit a section's last event may end
_MOST_BUSY: Final = 3  # more threads would wait for what is unpacked

Decode = Callable[..., Decoded | None]
"""As `columns.decode`, of a text that is held."""


class SectionTexts(ABC):
    """Sections of one text, as they are decoded from it."""

    @abstractmethod
    def ahead(self) -> Iterator[Decoded | None]:
        """Of each section what was guessed; None, for ever in the end, where nothing was."""

    @abstractmethod
    def decode(self, begin: int, number: int) -> Decoded | None:
        """A section of which it is known where it begins."""

    @abstractmethod
    def go_to(self, place: int, text: Window) -> None:
        """Have the window stand there."""

    @abstractmethod
    def tell(self, place: int) -> None:
        """Tell the progress that the text was read up to there."""

    @abstractmethod
    def close(self) -> None:
        """End what works ahead; a window stays where it is, and can be read on."""


class PlainText(SectionTexts):
    """That of a plain file.

    Args:
        file: Open, and stays so meanwhile.
        stream: Of the same file; the window's.
        sections: Those of the array.
        decode: Decodes what is held.
        threads: Those that guess, where `guesses`, and whose buffers are used.
        report: Is told how many bytes were read.
    """

    guesses = True

    def __init__(
        self,
        file: io.FileIO,
        stream: Stream,
        sections: Sections,
        decode: Decode,
        threads: DecoderThreads,
        report: Callable[[int], None],
    ) -> None:
        self._file, self._stream, self._sections, self._decode = file.fileno(), stream, sections, decode
        self._threads, self._report = threads, report
        self._waiting: deque[Future[Decoded | None]] = deque()

    def ahead(self) -> Generator[Decoded | None]:
        """Of each section what was guessed."""
        size = os.fstat(self._file).st_size - self._sections.begin
        for number in range(-(-size // self._sections.size) if self.guesses else 0):
            self._waiting.append(self._threads.submit(self._guess, number))
            if len(self._waiting) > self._threads.count:  # one more is at work or waits
                yield self._waiting.popleft().result()
        while self._waiting:
            yield self._waiting.popleft().result()
        while True:
            yield None

    def decode(self, begin: int, number: int) -> Decoded | None:
        """A section of which it is known where it begins."""
        return self._read(begin, number, 0)

    def go_to(self, place: int, text: Window) -> None:
        """Have the window stand there."""
        self._stream.seek(place)
        text.replace(self._stream, place)

    def tell(self, place: int) -> None:
        """Tell the progress that the text was read up to there."""
        self._report(place)

    def close(self) -> None:
        """Wait for those that still guess: the file is about to be closed."""
        wait([each for each in self._waiting if not each.cancel()])

    def _guess(self, number: int) -> Decoded | None:
        """A section, from where it seems to begin."""
        begin = self._sections.limit(number - 1)
        return self._read(begin, number, min(begin, BEFORE_BYTES) if number else 0)

    def _read(self, begin: int, number: int, before: int) -> Decoded | None:
        """A section that begins there; with some text before it, at the first event from there on."""
        base, limit = begin - before, self._sections.limit(number)
        most = max(0, min(limit + BEHIND_BYTES, os.fstat(self._file).st_size) - base)
        data = self._threads.buffer(most)
        with memoryview(data)[:most] as view:
            size = os.preadv(self._file, [view], base)
        return self._decode(data, base, size, begin=begin, limit=limit, is_guess=before > 0)


class _Piece(msgspec.Struct):
    """The text from `base` on, `size` bytes of `data`; `guess` is of its section, None where the text ended before."""

    number: int
    data: bytearray
    base: int
    size: int
    guess: Future[Decoded | None] | None = None


class PackedText(SectionTexts):
    """That of a packed file, which is unpacked as a stream.

    Args:
        text: Stands at the array's begin.
        stream: What else it reads; nobody else does until this is closed.
        sections: Those of the array.
        decode: Decodes what is held.
        threads: Those that guess.
    """

    def __init__(
        self, text: Window, stream: Stream, sections: Sections, decode: Decode, threads: DecoderThreads
    ) -> None:
        self._sections, self._decode, self._threads, self._stream = sections, decode, threads, stream
        self._rest = _Rest(*text.rest())
        self._free: queue.SimpleQueue[bytearray | None] = queue.SimpleQueue()
        self._ready: queue.SimpleQueue[_Piece | BaseException | None] = queue.SimpleQueue()
        self._held: deque[_Piece] = deque()
        self._has_ended = self._is_over = False
        for _ in range(min(threads.count, _MOST_BUSY) + 2):  # one waits for a thread, one is being filled
            self._add_room()
        stream.tells_itself = False
        self.go_to(text.offset, text)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def ahead(self) -> Generator[Decoded | None]:
        """Of each section what was guessed."""
        for number in count():
            while self._held and self._held[0].number < number:
                self._free.put(self._held.popleft().data)
            piece = self._piece(0)
            yield piece.guess.result() if piece and piece.number == number and piece.guess else None

    def decode(self, begin: int, number: int) -> Decoded | None:
        """A section of which it is known where it begins."""
        piece = self._held[0] if self._held else None
        if piece is None or piece.number != number or not piece.base <= begin < piece.base + piece.size:
            return None
        limit = self._sections.limit(number)
        return self._decode(piece.data, piece.base, piece.size, begin=begin, limit=limit)

    def go_to(self, place: int, text: Window) -> None:
        """Have the window stand there."""
        text.replace(_FromPieces(self._piece, self._add_room, self._rest, place), place)

    def tell(self, place: int) -> None:
        """Tell the progress how much of the packed file was read."""
        self._stream.tell()

    def close(self) -> None:
        """End the thread, once it has filled its piece."""
        self._is_over = True
        self._add_room()
        self._thread.join()
        self._stream.tells_itself = True

    def _add_room(self) -> None:
        """For one piece more."""
        self._free.put(None)

    def _piece(self, place: int) -> _Piece | None:
        """One of those that are held, by its place among them, or the next ones; None behind the text's end.

        Raises:
            InputError: What the stream raised.
        """
        while len(self._held) <= place and not self._has_ended:
            got = self._ready.get()
            if isinstance(got, _Piece):
                self._held.append(got)
                continue
            self._has_ended = True
            if got is not None:
                raise got
        return self._held[place] if place < len(self._held) else None

    def _run(self) -> None:
        try:
            self._unpack()
            self._ready.put(None)
        except BaseException as error:  # noqa: BLE001  whoever takes pieces raises it
            self._ready.put(error)

    def _unpack(self) -> None:
        """Pieces, one after the other; each begins with what the one before it had behind its section."""
        left = b""
        for number in count():
            begin, limit = self._sections.limit(number - 1), self._sections.limit(number)
            base = begin - (min(begin, BEFORE_BYTES) if number else 0)
            most = limit + BEHIND_BYTES - base
            data = self._free.get()
            if self._is_over:
                return
            if data is None or len(data) < most:
                data = bytearray(BEFORE_BYTES + self._sections.size + BEHIND_BYTES)
            piece = _Piece(number, data, base, self._rest.fill(data, most, left))
            if base + piece.size > begin:
                piece.guess = self._threads.submit(self._guess, piece, begin, limit)
            self._ready.put(piece)
            if base + piece.size <= limit:  # the text has ended
                return
            left = bytes(memoryview(data)[limit - min(limit, BEFORE_BYTES) - base : piece.size])

    def _guess(self, piece: _Piece, begin: int, limit: int) -> Decoded | None:
        is_guess = piece.base < begin
        return self._decode(piece.data, piece.base, piece.size, begin=begin, limit=limit, is_guess=is_guess)


class _Rest:
    """What a window holds already, and what its stream has behind that."""

    def __init__(self, held: bytes, stream: ReadsInto) -> None:
        self._held, self._stream = held, stream

    def readinto(self, target: memoryview, /) -> int:
        """Fill the front of `target`; the number of bytes, 0 at the end."""
        if not self._held:
            return self._stream.readinto(target)
        got = min(len(target), len(self._held))
        target[:got], self._held = self._held[:got], self._held[got:]
        return got

    def fill(self, data: bytearray, most: int, left: bytes) -> int:
        """Put `left` into it, and behind that what follows, up to `most` bytes; how many stand there then."""
        with memoryview(data) as view:
            end = len(left)
            view[:end] = left
            while end < most and (got := self.readinto(view[end:most])):
                end += got
        return end


class _FromPieces:
    """The text from a place on, as a stream of bytes: out of pieces as long as there are any, then out of the rest."""

    def __init__(
        self, piece: Callable[[int], _Piece | None], add_room: Callable[[], None], rest: _Rest, place: int
    ) -> None:
        self._piece, self._add_room, self._rest, self._place = piece, add_room, rest, place

    def readinto(self, target: memoryview, /) -> int:
        """Fill the front of `target`; the number of bytes, 0 at the end."""
        number = 0
        while piece := self._piece(number):
            begin = self._place - piece.base
            assert begin >= 0  # who has read a section stands behind its limit
            if begin < piece.size:
                got = min(len(target), piece.size - begin)
                target[:got] = memoryview(piece.data)[begin : begin + got]
                self._place += got
                return got
            number += 1
            self._add_room()  # who is waited for may have none left
        return self._rest.readinto(target)
