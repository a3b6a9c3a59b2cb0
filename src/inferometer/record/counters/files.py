"""Small files that the kernel makes anew at each reading (/proc, /sys), kept open: a reading then takes 1 to 25 µs.

On Linux they are read without letting go of Python's lock. `os.pread` lets go of it, and next to a busy thread
gets it back only after its switch interval of 5 ms: twenty files then took up to 70 ms, for which the time of a sample
was unsure.
"""

import ctypes
import os
import sys
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path

_CHUNK = 1 << 16
_PAGE = 2048  # less than this is the end: the kernel fills pages of 4 KiB with lines that are all shorter

_Read = Callable[[int, int], bytes]


class Files:
    """Files under `root`, which tests replace by a folder. Not for two threads at once."""

    def __init__(self, root: Path = Path("/")) -> None:
        self.root = root
        self._open: dict[str, int] = {}

    def read(self, path: str) -> str:
        """The whole file, which stays open. Raises `OSError` where there is none or it is forbidden."""
        number = self._open.get(path)
        if number is None:
            number = self._open[path] = os.open(self.place(path), os.O_RDONLY | os.O_CLOEXEC)
        try:
            return _read_all(number)
        except OSError:
            self.forget(path)
            raise

    def read_once(self, path: str) -> str:
        """The whole file, closed again."""
        number = os.open(self.place(path), os.O_RDONLY | os.O_CLOEXEC)
        try:
            return _read_all(number)
        finally:
            os.close(number)

    def names(self, folder: str) -> list[str]:
        """What is in a folder. Raises `OSError` where it can't be listed."""
        return os.listdir(self.place(folder))  # noqa: PTH208  a Path for each of thousands takes too long

    def place(self, path: str) -> str:
        """Where `path` is under the root."""
        return os.path.join(self.root, path.lstrip("/"))  # noqa: PTH118  the same

    def forget(self, path: str) -> None:
        """Close it."""
        number = self._open.pop(path, None)
        if number is not None:
            os.close(number)

    def close(self) -> None:
        """Close all."""
        for path in tuple(self._open):
            self.forget(path)


def _read_all(number: int) -> str:
    """Some of the kernel's files come in pages, however much is asked for."""
    read = reader()
    part = read(number, 0)
    if len(part) < _PAGE:
        return part.decode("utf-8", errors="replace")
    parts, at = [], 0
    while part:
        parts.append(part)
        at += len(part)
        part = read(number, at)
    return b"".join(parts).decode("utf-8", errors="replace")


@cache
def reader() -> _Read:
    """Reads up to 64 KiB of an open file from a place on: holding Python's lock on Linux, else as `os` does."""
    if not sys.platform.startswith("linux") or sys.maxsize < 2**32:  # there its offset would be of 32 bits
        return lambda number, at: os.pread(number, _CHUNK, at)
    buffers = threading.local()  # one per thread: nothing is kept of it
    pread = ctypes.PyDLL(None, use_errno=True).pread
    pread.restype = ctypes.c_ssize_t
    pread.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int64)

    def read(number: int, at: int) -> bytes:
        buffer = getattr(buffers, "own", None)
        if buffer is None:
            buffer = buffers.own = ctypes.create_string_buffer(_CHUNK)
        size = pread(number, buffer, _CHUNK, at)
        if size < 0:
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error))
        return ctypes.string_at(buffer, size)

    return read
