"""Launches of a compressed file alone: one thread unpacks it piece by piece, others have the library read the pieces.

A piece begins with an event, and is read up to its last separator that isn't among the last bytes of the text so far;
the next one begins with what follows. As many pieces are there as threads work on, and one that is being filled. It is
unpacked to where it is read from, in few calls: another thread that imports modules may hold the interpreter for 5 ms
after each. What isn't one whole stream is for the reader that says what is wrong with it.
"""

import ctypes
import queue
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO, Final

from inferometer.errors import InferometerError
from inferometer.formats.json_text.window import Truncated, Window
from inferometer.formats.kineto.cut import CutFailed, go_to_events, learn_separator
from inferometer.formats.kineto.native import launches
from inferometer.formats.kineto.native.launches import NativeLaunches, Report
from inferometer.formats.source import Source

PIECE_BYTES = 8 << 20
"""How much of the text a thread reads at a time."""
_MOST_READERS: Final = 3  # more would wait for what is unpacked
_REPORT_S: Final = 0.2


class PackedLaunches(NativeLaunches):
    """The launches of one compressed file.

    Raises:
        CutFailed: The text is too irregular for it.
    """

    def __init__(self, library: ctypes.CDLL, path: Path, threads: int) -> None:
        self.library = library
        self._readers = min(threads, _MOST_READERS)
        source = Source(path)
        try:
            with source.open() as stream:
                text = Window(stream)
                go_to_events(text)
                self._begin = self._place = text.offset
                self._between = learn_separator(text)
            self._file = path.open("rb", buffering=0)
        except (InferometerError, OSError, Truncated) as error:
            raise CutFailed from error
        self._limits = source.limits
        self._parts: list[Future[int | None]] = []
        self._free: queue.SimpleQueue[bytearray] = queue.SimpleQueue()
        self._left = b""
        self._is_whole = self._is_over = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def parts(self, begin: int, report: Report) -> Iterator[int]:
        """What the threads decoded, once they have decoded all."""
        while self._thread.is_alive():
            self._thread.join(_REPORT_S)
            report(self._place)
        if begin != self._begin or not self._is_whole or any(part.result() is None for part in self._parts):
            raise CutFailed
        while self._parts:
            yield self._parts.pop(0).result() or 0

    def rest(self) -> tuple[int, bytes]:
        """The text's end."""
        return self._place, self._left

    def close(self) -> None:
        """End the threads, and let go of what they decoded."""
        self._is_over = True
        self._thread.join()
        while self._parts:
            if part := self._parts.pop().result():
                self.library.kineto_free(part)
        self._file.close()

    def _run(self) -> None:
        from isal import igzip, isal_zlib

        try:
            with ThreadPoolExecutor(self._readers) as pool, igzip.open(self._file) as text:  # type: ignore[no-untyped-call]
                text.seek(self._begin)
                self._unpack(text, pool)
        except (CutFailed, OSError, EOFError, MemoryError, isal_zlib.error):  # type: ignore[misc]
            return
        self._is_whole = not self._is_over

    def _unpack(self, text: BinaryIO, pool: ThreadPoolExecutor) -> None:
        """Give all pieces to the readers; what then is left is the rest."""
        left, is_last, pieces = b"", False, 0
        while not is_last and not self._is_over:
            if pieces <= self._readers and self._free.empty():
                self._free.put(bytearray(PIECE_BYTES + launches.REST_BYTES))
                pieces += 1
            piece = self._free.get()
            end = self._fill(piece, left, text)
            if self._limits.is_too_much(self._place + end, self._file.tell()):
                raise CutFailed
            is_last = end < len(piece)
            cut = piece.rfind(self._between.text, 0, max(0, end - launches.REST_BYTES))
            begin_of_left = cut + self._between.opening if cut != -1 else 0
            if cut == -1 and not is_last:
                raise CutFailed
            left = bytes(memoryview(piece)[begin_of_left:end])
            if cut != -1:
                self._parts.append(pool.submit(self._read, piece, cut + len(self._between.text)))
            self._place += begin_of_left
        self._left = left

    def _fill(self, piece: bytearray, left: bytes, text: BinaryIO) -> int:
        """Put `left` into it, and behind that what comes next; how much stands there then."""
        end = len(left)
        if end > len(piece):
            raise CutFailed
        with memoryview(piece) as view:
            view[:end] = left
            while end < len(piece) and (got := text.readinto(view[end:])):  # type: ignore[attr-defined]
                end += got
        return end

    def _read(self, piece: bytearray, size: int) -> int | None:
        """A piece's handle; None where anything is unusual."""
        (separator,) = self._between
        try:
            place = (ctypes.c_char * len(piece)).from_buffer(piece)
            handle: int | None = self.library.kineto_launches(place, size, separator, len(separator))
        finally:
            self._free.put(piece)
        if handle is None:
            self._is_over = True
        return handle
