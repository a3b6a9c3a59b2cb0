"""Launches of a file alone, read by threads from the moment on that this is made.

Nothing heavy is imported here: what the threads found becomes columns when polars is there.
"""

import ctypes
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path

from inferometer.formats.json_text.window import Truncated, Window
from inferometer.formats.kineto.cut import CutFailed, go_to_events, learn_separator

RANGE_BYTES = 16 << 20
"""What a thread reads at a time."""
REST_BYTES = 1 << 18
"""How much of the file's end is left to Python, which reads what stands around the events, too."""

Report = Callable[[int], None]


class NativeLaunches(ABC):
    """The launches of one file, as `library` decodes them."""

    library: ctypes.CDLL

    @abstractmethod
    def parts(self, begin: int, report: Report) -> Iterator[int]:
        """What the library decoded, in the file's order: handles for `Decoded`, which lets go of them.

        Args:
            begin: Where the events begin in the text.
            report: Told how many bytes of the text were read, where that takes long.

        Raises:
            CutFailed: Something was unusual, or the events don't begin at `begin`. Then none was given.
        """

    @abstractmethod
    def rest(self) -> tuple[int, bytes]:
        """Where the first event begins that wasn't read, and the text from there on. To be asked after `parts`."""

    @abstractmethod
    def close(self) -> None:
        """End the threads."""


class PlainLaunches(NativeLaunches):
    """Of a plain file: the library's threads read it.

    Raises:
        CutFailed: The file is too small or too irregular for it.
    """

    def __init__(self, library: ctypes.CDLL, path: Path, threads: int) -> None:
        self.library, self._path = library, path
        try:
            with path.open("rb", buffering=0) as file:
                text = Window(file)
                go_to_events(text)
                self._begin = text.offset
                between = learn_separator(text)
            end = path.stat().st_size - REST_BYTES
        except (OSError, Truncated) as error:
            raise CutFailed from error
        self._scan: int | None = None
        if end > self._begin:
            extent, (separator,) = (ctypes.c_size_t * 4)(self._begin, end, RANGE_BYTES, REST_BYTES), between
            self._scan = library.kineto_scan(os.fsencode(path), extent, separator, len(separator), threads)
        if self._scan is None:
            raise CutFailed
        self._opening = between.opening
        self._rest = 0

    def parts(self, begin: int, report: Report) -> Iterator[int]:
        """What the threads decoded, once they have decoded all."""
        rest = ctypes.c_size_t()
        count = self.library.kineto_scan_wait(self._scan, ctypes.byref(rest))
        if count < 0 or begin != self._begin:
            raise CutFailed
        self._rest = rest.value + self._opening
        for number in range(count):
            part = self.library.kineto_scan_part(self._scan, number)
            if part is None:
                raise MemoryError
            yield part

    def rest(self) -> tuple[int, bytes]:
        """The text's end."""
        with self._path.open("rb", buffering=0) as file:
            file.seek(self._rest)
            return self._rest, file.readall()

    def close(self) -> None:
        """End the threads, and let go of what they decoded."""
        if self._scan is not None:
            self.library.kineto_scan_free(self._scan)
            self._scan = None
