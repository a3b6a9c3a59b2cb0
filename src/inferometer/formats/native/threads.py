"""Threads in which the library decodes."""

import ctypes
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import ParamSpec, Self, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")


class DecoderThreads:
    """So many threads, for one file or for all that are read at the same time; a context manager.

    What they hold is theirs until they are closed: new memory for each file would take a fifth of the time.
    """

    def __init__(self, library: ctypes.CDLL, count: int) -> None:
        self.count = count
        self._library = library
        self._pool = ThreadPoolExecutor(count)
        self._held = threading.local()

    def submit(self, work: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> "Future[_T]":
        """Have one of them do it."""
        return self._pool.submit(work, *args, **kwargs)

    def buffer(self, size: int) -> bytearray:
        """The buffer of the thread that asks, of at least that size: one of these, or any other."""
        held: bytearray = getattr(self._held, "buffer", bytearray())
        if len(held) < size:
            held = self._held.buffer = bytearray(size)
        return held

    def close(self) -> None:
        """End them, once what they are at is done."""
        self._pool.shutdown(cancel_futures=True)
        self._held = threading.local()
        self._library.library_trim()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()
